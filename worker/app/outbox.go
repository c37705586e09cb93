package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
)

// sendOutbox is the action under which the journal keeps what a person has sent.
const sendOutbox deadletter.Action = "send-outbox"

func newOutbox(sys system) *cobra.Command {
	c := group("outbox", "Show and send messages that are committed and not sent yet")
	c.Long = `Show and send messages that are committed and not sent yet.

Workers send them by themselves: with the delivery that committed them, or, when a destination was away, with the next sweep. These
commands say what waits and why, and send it now, under the same ids. Give them the settings of the worker.`
	table := new(config).settings()
	list, show, send := newOutboxList(sys), newOutboxShow(sys), newOutboxSend(sys)
	for _, each := range []*cobra.Command{list, show, send} {
		bind(each.Flags(), table)
	}
	c.AddCommand(list, show, send)
	return c
}

// outbox is what the commands work with.
type outbox struct {
	config   config
	store    *cosmosstore.Store
	pipeline *worker.Pipeline
	sender   worker.Sender
}

func openOutbox(c *cobra.Command, sys system) (*outbox, error) {
	cfg, err := resolve(sys, c.Flags())
	if err != nil {
		return nil, err
	}
	k, err := newConnector(cfg)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	k.impatient = true
	t, log := quiet()
	store, err := k.openStore(c.Context(), t, log)
	if err != nil {
		return nil, err
	}
	wc := cfg.workerConfig(t, log)
	wc.Outbox = k.outbox(wc.Outbox)
	pipeline, err := worker.NewPipeline(wc, store, cfg.program.Handler)
	if err != nil {
		store.Close()
		return nil, withCode(exitUsage, err)
	}
	return &outbox{cfg, store, pipeline, wc.Outbox.Sender}, nil
}

func (o *outbox) close() {
	if o.sender != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = o.sender.Close(ctx) // everything was sent, or said to be not
	}
	o.store.Close()
}

// unsent is an outbox as people and programs read it.
type unsent struct {
	DocumentID string       `json:"documentId"`
	Partition  string       `json:"partition"`
	AgeSeconds float64      `json:"ageSeconds"`
	Attempts   int          `json:"attempts"`
	Sent       bool         `json:"sent,omitempty"`
	Messages   []unsentItem `json:"messages"`
}

type unsentItem struct {
	Name      string          `json:"name"`
	To        string          `json:"to"`
	MessageID string          `json:"messageId"`
	Message   json.RawMessage `json:"message,omitempty"`
}

func unsentOf(u worker.Unsent, whole bool) unsent {
	w := unsent{DocumentID: u.DocumentID, Partition: u.Partition, AgeSeconds: u.Age.Seconds(), Attempts: u.Attempts, Sent: u.Replayed, Messages: []unsentItem{}}
	for _, m := range u.Messages {
		item := unsentItem{Name: m.Name, To: m.To, MessageID: m.MessageID}
		if whole {
			item.Message = m.Line
		}
		w.Messages = append(w.Messages, item)
	}
	return w
}

// destinations names where the messages go, each once.
func (w unsent) destinations() string {
	var all []string
	for _, m := range w.Messages {
		if !slices.Contains(all, m.To) {
			all = append(all, m.To)
		}
	}
	return strings.Join(all, ", ")
}

