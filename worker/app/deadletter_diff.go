package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func newDeadletterDiff(sys system) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "diff SEQUENCE", Short: "Compare a dead letter with the stored document, path by path", Args: needArgs("SEQUENCE"),
		Long: `Compare a dead letter with the stored document, path by path, as the fingerprint of the stored one compares.

Exit code 0 when the two are the same, 3 when they differ, 4 when there is nothing to compare with or nobody can tell.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withMessage(c, sys, args, output, func(_ *review, item deadletter.Item) error {
				return diff(sys, item, output)
			})
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

func diff(sys system, item deadletter.Item, output string) error {
	switch {
	case item.Verdict.Kind == deadletter.Undecided:
		return fmt.Errorf("%s", item.Verdict.Meaning())
	case item.Stored == nil || item.Content == nil:
		return withCode(exitAbsent, fmt.Errorf("there is nothing to compare with: %s", deadletter.Visible(strings.TrimSpace(item.Verdict.Meaning()+" "+item.Absence))))
	}
	if why := item.Incomparable(); why != "" {
		return withCode(exitAbsent, fmt.Errorf("nobody can tell whether the two are the same: %s", deadletter.Visible(why)))
	}
	changes := item.Changes()
	if output == "json" {
		if changes == nil {
			changes = []deadletter.Change{}
		}
		if err := writeJSON(sys.stdout, changes); err != nil {
			return err
		}
	} else {
		if len(changes) == 0 {
			fmt.Fprintln(sys.stdout, "The message and the stored document are the same.")
		}
		for _, c := range changes {
			writeChange(sys.stdout, c)
		}
	}
	if len(changes) > 0 {
		return withCode(exitDifferent, fmt.Errorf("they differ at %d place(s); - is what is stored, + is this message", len(changes)))
	}
	return nil
}
