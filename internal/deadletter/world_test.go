package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/amqpbroker"
	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

const dead = "orders/$DeadLetterQueue"

// world is an embedded Service Bus, a store and a ledger in memory, and the worker's pipeline between them.
type world struct {
	*servicebus.Broker
	t        *testing.T
	faults   *fault.Plan
	history  *history.Log
	mem      *storetest.Mem
	store    *storetest.Faulty
	ledger   *memoryLedger
	pipeline *worker.Pipeline
	settings deadletter.Settings
	patience time.Duration // of act
	// review is the reviewer of the test; others are made with reviewer.
	review *deadletter.Reviewer
}

type setup struct {
	queue    func(*servicebus.Queue)
	broker   func(*servicebus.Options)
	settings func(*deadletter.Settings)
}

func inBubble(t *testing.T, s setup, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		f(t, w)
		require.Empty(t, w.Refusals(), "the review must use only what the embedded Service Bus implements")
	})
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, faults: fault.Script(), history: history.New(), mem: storetest.NewMem(), ledger: &memoryLedger{}}
	queue := servicebus.Queue{Name: "orders", DefaultMessageTimeToLive: servicebus.Forever, DeadLetteringOnMessageExpiration: true}
	if s.queue != nil {
		s.queue(&queue)
	}
	o := servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{queue}}, Faults: w.faults, History: w.history}
	if s.broker != nil {
		s.broker(&o)
	}
	var err error
	w.Broker, err = servicebus.New(o)
	require.NoError(t, err)
	t.Cleanup(w.Broker.Close)
	w.store = storetest.NewFaulty(w.mem)
	w.settings = deadletter.Settings{Queue: "orders", Duplicates: deadletter.DuplicateDetection{Known: true}}
	if s.settings != nil {
		s.settings(&w.settings)
	}
	w.pipeline, err = worker.NewPipeline(worker.Config{}, w.store, worker.HandlerFunc(handle))
	require.NoError(t, err)
	w.review = w.reviewer()
	return w
}

// handle rejects what says so, and makes one document of everything else.
func handle(_ context.Context, m worker.Message) (worker.Effects, error) {
	var body struct{ Reject string }
	if json.Unmarshal(m.Body, &body) == nil && body.Reject != "" {
		return worker.Effects{}, worker.Reject("TestRejects", errors.New(body.Reject))
	}
	return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
}

// reviewer is another program that looks at the same queue.
func (w *world) reviewer() *deadletter.Reviewer {
	w.t.Helper()
	return deadletter.NewReviewer(w.broker(), w.pipeline, w.ledger, w.settings)
}

func (w *world) broker() *amqpbroker.Broker {
	w.t.Helper()
	b, err := amqpbroker.New(amqpbroker.Options{ConnectionString: w.ConnectionString("embedded.test"), Queue: "orders", Dial: w.Dial, CallTimeout: 5 * time.Second})
	require.NoError(w.t, err)
	w.t.Cleanup(b.Close)
	return b
}

// forwardedBroker reaches what lies in the queue itself.
func (w *world) forwardedBroker() *amqpbroker.Broker {
	w.t.Helper()
	b, err := amqpbroker.New(amqpbroker.Options{ConnectionString: w.ConnectionString("embedded.test"), Queue: "orders", Forwarded: true, Dial: w.Dial, CallTimeout: 5 * time.Second})
	require.NoError(w.t, err)
	w.t.Cleanup(b.Close)
	return b
}

func message(id, body string) *amqp.Message {
	m := amqp.NewMessage([]byte(body))
	m.Properties = &amqp.MessageProperties{MessageID: id}
	return m
}

// bury puts a message into the dead letters for a reason, and returns its sequence number. It is done by hand with the
// client library alone, so that any property can stand there.
func (w *world) bury(reason any, m *amqp.Message) int64 {
	w.t.Helper()
	encoded, err := m.MarshalBinary()
	require.NoError(w.t, err)
	sequence, err := w.SendEncoded("orders", encoded)
	require.NoError(w.t, err)
	w.buryAll(reason)
	return sequence
}