func newOutboxList(sys system) *cobra.Command {
	var output string
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List what is committed and not sent, the oldest first", Args: needArgs(),
		Long: `List what is committed and not sent, the oldest first. What a delivery is about to send is among it for a moment.

Exit codes: 0 also when nothing waits, 1 when the store cannot be read, 2 when a setting or the command is wrong.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOutbox(c, sys, output, func(ctx context.Context, o *outbox) error {
				found, err := o.oldest(ctx, limit)
				if err != nil {
					return err
				}
				all := []unsent{}
				for _, u := range found {
					all = append(all, unsentOf(u, false))
				}
				if output == "json" {
					return writeJSON(sys.stdout, all)
				}
				return writeWaiting(sys, all, limit)
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 100, "list at most so many")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

func withOutbox(c *cobra.Command, sys system, output string, f func(context.Context, *outbox) error) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	o, err := openOutbox(c, sys)
	if err != nil {
		return err
	}
	defer o.close()
	return f(c.Context(), o)
}

func (o *outbox) oldest(ctx context.Context, limit int) ([]worker.Unsent, error) {
	if limit < 1 {
		return nil, withCode(exitUsage, fmt.Errorf("--limit %d: give at least 1", limit))
	}
	found, err := o.store.Overdue(ctx, 0, limit)
	slices.SortFunc(found, func(a, b worker.Unsent) int { return int(b.Age - a.Age) })
	return found, err
}

func writeWaiting(sys system, all []unsent, limit int) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(sys.stdout, "Nothing waits to be sent.")
		return err
	}
	t := tabwriter.NewWriter(sys.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "AGE\tDOCUMENT ID\tPARTITION\tMESSAGES\tTO\tATTEMPTS")
	for _, w := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%d\n", time.Duration(w.AgeSeconds*float64(time.Second)).Round(time.Second), cell(w.DocumentID, 60), cell(w.Partition, 40),
			len(w.Messages), cell(w.destinations(), 60), w.Attempts)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(all) == limit {
		fmt.Fprintf(sys.stdout, "These are the first %d. More may wait: --limit shows more.\n", limit)
	}
	return nil
}

func newOutboxShow(sys system) *cobra.Command {
	var k keyFlags
	var partition, output string
	c := &cobra.Command{
		Use: "show KEY", Short: "Show the messages that wait for a key, whole", Args: needArgs("KEY"),
		Long: `Show the messages that wait for a key, whole. KEY is as for get.

Exit codes: 0 when something waits, 1 when the store cannot be read, 2 when a setting or the command is wrong, 4 when nothing
waits.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withOutbox(c, sys, output, func(ctx context.Context, o *outbox) error {
				u, err := o.find(ctx, k, partition, args[0])
				if err != nil {
					return err
				}
				w := unsentOf(u, true)
				if output == "json" {
					return writeJSON(sys.stdout, w)
				}
				return writeWhole(sys, w)
			})
		},
	}
	k.bind(c.Flags())
	c.Flags().StringVar(&partition, "partition-value", "", "value of what WORKER_PARTITION names in the message; empty is the partition of the key")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

func writeWhole(sys system, w unsent) error {
	state := "not sent"
	if w.Sent {
		state = "sent, and kept to answer a repeated request"
	}
	facts(sys.stdout, [][2]string{{"document id", w.DocumentID}, {"partition", w.Partition}, {"state", state}, {"attempts", fmt.Sprint(w.Attempts)},
		{"age", time.Duration(w.AgeSeconds * float64(time.Second)).Round(time.Second).String()}})
	for _, m := range w.Messages {
		fmt.Fprintln(sys.stdout)
		facts(sys.stdout, [][2]string{{"message", m.Name}, {"to", m.To}, {"message id", m.MessageID}})
		if _, err := fmt.Fprintf(sys.stdout, "  %s\n", deadletter.VisibleJSON(m.Message)); err != nil {
			return err
		}
	}
	return nil
}

// find returns what waits for a key.
func (o *outbox) find(ctx context.Context, k keyFlags, partition, value string) (worker.Unsent, error) {
	id, err := k.documentID(o.config.worker.Admission.Consumer, value)
	if err != nil {
		return worker.Unsent{}, withCode(exitUsage, err)
	}
	u, err := o.store.Pending(ctx, partitionOf(partition), id)
	if errors.Is(err, worker.ErrNotFound) {
		return u, withCode(exitAbsent, fmt.Errorf("nothing waits for this key: everything of %s was sent, or it sends nothing", id))
	}
	return u, err
}

