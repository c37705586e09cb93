package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func newDeadletterLog(sys system) *cobra.Command {
	var q deadletter.Query
	var since, output string
	c := &cobra.Command{
		Use: "log", Short: "Show what was done with dead letters: who, when, why, and what came of it", Args: needArgs(),
		Long: `Show what was done with dead letters: who, when, why, and what came of it. The newest come first.

Every action has an entry from before it had any effect (intended) and one of its outcome (done, failed, unknown).`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			d, err := parseAgo("--since", since)
			if err != nil {
				return err
			}
			q.From = time.Now().Add(-d)
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				return writeLog(ctx, sys.stdout, r.ledger, q, output)
			})
		},
	}
	c.Flags().StringVar(&since, "since", "168h", "look back so far, such as 24h or P30D")
	c.Flags().StringVar(&q.MessageID, "message-id", "", "only for this MessageId")
	c.Flags().Int64Var(&q.Sequence, "sequence", 0, "only for this sequence number")
	c.Flags().StringVar(&q.Plan, "plan", "", "only of this plan")
	c.Flags().IntVar(&q.Most, "limit", 200, "show at most so many; 0 shows all")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

// doneAs is the action of an entry, and for a message of a file that it was imported.
func doneAs(e deadletter.Entry) string {
	if e.Origin != "" {
		return e.Origin + " " + string(e.Action)
	}
	return string(e.Action)
}

func writeLog(ctx context.Context, out io.Writer, ledger deadletter.Ledger, q deadletter.Query, output string) error {
	entries := []deadletter.Entry{}
	for e, err := range ledger.Entries(ctx, q) {
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	if output == "json" {
		return writeJSON(out, entries)
	}
	for _, e := range entries {
		result := string(e.State)
		if e.Result != "" {
			result += " (" + e.Result + ")"
		}
		line := fmt.Sprintf("%s  %-12s  %-10d  %-16s  %-24s  %-15s  %s  by %s: %s", e.At.UTC().Format(time.RFC3339), cell(e.Queue, 40), e.Sequence, doneAs(e), result, e.Verdict, cell(e.MessageID, 40), cell(e.Actor, 40), cell(e.Why, 80))
		if e.Detail != "" {
			line += "  [" + cell(e.Detail, 120) + "]"
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintln(out, "nothing was done in this time")
		return err
	}
	return nil
}
