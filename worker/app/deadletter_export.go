package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func newDeadletterExport(sys system) *cobra.Command {
	var f filterFlags
	var file string
	c := &cobra.Command{
		Use: "export [SEQUENCE...]", Short: "Write dead letters as JSON lines, losing nothing",
		Long: `Write dead letters as JSON lines, losing nothing, to standard output or a file.

The lines are those of the send command, with the broker's own properties; one that holds something that JSON has no form for
carries the encoded message. The bodies are in it: keep the file as you keep the documents. import reads it.`,
		RunE: func(c *cobra.Command, args []string) error {
			numbers, err := sequences(args)
			if err != nil {
				return err
			}
			if len(numbers) > 0 && selected(c) {
				return withCode(exitUsage, errors.New("sequence numbers and a selection were given. Give one of the two"))
			}
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				ctx, release := interruptible(ctx)
				defer release()
				return writeFile(file, sys.stdout, func(out io.Writer) error {
					n, err := r.export(ctx, out, filter, numbers)
					if err == nil {
						fmt.Fprintf(sys.stderr, "%d dead letter(s) exported\n", n)
					}
					return err
				})
			})
		},
	}
	f.bind(c.Flags())
	c.Flags().StringVar(&file, "file", "", "write to this file, which must not exist, instead of standard output")
	return c
}

// writeFile writes to a file that is not there yet, and removes it when write fails, or to out when there is no name.
func writeFile(name string, out io.Writer, write func(io.Writer) error) error {
	if name == "" {
		return write(out)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return withCode(exitUsage, fmt.Errorf("%s exists already; give another name", name))
	}
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	switch {
	case errors.Is(err, context.Canceled):
		err = fmt.Errorf("interrupted; %s is not written", name)
		fallthrough
	case err != nil:
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// export writes the messages with these numbers, or all that the filter selects when there are none.
func (r *review) export(ctx context.Context, out io.Writer, f deadletter.Filter, numbers []int64) (int, error) {
	for _, n := range numbers {
		item, err := r.find(ctx, n)
		if err != nil {
			return 0, err
		}
		if err := exportLine(out, item.DeadLetter); err != nil {
			return 0, err
		}
	}
	if len(numbers) > 0 {
		return len(numbers), nil
	}
	n := 0
	for item, err := range r.List(ctx, f) {
		if err != nil {
			return n, err
		}
		if err := exportLine(out, item.DeadLetter); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func exportLine(out io.Writer, l *deadletter.DeadLetter) error {
	line, err := deadletter.ExportLine(l)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	return err
}

func newDeadletterImport(sys system) *cobra.Command {
	var d actionFlags
	var as, ttl string
	var execute bool
	c := &cobra.Command{
		Use: "import FILE", Short: "Apply exported messages, or send them to the queue", Args: needArgs("FILE"),
		Long: `Apply exported messages, or send them to the queue, under the same rules as for dead letters.

By default each message goes through the worker's own steps, where it lies in the file; --as resubmit sends it to the queue
instead. What was applied before is recognised. Without --execute it only says what would be done. Dead letters that are
still there are not removed.`,
		RunE: func(c *cobra.Command, args []string) error {
			action, ok := deadletter.ParseAction(as)
			if !ok || action == deadletter.Discard {
				return withCode(exitUsage, fmt.Errorf("--as %q is neither reprocess nor resubmit", as))
			}
			o, err := d.command(sys, action, execute)
			if err != nil {
				return err
			}
			if o.Choice.NewTTL, err = parseTTL(ttl); err != nil {
				return err
			}
			messages, err := readLines(sys, args[0], func(_ int, text []byte) (*deadletter.DeadLetter, error) { return deadletter.ImportLine(text) })
			if err != nil {
				return withCode(exitUsage, err)
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				return r.importFile(ctx, sys, deadletter.Application{Command: o}, messages, execute)
			})
		},
	}
	d.bind(c.Flags())
	d.bindWarning(c.Flags())
	c.Flags().StringVar(&as, "as", string(deadletter.Reprocess), "reprocess or resubmit")
	c.Flags().StringVar(&ttl, "ttl", "", "give resubmitted messages this time to live, such as 24h or P1D")
	c.Flags().BoolVar(&execute, "execute", false, "do it; without this it only says what would be done")
	return c
}

func (r *review) importFile(ctx context.Context, sys system, a deadletter.Application, messages []*deadletter.DeadLetter, execute bool) error {
	ctx, release := interruptible(ctx)
	defer release()
	done, meter := 0, newMeter(sys.stderr)
	a.Pace.Concurrency, a.Progress = r.config.worker.Concurrency, func(s deadletter.Summary) { meter.pause(s.Paused) }
	a.Outcome = func(o deadletter.Outcome) {
		if o.Result.Removed() || o.Result == deadletter.WouldAct {
			done++
		}
		meter.clear()
		fmt.Fprintln(sys.stdout, outcomeLine(o))
	}
	if !execute {
		if err := r.DryRunImport(ctx, a.Command, messages, a.Outcome); err != nil {
			return err
		}
		fmt.Fprintf(sys.stdout, "nothing was done: %d of %d would be. To do it, add --execute, with a --reason\n", done, len(messages))
	} else {
		summary, err := r.Import(ctx, a, messages)
		switch {
		case err != nil:
			return err
		case summary.Stopped != "":
			return fmt.Errorf("not finished: %s with %d of %d done. Do it again to go on: what is done is recognised", summary.Stopped, done, len(messages))
		}
	}
	if done < len(messages) {
		return fmt.Errorf("%d of %d not done", len(messages)-done, len(messages))
	}
	return nil
}