func newOutboxSend(sys system) *cobra.Command {
	var k keyFlags
	var partition, why, actor string
	var execute bool
	var limit int
	c := &cobra.Command{
		Use: "send [KEY]", Short: "Send what waits now: that of a key, or all", Args: cobra.MaximumNArgs(1),
		Long: `Send what waits now, under the same ids: that of a key, or all, the oldest first. Without --execute it only says what it would
send. What is sent is recorded in the journal, with the reason; the command deadletter log shows it.

Exit codes: 0 when everything was sent, 1 when something was not, 2 when a setting or the command is wrong, 4 when nothing
waits for the key.`,
		RunE: func(c *cobra.Command, args []string) error {
			if execute && strings.TrimSpace(why) == "" {
				return withCode(exitUsage, errors.New("--reason is missing. Say why this is done, such as --reason \"ticket 4711: queue was disabled\""))
			}
			return withOutbox(c, sys, "table", func(ctx context.Context, o *outbox) error {
				if o.sender == nil {
					return withCode(exitUsage, errors.New("WORKER_DESTINATIONS is not set, so that nothing can be sent. Give the settings of the worker"))
				}
				found, err := o.selected(ctx, k, partition, args, limit)
				if err != nil {
					return err
				}
				return o.send(ctx, sys, found, execute, actorOf(sys, actor), why)
			})
		},
	}
	k.bind(c.Flags())
	c.Flags().StringVar(&partition, "partition-value", "", "value of what WORKER_PARTITION names in the message; empty is the partition of the key")
	c.Flags().BoolVar(&execute, "execute", false, "send; without it nothing is done")
	c.Flags().StringVar(&why, "reason", "", "why this is done, kept in the journal")
	c.Flags().StringVar(&actor, "actor", "", "who does it; by default the user of this machine")
	c.Flags().IntVar(&limit, "limit", 1000, "send at most so many, when no KEY is given")
	return c
}

func (o *outbox) selected(ctx context.Context, k keyFlags, partition string, args []string, limit int) ([]worker.Unsent, error) {
	if len(args) == 0 {
		return o.oldest(ctx, limit)
	}
	u, err := o.find(ctx, k, partition, args[0])
	return []worker.Unsent{u}, err
}

// send sends outboxes one after the other, each recorded before and after.
func (o *outbox) send(ctx context.Context, sys system, found []worker.Unsent, execute bool, actor, why string) error {
	sent, failed := 0, 0
	for _, u := range found {
		if ctx.Err() != nil {
			break
		}
		what := fmt.Sprintf("%d message(s) of %s to %s", len(u.Messages), deadletter.Visible(u.DocumentID), deadletter.Visible(unsentOf(u, false).destinations()))
		if !execute {
			fmt.Fprintf(sys.stdout, "would send %s\n", what)
			continue
		}
		if err := o.sendOne(ctx, u, actor, why); err != nil {
			failed++
			fmt.Fprintf(sys.stdout, "not sent: %s: %v\n", what, err)
			continue
		}
		sent++
		fmt.Fprintf(sys.stdout, "sent %s\n", what)
	}
	switch {
	case !execute:
		fmt.Fprintf(sys.stdout, "Nothing was done: %d would be sent. To do it, add --execute, with a --reason.\n", len(found))
	case failed > 0 || ctx.Err() != nil:
		return withCode(exitFailure, fmt.Errorf("%d sent, %d not. What was not is sent by the workers when it can be", sent, len(found)-sent))
	default:
		fmt.Fprintf(sys.stdout, "%d sent.\n", sent)
	}
	return nil
}

func (o *outbox) sendOne(ctx context.Context, u worker.Unsent, actor, why string) error {
	e := deadletter.Entry{ActionID: rand.Text(), Actor: actor, Why: why, Queue: o.config.queue, Program: o.config.program.Name, DocumentID: u.DocumentID, Action: sendOutbox}
	if err := o.record(ctx, e, deadletter.Intended, ""); err != nil {
		return fmt.Errorf("it could not be recorded: %w", err)
	}
	_, err := o.pipeline.Relay(ctx, u)
	if _, moved := errors.AsType[*worker.StateMovedError](err); moved {
		err = nil // a worker has been faster
	}
	state, detail := deadletter.Done, ""
	if err != nil {
		state, detail = deadletter.Failed, err.Error()
	}
	return errors.Join(err, o.record(context.WithoutCancel(ctx), e, state, detail))
}

func (o *outbox) record(ctx context.Context, e deadletter.Entry, s deadletter.State, detail string) error {
	e.ID, e.State, e.At, e.Detail = e.ActionID+"-"+string(s), s, time.Now().UTC(), detail
	return ledger{o.store.Journal()}.Append(ctx, e)
}
