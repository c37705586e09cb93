package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/amqpbroker"
	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
)

func newDeadletter(sys system) *cobra.Command {
	c := group("deadletter", "Look at dead letters, learn whether each was applied, and deal with them")
	c.Long = `Look at dead letters, learn whether each was applied, and deal with them.

Every dead letter gets a verdict from the message, the stored document and the settings of the queue. list, show, diff,
export, plan and log change nothing. reprocess, resubmit, discard, resolve, import and apply need a --reason, and are recorded in the
container beside the documents. A dead letter is never removed before the outcome is known.

It needs the right to receive from the queue and to read and create documents, and for resubmit the right to send. Give it
the settings of the worker, so that it decides as the worker does.`
	c.PersistentPreRunE = checkFlags
	bind(c.PersistentFlags(), new(config).settings())
	c.PersistentFlags().Bool("requires-session", false, "the queue takes only messages of a session, so that a resubmit without one is refused")
	c.PersistentFlags().Bool("forwarded", false, "look at dead letters that other queues forward to this one, where they lie as ordinary messages")
	c.AddCommand(newDeadletterList(sys), newDeadletterShow(sys), newDeadletterDiff(sys),
		newDeadletterAct(sys, deadletter.Reprocess), newDeadletterAct(sys, deadletter.Resubmit), newDeadletterAct(sys, deadletter.Discard), newDeadletterAct(sys, deadletter.Resolve),
		newDeadletterExport(sys), newDeadletterImport(sys), newDeadletterPlan(sys), newDeadletterApply(sys), newDeadletterLog(sys), newDeadletterServe(sys))
	return c
}

// review is what every dead letter command works with.
type review struct {
	*deadletter.Reviewer
	config config
	ledger deadletter.Ledger
	close  func()
}

// openReview builds a reviewer from the settings. The worker's own pipeline decides, so that the review and the worker can
// never disagree.
func openReview(c *cobra.Command, sys system) (*review, error) {
	cfg, err := resolve(sys, c.Flags())
	if err != nil {
		return nil, err
	}
	quiet, silent := quiet()
	k, err := newConnector(cfg)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	forwarded, _ := c.Flags().GetBool("forwarded")
	broker, err := amqpbroker.New(amqpbroker.Options{
		Forwarded:        forwarded,
		ConnectionString: cfg.connectionString, Namespace: cfg.namespace, Credential: k.credential, Queue: cfg.queue,
	})
	if err != nil {
		return nil, withCode(exitUsage, errors.New("SERVICEBUS_CONNECTION_STRING cannot be used; copy it again from where it was shown"))
	}
	store, err := k.openStore(c.Context(), quiet, silent)
	if err != nil {
		broker.Close()
		return nil, err
	}
	end := func() { broker.Close(); store.Close() }
	wc := cfg.workerConfig(quiet, silent)
	wc.Outbox = k.outbox(wc.Outbox)
	pipeline, err := worker.NewPipeline(wc, store, cfg.program.Handler)
	if err != nil {
		end()
		return nil, withCode(exitUsage, err)
	}
	settings := cfg.reviewSettings(c)
	ledger := ledger{store.Journal()}
	return &review{
		Reviewer: deadletter.NewReviewer(broker, pipeline, ledger, settings), config: cfg, ledger: ledger, close: end,
	}, nil
}

// reviewSettings is what the settings say of the queue and of the memory of keys.
func (c config) reviewSettings(command *cobra.Command) deadletter.Settings {
	session, _ := command.Flags().GetBool("requires-session")
	forwarded, _ := command.Flags().GetBool("forwarded")
	s := deadletter.Settings{Forwarded: forwarded, Program: c.program.Name, Queue: c.queue, Lock: c.worker.LockDuration, RequiresSession: session, KeyMemory: c.store.InboxRecordTTL}
	if c.duplicateWindow != unknownWindow {
		s.Duplicates = deadletter.DuplicateDetection{Known: true, Window: c.duplicateWindow}
	}
	return s
}

// explain says what an error means for the person who started the command.
func (r *review) explain(err error) error {
	if _, store := errors.AsType[*worker.UnavailableError](err); store || ofThisMachine(err) {
		return err
	}
	explained := explainBroker(r.config, err)
	if p, ok := errors.AsType[*brokerProblem](explained); ok && p.unknown {
		return err // it says by itself what was not done, and why
	}
	return explained
}

// withReview opens a review, runs a command with it, and explains what went wrong.
func withReview(c *cobra.Command, sys system, run func(ctx context.Context, r *review) error) error {
	r, err := openReview(c, sys)
	if err != nil {
		return err
	}
	defer r.close()
	err = run(c.Context(), r)
	if _, coded := errors.AsType[*exitError](err); err == nil || coded {
		return err
	}
	return r.explain(err)
}

// actorOf is who acts: the flag, else the user of this machine.
func actorOf(sys system, flag string) string {
	if flag != "" {
		return flag
	}
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	for _, pair := range sys.environ {
		if value, ok := strings.CutPrefix(pair, "USER="); ok && value != "" {
			name = value
		}
	}
	if name == "" {
		name = "unknown"
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// age writes how long ago something was, in its largest unit.
func age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case at.IsZero():
		return "?"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
