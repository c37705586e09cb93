package app

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// pacing are the flags that say how fast, and when to stop.
type pacing struct {
	rate, canary string
	maxFailures  int
}

func (p *pacing) bind(flags *pflag.FlagSet) {
	flags.StringVar(&p.rate, "rate", "20/s", "begin at most so many a second, such as 5 or 5/s; 0 is as fast as it goes")
	flags.StringVar(&p.canary, "canary", "1,5,20,100", "sizes of the groups that are done one after the other; a size is passed only while all goes well")
	flags.IntVar(&p.maxFailures, "max-failures", 10, "stop when so many did not come out as they should")
}

// slowest is the lowest rate, in messages a second: some four an hour.
const slowest = 0.001

// pace reads the flags.
func (p *pacing) pace() (deadletter.Pace, error) {
	out := deadletter.Pace{MaxFailures: p.maxFailures}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(p.rate, "/s"), 64)
	// What is neither above nor below is no number, and a message in a day is no rate.
	if err != nil || rate != 0 && !(rate >= slowest && rate <= 10_000) {
		return out, withCode(exitUsage, fmt.Errorf("--rate %q is not a number a second such as 5/s", p.rate))
	}
	out.Rate = rate
	for text := range strings.SplitSeq(p.canary, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 10_000 {
			return out, withCode(exitUsage, fmt.Errorf("--canary %q is not a list of sizes such as 1,5,20,100", p.canary))
		}
		out.Canary = append(out.Canary, n)
	}
	return out, nil
}

func newDeadletterApply(sys system) *cobra.Command {
	var d actionFlags
	var pacing pacing
	var kept archiveFlags
	var execute, verbose bool
	c := &cobra.Command{
		Use: "apply PLAN", Short: "Do exactly what a plan says", Args: needArgs("PLAN"),
		Long: `Do exactly what a plan says. Without --execute it only says what would be done now.

Each verdict is computed again before anything is done, and a dead letter of which something else is true now is skipped. The
canary does one, then five, then twenty, and grows only while all goes well. While the store is down it waits. Ctrl-C finishes
what is begun and releases the rest; apply the same plan again to go on, as often as needed: what is done is done.`,
		RunE: func(c *cobra.Command, args []string) error {
			pace, err := pacing.pace()
			if err != nil {
				return err
			}
			command, err := d.command(sys, "", execute)
			if err != nil {
				return err
			}
			plan, err := readPlan(sys, args[0])
			if err != nil {
				return withCode(exitUsage, err)
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				pace.Concurrency = r.config.worker.Concurrency
				if !execute {
					return r.dryApply(ctx, sys, plan, command, verbose)
				}
				return r.archiving(sys, kept, &command, func() error { return r.apply(ctx, sys, plan, command, pace, verbose) })
			})
		},
	}
	d.bind(c.Flags())
	d.bindLocks(c.Flags())
	pacing.bind(c.Flags())
	kept.bind(c.Flags())
	c.Flags().BoolVar(&execute, "execute", false, "do it; without this it only says what would be done now")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "write a line for each dead letter, not only for those that were not done")
	return c
}

func readPlan(sys system, name string) (deadletter.Plan, error) {
	in, err := openInput(sys, name)
	if err != nil {
		return deadletter.Plan{}, err
	}
	defer in.Close()
	p, err := deadletter.ReadPlan(in)
	if err != nil {
		err = fmt.Errorf("%s is %w", name, err)
	}
	return p, err
}

// dryApply says what apply would do now.
func (r *review) dryApply(ctx context.Context, sys system, p deadletter.Plan, c deadletter.Command, verbose bool) error {
	a, err := r.Application(p, c)
	if err != nil {
		return withCode(exitUsage, err)
	}
	counts := map[deadletter.Result]int{}
	err = r.DryRun(ctx, a, func(out deadletter.Outcome) {
		if counts[out.Result]++; verbose || notable(out.Result) {
			fmt.Fprintln(sys.stdout, outcomeLine(out))
		}
	})
	if err != nil {
		return err
	}
	writeCounts(sys.stdout, counts, len(p.Steps))
	_, err = fmt.Fprintln(sys.stdout, "Nothing was done. To do it, add --execute, with a --reason.")
	return err
}

func (r *review) apply(ctx context.Context, sys system, p deadletter.Plan, c deadletter.Command, pace deadletter.Pace, verbose bool) error {
	a, err := r.Application(p, c)
	if err != nil {
		return withCode(exitUsage, err)
	}
	ctx, release := interruptible(ctx)
	defer release()
	meter := newMeter(sys.stderr)
	a.Pace = pace
	a.Progress = func(s deadletter.Summary) { meter.show(progressLine(s)) }
	a.Outcome = func(out deadletter.Outcome) {
		if verbose || notable(out.Result) {
			meter.clear()
			fmt.Fprintln(sys.stdout, outcomeLine(out))
		}
	}
	summary, err := r.Apply(ctx, a)
	meter.clear()
	writeCounts(sys.stdout, summary.Counts, summary.Steps)
	switch {
	case err != nil:
		return fmt.Errorf("not finished: %w. Apply the same plan again to go on", r.explain(err))
	case summary.Stopped != "":
		return fmt.Errorf("not finished: %s. Apply the same plan again to go on", summary.Stopped)
	case summary.Failed() > 0 || summary.Counts[deadletter.Locked] > 0:
		return fmt.Errorf("%d not done. Apply the same plan again to try them again", summary.Failed()+summary.Counts[deadletter.Locked])
	case summary.Counts[deadletter.Skipped]+summary.Counts[deadletter.Refused] > 0:
		return fmt.Errorf("%d left as they were, since something else is true of them now than when the plan was made. Make a new plan for them", summary.Counts[deadletter.Skipped]+summary.Counts[deadletter.Refused])
	}
	return nil
}

// notable reports whether a person wants to read of a single outcome among many.
func notable(r deadletter.Result) bool {
	return !r.Removed() && r != deadletter.WouldAct && r != deadletter.Absent
}

func progressLine(s deadletter.Summary) string {
	line := fmt.Sprintf("%d of %d: %s", s.Settled(), s.Steps, countsLine(s.Counts))
	if s.Paused != "" {
		line += "; " + s.Paused
	}
	return line
}

func countsLine(counts map[deadletter.Result]int) string {
	var parts []string
	for _, result := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[result], result))
	}
	return strings.Join(parts, ", ")
}

func writeCounts(out io.Writer, counts map[deadletter.Result]int, steps int) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tOUTCOME")
	left := steps
	for _, result := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%d\t%s\n", counts[result], result)
		left -= counts[result]
	}
	if left > 0 {
		fmt.Fprintf(w, "%d\tnot begun\n", left)
	}
	_ = w.Flush()
}