// buryAll dead-letters everything in the queue.
func (w *world) buryAll(reason any) {
	w.t.Helper()
	ctx := w.t.Context()
	c := w.connect()
	defer func() { _ = c.Close() }()
	session, err := c.NewSession(ctx, nil)
	require.NoError(w.t, err)
	r, err := session.NewReceiver(ctx, "orders", &amqp.ReceiverOptions{Credit: 200, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
	require.NoError(w.t, err)
	for w.count("orders").Active+w.count("orders").Locked > 0 {
		m, err := r.Receive(ctx, nil)
		require.NoError(w.t, err)
		require.NoError(w.t, r.RejectMessage(ctx, m, &amqp.Error{Condition: "com.microsoft:dead-letter", Info: map[string]any{"DeadLetterReason": reason}}))
	}
}

// connect opens a connection that may do everything.
func (w *world) connect() *amqp.Conn {
	w.t.Helper()
	c, err := w.authorized(w.t.Context())
	require.NoError(w.t, err)
	return c
}

func (w *world) count(path string) servicebus.Counts {
	w.t.Helper()
	c, err := w.Counts(path)
	require.NoError(w.t, err)
	return c
}

// messages returns what lies at a path.
func (w *world) messages(path string) []*deadletter.DeadLetter {
	w.t.Helper()
	snapshots, err := w.Messages(path)
	require.NoError(w.t, err)
	var out []*deadletter.DeadLetter
	for _, s := range snapshots {
		out = append(out, deadletter.Parse(s.Encoded))
	}
	return out
}

// list returns every dead letter with its verdict, by MessageId.
func (w *world) list(f deadletter.Filter) []deadletter.Item {
	w.t.Helper()
	var out []deadletter.Item
	for item, err := range w.review.List(w.t.Context(), f) {
		require.NoError(w.t, err)
		out = append(out, item)
	}
	return out
}

// apply stores the message, as the worker would have.
func (w *world) apply(id, body string) {
	w.t.Helper()
	r := w.pipeline.Process(w.t.Context(), deadletter.Parse(encode(w.t, message(id, body))).Received())
	require.True(w.t, r.Committed(), "%+v", r)
}

func encode(t *testing.T, m *amqp.Message) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	require.NoError(t, err)
	return b
}

func command(a deadletter.Action) deadletter.Command {
	return deadletter.Command{Action: a, Actor: "ann", Why: "ticket 7"}
}

// act carries out a command on some messages and returns the outcomes in the order of their numbers.
func (w *world) act(o deadletter.Command, sequences ...int64) []deadletter.Outcome {
	w.t.Helper()
	o.Patience = w.patience
	if len(sequences) == 1 {
		one, err := w.review.Act(w.t.Context(), o, sequences[0])
		require.NoError(w.t, err)
		return []deadletter.Outcome{one}
	}
	var out []deadletter.Outcome
	a := deadletter.Application{Command: o, Outcome: func(x deadletter.Outcome) { out = append(out, x) }}
	for _, n := range slices.Sorted(slices.Values(sequences)) {
		a.Steps = append(a.Steps, deadletter.PlanStep{Sequence: n, Action: o.Action})
	}
	_, err := w.review.Apply(w.t.Context(), a)
	require.NoError(w.t, err)
	slices.SortFunc(out, func(a, b deadletter.Outcome) int { return int(a.Sequence - b.Sequence) })
	return out
}

// imported imports one message and returns what came of it.
func imported(t *testing.T, r *deadletter.Reviewer, o deadletter.Command, l *deadletter.DeadLetter) (out deadletter.Outcome) {
	t.Helper()
	_, err := r.Import(t.Context(), deadletter.Application{Command: o, Outcome: func(x deadletter.Outcome) { out = x }}, []*deadletter.DeadLetter{l})
	require.NoError(t, err)
	return out
}

func (w *world) dryImport(o deadletter.Command, l *deadletter.DeadLetter) (out deadletter.Outcome) {
	w.t.Helper()
	require.NoError(w.t, w.review.DryRunImport(w.t.Context(), o, []*deadletter.DeadLetter{l}, func(x deadletter.Outcome) { out = x }))
	return out
}

// memoryLedger keeps entries in memory.
type memoryLedger struct {
	mu      sync.Mutex
	entries []deadletter.Entry
	// fail is asked before each entry is added; nil is never.
	fail func(deadletter.Entry) error
}

func (l *memoryLedger) Append(ctx context.Context, e deadletter.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.fail != nil {
		if err := l.fail(e); err != nil {
			return err
		}
	}
	if e.Actor == "" || e.Why == "" || e.ID == "" || e.ActionID == "" || e.At.IsZero() {
		return fmt.Errorf("an entry that says too little: %+v", e)
	}
	l.entries = append(l.entries, e)
	return nil
}

func (l *memoryLedger) Entries(_ context.Context, q deadletter.Query) iter.Seq2[deadletter.Entry, error] {
	return func(yield func(deadletter.Entry, error) bool) {
		l.mu.Lock()
		entries := slices.Clone(l.entries)
		l.mu.Unlock()
		for _, e := range slices.Backward(entries) {
			if q.Matches(e) && !yield(e, nil) {
				return
			}
		}
	}
}

// states returns what the ledger says of one message.
func (l *memoryLedger) states(sequence int64) []deadletter.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []deadletter.State
	for _, e := range l.entries {
		if e.Sequence == sequence {
			out = append(out, e.State)
		}
	}
	return out
}
