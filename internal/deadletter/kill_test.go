package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

var errKilled = errors.New("the process was killed")

// process is a program that is killed at one of its calls to broker, store or ledger: nothing that it does after that has
// any effect. At zero it is not killed.
type process struct {
	at    int
	after bool // the call still has its effect, and nobody hears of it
	end   func()

	mu     sync.Mutex
	calls  int
	killed bool
	name   string // of the call
}

// call runs do unless the process is dead, and kills it when its time has come.
func call[T any](p *process, name string, do func() (T, error)) (T, error) {
	var none T
	p.mu.Lock()
	if p.killed {
		p.mu.Unlock()
		return none, errKilled
	}
	p.calls++
	dies := p.calls == p.at
	if dies {
		p.killed, p.name = true, name
		defer p.end()
	}
	p.mu.Unlock()
	if dies && !p.after {
		return none, errKilled
	}
	v, err := do()
	if dies {
		return none, errKilled
	}
	return v, err
}

func do(p *process, name string, f func() error) error {
	_, err := call(p, name, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

type mortalBroker struct {
	p *process
	b deadletter.Broker
}

func (m mortalBroker) Peek(ctx context.Context, from int64, most int) ([]*deadletter.DeadLetter, error) {
	return call(m.p, "peek", func() ([]*deadletter.DeadLetter, error) { return m.b.Peek(ctx, from, most) })
}

func (m mortalBroker) PeekQueue(ctx context.Context, from int64, most int) ([]*deadletter.DeadLetter, error) {
	return call(m.p, "peek the queue", func() ([]*deadletter.DeadLetter, error) { return m.b.PeekQueue(ctx, from, most) })
}

func (m mortalBroker) Lock(ctx context.Context, most int, wait time.Duration) ([]deadletter.LockedMessage, error) {
	return call(m.p, "lock", func() ([]deadletter.LockedMessage, error) { return m.b.Lock(ctx, most, wait) })
}

func (m mortalBroker) LockDeferred(ctx context.Context, n int64) (deadletter.LockedMessage, error) {
	return call(m.p, "lock deferred", func() (deadletter.LockedMessage, error) { return m.b.LockDeferred(ctx, n) })
}

func (m mortalBroker) Unlock(ctx context.Context) error {
	return do(m.p, "unlock", func() error { return m.b.Unlock(ctx) })
}

func (m mortalBroker) Renew(ctx context.Context, locks []deadletter.LockToken) error {
	return do(m.p, "renew", func() error { return m.b.Renew(ctx, locks) })
}

func (m mortalBroker) Complete(ctx context.Context, lock deadletter.LockToken) error {
	return do(m.p, "complete", func() error { return m.b.Complete(ctx, lock) })
}

func (m mortalBroker) Release(ctx context.Context, locks []deadletter.LockToken) error {
	return do(m.p, "release", func() error { return m.b.Release(ctx, locks) })
}

func (m mortalBroker) Send(ctx context.Context, encoded []byte) error {
	return do(m.p, "send", func() error { return m.b.Send(ctx, encoded) })
}

type mortalStore struct {
	p *process
	worker.Store
}

func (m mortalStore) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	return call(m.p, "commit", func() (worker.Outcome, error) { return m.Store.Commit(ctx, c) })
}

func (m mortalStore) Find(ctx context.Context, partition, id string) (worker.Record, error) {
	return call(m.p, "find", func() (worker.Record, error) { return m.Store.Find(ctx, "", id) })
}

type mortalLedger struct {
	p *process
	deadletter.Ledger
}

func (m mortalLedger) Append(ctx context.Context, e deadletter.Entry) error {
	return do(m.p, "record "+string(e.State), func() error { return m.Ledger.Append(ctx, e) })
}

func (m mortalLedger) Entries(ctx context.Context, q deadletter.Query) iter.Seq2[deadletter.Entry, error] {
	if err := do(m.p, "read", func() error { return nil }); err != nil {
		return func(yield func(deadletter.Entry, error) bool) { yield(deadletter.Entry{}, err) }
	}
	return m.Ledger.Entries(ctx, q)
}

// process returns the reviewer of a process.
func (w *world) process(p *process) *deadletter.Reviewer {
	w.t.Helper()
	b := w.broker()
	if end := p.end; end != nil {
		p.end = func() { end(); b.Close() } // and its connection with it
	}
	pipeline, err := worker.NewPipeline(worker.Config{}, mortalStore{p, w.mem}, worker.HandlerFunc(handle))
	require.NoError(w.t, err)
	return deadletter.NewReviewer(mortalBroker{p, b}, pipeline, mortalLedger{p, w.ledger}, w.settings)
}

// killPlan buries two messages for each action and returns a plan for them.
func (w *world) killPlan() []deadletter.PlanStep {
	var steps []deadletter.PlanStep
	for i := range 6 {
		action := []deadletter.Action{deadletter.Discard, deadletter.Reprocess, deadletter.Resubmit}[i/2]
		id := fmt.Sprintf("%s-%d", action, i)
		if action == deadletter.Discard {
			w.apply(id, `{"a":1}`)
		}
		n := w.bury("X", message(id, `{"a":1}`))
		item, err := w.review.Find(w.t.Context(), n)
		require.NoError(w.t, err)
		steps = append(steps, deadletter.PlanStep{Sequence: n, Action: action, Verdict: item.Verdict.Kind, MessageID: id, EnqueuedAt: item.DeadLetter.EnqueuedAt})
	}
	return steps
}

// nothingIsLost holds at every moment: what is not in the dead letters any more is stored, or on its way to be.
func (w *world) nothingIsLost(steps []deadletter.PlanStep) {
	w.t.Helper()
	there := map[int64]bool{}
	for _, l := range w.messages(dead) {
		there[l.Sequence] = true
	}
	copies := w.copies()
	for _, s := range steps {
		applied := w.mem.Creations(s.MessageID)
		require.LessOrEqual(w.t, applied, 1, "%s is applied twice", s.MessageID)
		if !there[s.Sequence] {
			require.Positive(w.t, applied+copies[s.MessageID], "%s is lost", s.MessageID)
			require.Contains(w.t, w.ledger.states(s.Sequence), deadletter.Intended, "%s was removed without a record", s.MessageID)
		}
	}
}

func (w *world) copies() map[string]int {
	w.t.Helper()
	copies := map[string]int{}
	for _, l := range w.messages("orders") {
		id, _ := l.MessageID()
		copies[id]++
	}
	return copies
}

func TestAKillAtAnyStepLosesNothingAndDoublesNothing(t *testing.T) {
	total := 0
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		steps, p := w.killPlan(), &process{}
		s, err := w.process(p).Apply(t.Context(), oneByOne(steps))
		require.NoError(t, err)
		require.Equal(t, map[deadletter.Result]int{deadletter.Discarded: 2, deadletter.Applied: 2, deadletter.Resubmitted: 2}, s.Counts)
		total = p.calls
	})
	require.Greater(t, total, 30)
	struck := map[string]bool{}
	for at := 1; at <= total; at++ {
		for _, after := range []bool{false, true} {
			p := &process{at: at, after: after}
			t.Run(fmt.Sprintf("call %d, after its effect %t", at, after), func(t *testing.T) {
				inBubble(t, setup{}, func(t *testing.T, w *world) { killAndGoOn(t, w, p) })
			})
			struck[p.name] = true
		}
	}
	for _, name := range []string{"peek", "lock", "find", "record intended", "commit", "send", "record sent", "complete", "record done", "unlock", "read"} {
		require.True(t, struck[name], "no process was killed at %q", name)
	}
}

