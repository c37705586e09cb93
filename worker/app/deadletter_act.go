package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/internal/messagejson"
)

// actionFlags are the flags of everything that has an effect.
type actionFlags struct {
	why, actor string
	choice     deadletter.Choice
	// program and iKnow allow to discard what belongs to another program.
	program string
	iKnow   bool
}

func (d *actionFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&d.why, "reason", "", "why this is done; it is recorded and must be given")
	flags.StringVar(&d.actor, "actor", "", "who does this; by default the user of this machine")
}

func (d *actionFlags) bindWarning(flags *pflag.FlagSet) {
	flags.BoolVar(&d.choice.Acknowledged, "accept-warning", false, "go on although the action carries a warning; show tells which")
	bindUnknown(flags, &d.choice)
}

func bindUnknown(flags *pflag.FlagSet, c *deadletter.Choice) {
	flags.BoolVar(&c.UnknownProgram, "accept-unknown-program", false, "messages that name no program, where another program may own them, belong to this one")
}

func (d *actionFlags) bindProgram(flags *pflag.FlagSet) {
	flags.StringVar(&d.program, "program", "", "discard messages of this other program, of which nobody can tell here whether they were applied; with --i-know")
	flags.BoolVar(&d.iKnow, "i-know", false, "the messages of --program may be lost")
}

// checkProgram reads the two flags that belong together.
func (d *actionFlags) checkProgram() error {
	if (d.program != "") != d.iKnow {
		return withCode(exitUsage, errors.New("--program and --i-know belong together: they discard messages of another program"))
	}
	d.choice.Program, d.choice.Acknowledged = d.program, d.choice.Acknowledged || d.iKnow
	return nil
}

// maxWhy bounds a reason, in characters, as on the page.
const maxWhy = 500

// command checks the flags and builds a command from them.
func (d *actionFlags) command(sys system, a deadletter.Action) (deadletter.Command, error) {
	if strings.TrimSpace(d.why) == "" {
		return deadletter.Command{}, withCode(exitUsage, fmt.Errorf("--reason is missing. Say why this is done, such as --reason \"ticket 4711: store was down\""))
	}
	if utf8.RuneCountInString(d.why) > maxWhy {
		return deadletter.Command{}, withCode(exitUsage, fmt.Errorf("--reason has more than %d characters, and is kept with every dead letter. Name a ticket instead", maxWhy))
	}
	return deadletter.Command{Action: a, Actor: actorOf(sys, d.actor), Why: d.why, Choice: d.choice}, nil
}

var actTexts = map[deadletter.Action][2]string{
	deadletter.Reprocess: {"Apply dead letters where they lie, and remove each when its documents are stored",
		"Runs the worker's own admission, handler, commit and judgement on each dead letter. Nothing is sent, so that duplicate\ndetection cannot drop it and nobody else receives it."},
	deadletter.Resubmit: {"Send dead letters to the queue again, and remove each when the broker has taken the copy",
		"The copy is the same message: body, properties and their types, and MessageId. It is refused where it would be lost, come\nstraight back, or reach others; reprocess has none of these problems."},
	deadletter.Discard: {"Remove dead letters", "What was not applied is lost with it, which needs --accept-warning. Export it first if anybody may ask."},
}

func newDeadletterAct(sys system, a deadletter.Action) *cobra.Command {
	var d actionFlags
	var ttl, archive string
	var dryRun bool
	var pace pacing
	c := &cobra.Command{
		Use: string(a) + " SEQUENCE...", Short: actTexts[a][0], Long: actTexts[a][0] + ".\n\n" + actTexts[a][1],
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withCode(exitUsage, fmt.Errorf("%s takes one or more sequence numbers; list shows them. For many, make a plan", c.CommandPath()))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			numbers, err := sequences(args)
			if err != nil {
				return err
			}
			if err := d.checkProgram(); err != nil {
				return err
			}
			o := deadletter.Command{Action: a, Choice: d.choice}
			if !dryRun {
				if o, err = d.command(sys, a); err != nil {
					return err
				}
			}
			if o.Choice.NewTTL, err = parseTTL(ttl); err != nil {
				return err
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				return r.act(ctx, sys, actRun{command: o, numbers: numbers, archive: archive, dryRun: dryRun, pace: pace})
			})
		},
	}
	d.bind(c.Flags())
	d.bindWarning(c.Flags())
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing")
	c.Flags().IntVar(&pace.lockLimit, "lock-limit", deadletter.DefaultLockLimit, "keep at most so many other dead letters locked while looking for these")
	c.Flags().DurationVar(&pace.patience, "wait", 0, "wait so long for a dead letter that somebody else holds; by default a little more than a lock")
	switch a {
	case deadletter.Resubmit:
		c.Flags().StringVar(&ttl, "ttl", "", "give the copies this time to live, such as 24h or P1D; needed for those that have expired")
	case deadletter.Discard:
		d.bindProgram(c.Flags())
	}
	c.Flags().StringVar(&archive, "archive", "", "append each to this file before it is removed, in the form of export")
	return c
}

func parseTTL(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	ttl, err := messagejson.ParseDuration(text)
	if err == nil && ttl <= 0 {
		err = fmt.Errorf("%q is not a time to live", text)
	}
	if err != nil {
		return 0, withCode(exitUsage, fmt.Errorf("--ttl: %w", err))
	}
	return ttl, nil
}

// actRun is one command for a few messages.
type actRun struct {
	command deadletter.Command
	numbers []int64
	archive string
	dryRun  bool
	pace    pacing
}

func (r *review) act(ctx context.Context, sys system, a actRun) error {
	ctx, release := interruptible(ctx)
	defer release()
	if a.archive != "" && !a.dryRun {
		kept, err := openArchive(a.archive)
		if err != nil {
			return err
		}
		defer kept.file.Close()
		a.command.Archive = kept.keep
	}
	failed, meter := 0, newMeter(sys.stderr)
	report := func(o deadletter.Outcome) {
		meter.clear()
		if !o.Result.Removed() && o.Result != deadletter.WouldAct && o.Result != deadletter.Absent {
			failed++
		}
		fmt.Fprintln(sys.stdout, outcomeLine(o))
	}
	application := deadletter.Application{Command: a.command, Pace: a.pace.pace(), Outcome: report, Progress: meter.pause}
	if a.dryRun {
		application.Steps = stepsOf(a.command.Action, a.numbers)
		if err := r.DryRun(ctx, application, report); err != nil {
			return err
		}
	} else {
		summary, err := r.Act(ctx, application, a.numbers...)
		meter.end()
		if err != nil {
			return err
		}
		if summary.Stopped != "" {
			return fmt.Errorf("not finished: %s. Do it again to go on", summary.Stopped)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d not done", failed, len(a.numbers))
	}
	return nil
}

func outcomeLine(o deadletter.Outcome) string {
	line := fmt.Sprintf("%d  %s  %s %s", o.Sequence, cell(o.MessageID, 60), o.Action, o.Result)
	if o.Verdict != "" {
		line += " (" + string(o.Verdict) + ")"
	}
	if o.Detail != "" {
		line += ": " + deadletter.Visible(o.Detail)
	}
	return line
}

func stepsOf(a deadletter.Action, numbers []int64) []deadletter.PlanStep {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	steps := make([]deadletter.PlanStep, len(sorted))
	for i, n := range sorted {
		steps[i] = deadletter.PlanStep{Sequence: n, Action: a}
	}
	return steps
}
