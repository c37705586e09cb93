package app

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// pacing are the flags that say how fast, and when to stop.
type pacing struct {
	rate, canary string
	maxFailures  int
	lockLimit    int
	patience     time.Duration
	parsed       deadletter.Pace
}

func (p *pacing) bind(flags *pflag.FlagSet) {
	flags.StringVar(&p.rate, "rate", "20/s", "begin at most so many a second, such as 5 or 5/s; 0 is as fast as it goes")
	flags.StringVar(&p.canary, "canary", "1,5,20,100", "sizes of the groups that are done one after the other; a size is passed only while all goes well")
	flags.IntVar(&p.maxFailures, "max-failures", 10, "stop when so many did not come out as they should")
	flags.IntVar(&p.lockLimit, "lock-limit", deadletter.DefaultLockLimit, "keep at most so many other dead letters locked meanwhile")
	flags.DurationVar(&p.patience, "wait", 0, "wait so long for dead letters that somebody else holds; by default a little more than a lock")
}

// slowest is the lowest rate, in messages a second: some four an hour.
const slowest = 0.001

// parse reads the two flags that have a form of their own.
func (p *pacing) parse() error {
	rate, err := strconv.ParseFloat(strings.TrimSuffix(p.rate, "/s"), 64)
	// What is neither above nor below is no number, and a message in a day is no rate.
	if err != nil || rate != 0 && !(rate >= slowest && rate <= 10_000) {
		return withCode(exitUsage, fmt.Errorf("--rate %q is not a number a second such as 5/s", p.rate))
	}
	p.parsed.Rate = rate
	for text := range strings.SplitSeq(p.canary, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 10_000 {
			return withCode(exitUsage, fmt.Errorf("--canary %q is not a list of sizes such as 1,5,20,100", p.canary))
		}
		p.parsed.Canary = append(p.parsed.Canary, n)
	}
	return nil
}

func (p pacing) pace() deadletter.Pace {
	out := p.parsed
	out.MaxFailures, out.LockLimit, out.Patience = p.maxFailures, p.lockLimit, p.patience
	return out
}

func newDeadletterApply(sys system) *cobra.Command {
	var d actionFlags
	var pace pacing
	var execute, verbose bool
	c := &cobra.Command{
		Use: "apply PLAN", Short: "Do exactly what a plan says", Args: needArgs("PLAN"),
		Long: `Do exactly what a plan says. Without --execute it only says what would be done now.

Each verdict is computed again before anything is done, and a dead letter of which something else is true now is skipped. The
canary does one, then five, then twenty, and grows only while all goes well. While the store is down it waits. Ctrl-C finishes
what is begun and releases the rest; apply the same plan again to go on, as often as needed: what is done is done.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := pace.parse(); err != nil {
				return err
			}
			var o deadletter.Command
			var err error
			if execute {
				if o, err = d.command(sys, ""); err != nil {
					return err
				}
			}
			h, steps, err := readPlan(sys.stdin, args[0])
			if err != nil {
				return withCode(exitUsage, err)
			}
			o.Plan, o.Choice.Acknowledged, o.Choice.UnknownProgram = h.ID, h.Acknowledged, h.UnknownProgram
			if o.Choice.NewTTL, err = parseTTL(h.NewTTL); err != nil {
				return err
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				if own := r.config.program.Name; h.Program != "" && h.Program != own {
					return withCode(exitUsage, fmt.Errorf("the plan was made by the program %s, and this is %s. Run:  %s deadletter apply %s", h.Program, own, h.Program, args[0]))
				}
				if h.Queue != r.config.queue {
					return withCode(exitUsage, fmt.Errorf("the plan was made for queue %q, and SERVICEBUS_QUEUE is %q", h.Queue, r.config.queue))
				}
				a := deadletter.Application{Command: o, Steps: steps, Pace: pace.pace()}
				a.Pace.Concurrency = r.config.worker.Concurrency
				return r.apply(ctx, sys, a, execute, verbose)
			})
		},
	}
	d.bind(c.Flags())
	pace.bind(c.Flags())
	c.Flags().BoolVar(&execute, "execute", false, "do it; without this it only says what would be done now")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "write a line for each dead letter, not only for those that were not done")
	return c
}

func readPlan(stdin io.Reader, name string) (deadletter.PlanHeader, []deadletter.PlanStep, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return deadletter.PlanHeader{}, nil, err
		}
		defer f.Close()
		in = f
	}
	h, steps, err := deadletter.ReadPlan(in)
	if err != nil {
		err = fmt.Errorf("%s is %w", name, err)
	}
	return h, steps, err
}

func (r *review) apply(ctx context.Context, sys system, a deadletter.Application, execute, verbose bool) error {
	ctx, release := interruptible(ctx)
	defer release()
	meter := newMeter(sys.stderr)
	counts := map[deadletter.Result]int{}
	a.Outcome = func(o deadletter.Outcome) {
		counts[o.Result]++
		if verbose || notable(o.Result) {
			meter.clear()
			fmt.Fprintln(sys.stdout, outcomeLine(o))
		}
	}
	if !execute {
		if err := r.DryRun(ctx, a, a.Outcome); err != nil {
			return err
		}
		writeCounts(sys.stdout, counts, len(a.Steps))
		_, err := fmt.Fprintln(sys.stdout, "Nothing was done. To do it, add --execute, with a --reason.")
		return err
	}
	a.Progress = func(p deadletter.Progress) { meter.show(progressLine(p)) }
	summary, err := r.Apply(ctx, a)
	meter.end()
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

func progressLine(p deadletter.Progress) string {
	line := fmt.Sprintf("%d of %d: %s", p.Settled, p.Steps, countsLine(p.Counts))
	if p.Paused != "" {
		line += "; " + p.Paused
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
