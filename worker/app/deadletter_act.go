package app

import (
	"cmp"
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
)

// actionFlags are the flags of everything that has an effect.
type actionFlags struct {
	why, actor string
	choice     deadletter.Choice
	lockLimit  int
	patience   time.Duration
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

// bindLocks binds how long to wait, and for how many others.
func (d *actionFlags) bindLocks(flags *pflag.FlagSet) {
	flags.IntVar(&d.lockLimit, "lock-limit", deadletter.DefaultLockLimit, "keep at most so many other dead letters locked meanwhile")
	flags.DurationVar(&d.patience, "wait", 0, "wait so long for dead letters that somebody else holds; by default a little more than a lock")
}

// command checks the flags and builds a command from them. What has no effect needs no reason.
func (d *actionFlags) command(sys system, a deadletter.Action, effect bool) (deadletter.Command, error) {
	c := deadletter.Command{Action: a, Choice: d.choice, LockLimit: d.lockLimit, Patience: d.patience}
	if !effect {
		return c, nil
	}
	if strings.TrimSpace(d.why) == "" {
		return c, withCode(exitUsage, errors.New("--reason is missing. Say why this is done, such as --reason \"ticket 4711: store was down\""))
	}
	if utf8.RuneCountInString(d.why) > deadletter.MaxWhy {
		return c, withCode(exitUsage, fmt.Errorf("--reason has more than %d characters, and is kept with every dead letter. Name a ticket instead", deadletter.MaxWhy))
	}
	c.Actor, c.Why = actorOf(sys, d.actor), d.why
	return c, nil
}

var actTexts = map[deadletter.Action][2]string{
	deadletter.Reprocess: {"Apply dead letters where they lie, and remove each when its documents are stored",
		"Runs the worker's own admission, handler, commit and judgement on each dead letter. Nothing is sent, so that duplicate\ndetection cannot drop it and nobody else receives it."},
	deadletter.Resubmit: {"Send dead letters to the queue again, and remove each when the broker has taken the copy",
		"The copy is the same message: body, properties and their types, and MessageId. It is refused where it would be lost, come\nstraight back, or reach others; reprocess has none of these problems."},
	deadletter.Discard: {"Remove dead letters, and keep them in a file",
		"What was not applied is lost with it, which needs --accept-warning. What is removed is kept in a file, from which import\nbrings it back."},
	deadletter.Resolve: {"Record what was found out about an attempt that claimed a message and did not end",
		"Find out first, at the other system, whether the attempt had its effect: nothing here can know. --as not-done releases the\nclaim, so that the message can be reprocessed. --as done records that it was applied, with an --outcome, and removes the dead\nletter; documents are not stored."},
}

func newDeadletterAct(sys system, a deadletter.Action) *cobra.Command {
	var d actionFlags
	var ttl string
	var dryRun bool
	var kept archiveFlags
	var found resolutionFlags
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
			command, err := d.command(sys, a, !dryRun)
			if err != nil {
				return err
			}
			if command.Choice.NewTTL, err = parseTTL(ttl); err != nil {
				return err
			}
			if a == deadletter.Resolve {
				if command.Choice.Resolution, err = found.read(); err != nil {
					return err
				}
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				steps := stepsOf(a, numbers)
				if dryRun {
					return r.dryRun(ctx, sys, command, steps)
				}
				return r.archiving(sys, kept, &command, func() error { return r.act(ctx, sys, command, steps) })
			})
		},
	}
	d.bind(c.Flags())
	d.bindWarning(c.Flags())
	d.bindLocks(c.Flags())
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing")
	switch a {
	case deadletter.Resubmit:
		c.Flags().StringVar(&ttl, "ttl", "", "give the copies this time to live, such as 24h or P1D; needed for those that have expired")
	case deadletter.Resolve:
		found.bind(c.Flags())
	case deadletter.Discard:
		d.bindProgram(c.Flags())
		kept.bind(c.Flags())
	}
	return c
}

func parseTTL(text string) (time.Duration, error) {
	ttl, err := deadletter.ParseTTL(text)
	if err != nil {
		return 0, withCode(exitUsage, fmt.Errorf("--ttl: %w", err))
	}
	return ttl, nil
}

// act carries out a command on one message, or on a few.
func (r *review) act(ctx context.Context, sys system, c deadletter.Command, steps []deadletter.PlanStep) error {
	ctx, release := interruptible(ctx)
	defer release()
	meter := newMeter(sys.stderr)
	defer meter.clear()
	c.Paused = meter.show
	failed := 0
	report := func(out deadletter.Outcome) {
		meter.clear()
		fmt.Fprintln(sys.stdout, outcomeLine(out))
		if !out.Result.Removed() && out.Result != deadletter.Freed {
			failed++
		}
	}
	stopped, err := "", error(nil)
	if len(steps) == 1 {
		var out deadletter.Outcome
		out, err = r.Act(ctx, c, steps[0].Sequence)
		if out.Result == deadletter.Absent {
			return r.absent(out.Sequence)
		}
		if out.Result != "" {
			report(out)
		}
	} else {
		a := deadletter.Application{Command: c, Steps: steps, Outcome: report, Progress: func(s deadletter.Summary) { meter.pause(s.Paused) }}
		var s deadletter.Summary
		s, err = r.Apply(ctx, a)
		stopped = s.Stopped
	}
	switch {
	case stopped != "" || errors.Is(err, context.Canceled):
		return fmt.Errorf("not finished: %s. Do it again to go on", cmp.Or(stopped, "it was interrupted"))
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%d of %d not done", failed, len(steps))
	}
	return nil
}

// dryRun says what would be done with each, and fails when something would be done with none.
func (r *review) dryRun(ctx context.Context, sys system, c deadletter.Command, steps []deadletter.PlanStep) error {
	failed := 0
	err := r.DryRun(ctx, deadletter.Application{Command: c, Steps: steps}, func(out deadletter.Outcome) {
		fmt.Fprintln(sys.stdout, outcomeLine(out))
		if out.Result != deadletter.WouldAct {
			failed++
		}
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d would not be done", failed, len(steps))
	}
	return err
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