// oneByOne makes the order of the calls the same each time.
func oneByOne(steps []deadletter.PlanStep) deadletter.Application {
	a := application(steps)
	a.Pace.Concurrency = 1
	return a
}

func killAndGoOn(t *testing.T, w *world, p *process) {
	steps := w.killPlan()
	ctx, end := context.WithCancel(t.Context())
	p.end = end
	_, _ = w.process(p).Apply(ctx, oneByOne(steps))
	w.nothingIsLost(steps)
	time.Sleep(2 * time.Minute) // the locks of the dead end
	s, err := w.process(&process{}).Apply(t.Context(), application(steps))
	require.NoError(t, err)
	w.nothingIsLost(steps)
	require.Zero(t, s.Failed())
	require.Zero(t, w.count(dead).Total(), "a second run finishes: %+v", s)
	copies := w.copies()
	for _, step := range steps {
		if step.Action == deadletter.Resubmit {
			// Only between the send and its record can a copy be sent again. The worker applies it once.
			most := 1
			if p.name == "send" || p.name == "record sent" {
				most = 2
			}
			require.Positive(t, copies[step.MessageID], "killed at %s", p.name)
			require.LessOrEqual(t, copies[step.MessageID], most, "killed at %s", p.name)
			continue
		}
		require.Equal(t, 1, w.mem.Creations(step.MessageID))
	}
	require.Zero(t, w.history.Count(func(e history.Event) bool { return e.Op == history.DeadLetter && e.Note == "MaxDeliveryCountExceeded" }))
}
