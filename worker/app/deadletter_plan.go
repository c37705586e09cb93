package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func newDeadletterPlan(sys system) *cobra.Command {
	var f filterFlags
	var action, ttl, file, actor string
	var p deadletter.Planning
	c := &cobra.Command{
		Use: "plan", Short: "Write what would be done with many dead letters, and do nothing", Args: needArgs(),
		Long: `Write what would be done with many dead letters, and do nothing.

Without --action the verdict decides: what was applied is discarded, what was never applied is reprocessed, and everything
else is left to a person. The plan names each dead letter by its sequence number, so that none that comes later is touched.
apply does exactly what it says.`,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if p.Filter, err = f.filter(time.Now()); err != nil {
				return err
			}
			if action != "" {
				var ok bool
				if p.Action, ok = deadletter.ParseAction(action); !ok {
					return withCode(exitUsage, fmt.Errorf("--action %q is not one of reprocess, resubmit, discard", action))
				}
			}
			if p.Choice.NewTTL, err = parseTTL(ttl); err != nil {
				return err
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				h := deadletter.PlanHeader{
					ID: rand.Text()[:12], CreatedAt: time.Now().UTC(), CreatedBy: actorOf(sys, actor), NewTTL: ttl,
				}
				ctx, release := interruptible(ctx)
				defer release()
				return writeFile(file, sys.stdout, func(out io.Writer) error { return r.writePlan(ctx, sys, out, h, p, file) })
			})
		},
	}
	f.bind(c.Flags())
	c.Flags().StringVar(&action, "action", "", "reprocess, resubmit or discard, for all that are selected; by default the verdict decides")
	c.Flags().BoolVar(&p.Choice.Acknowledged, "accept-warning", false, "plan actions that carry a warning too; show tells which")
	bindUnknown(c.Flags(), &p.Choice)
	c.Flags().StringVar(&ttl, "ttl", "", "give resubmitted messages this time to live, such as 24h or P1D")
	c.Flags().IntVar(&p.Most, "max", 0, "plan at most so many; 0 plans all")
	c.Flags().StringVar(&file, "file", "", "write to this file, which must not exist, instead of standard output")
	c.Flags().StringVar(&actor, "actor", "", "who makes the plan; by default the user of this machine")
	return c
}

func (r *review) writePlan(ctx context.Context, sys system, out io.Writer, h deadletter.PlanHeader, p deadletter.Planning, file string) error {
	meter := newMeter(sys.stderr)
	p.Progress = func(seen int) { meter.show(fmt.Sprintf("%d dead letters looked at", seen)) }
	plan, summary, err := r.Plan(ctx, h, p)
	meter.clear()
	if err != nil {
		return err
	}
	if err := plan.Write(out); err != nil {
		return err
	}
	if summary.Seen == 0 {
		text, err := r.noneOf(ctx, p.Filter)
		if err != nil {
			return err
		}
		fmt.Fprintln(sys.stderr, text)
	}
	if len(p.Filter.Reasons) > 0 && summary.Seen == 0 {
		fmt.Fprintf(sys.stderr, "No dead letter that is selected was dead-lettered for the reason %s. Here --reason selects dead letters; why it is done is for apply.\n",
			strings.Join(p.Filter.Reasons, ", "))
	}
	return describePlan(sys.stderr, sys.program.Name, summary, file)
}

func describePlan(out io.Writer, program string, s deadletter.PlanSummary, file string) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tVERDICT\tWOULD BE")
	for _, c := range s.Counts {
		would := string(c.Action)
		if c.LeftOut != "" {
			would = "left out: " + c.LeftOut
		}
		fmt.Fprintf(w, "%d\t%s\t%s\n", c.Count, c.Verdict, would)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d dead letters are in the plan. Nothing was done.\n", s.Steps, s.Seen)
	for _, c := range s.Counts {
		if c.Action == deadletter.Discard && c.LeftOut == "" && c.Verdict != deadletter.AlreadyApplied && c.Verdict != deadletter.Stale {
			fmt.Fprintf(out, "What is discarded is gone. To keep it first:  %s deadletter export --verdict %s --file kept-%s.jsonl\n", program, c.Verdict, c.Verdict)
		}
	}
	if file != "" && s.Steps > 0 {
		fmt.Fprintf(out, "To see what it would do now:  %[1]s deadletter apply %[2]s\nTo do it:                     %[1]s deadletter apply %[2]s --execute --reason \"...\"\n", program, file)
	}
	return nil
}
