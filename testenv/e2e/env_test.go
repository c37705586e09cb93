package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/shop"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/testenv/traffic"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

// env is one environment in a bubble, the workers on it, and what was sent.
type env struct {
	*testenv.Env
	t    *testing.T
	seed uint64
	// expect is what the history is held against at the end. Unless a test says otherwise a message may be dead-lettered only
	// for a conflict or because it cannot be read.
	expect history.Expect
	// records tells that each message gets an inbox record of its own.
	records bool
	// skew is how far the clocks of the workers are behind that are started next.
	skew time.Duration
	// skipAudit is for tests whose messages are not a stream of orders.
	skipAudit bool
	// skipCheck is for tests that mean to break a promise and look for it themselves.
	skipCheck bool
	// evidence is the folder for the history of a broken promise; empty means the system's for temporary files.
	evidence string

	runners []*runner
	closers []func() error
	sent    map[int64]traffic.Message
}

// inBubble runs a test in a bubble on an environment whose history is checked at its end.
func inBubble(t *testing.T, o testenv.Options, test func(w *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t, o)
		defer w.leave()
		test(w)
		w.finish()
	})
}

// newEnv makes an environment without duplicate detection, so that every copy reaches the worker.
func newEnv(t *testing.T, o testenv.Options) *env {
	t.Helper()
	adjust := o.Adjust
	o.Adjust = func(q *servicebus.Queue) {
		q.RequiresDuplicateDetection = false
		if adjust != nil {
			adjust(q)
		}
	}
	embedded, err := testenv.New(o)
	require.NoError(t, err)
	w := &env{Env: embedded, t: t, sent: map[int64]traffic.Message{}}
	w.expect.Drained = true
	return w
}

// finish stops what still runs, checks, and closes the environment.
func (w *env) finish() {
	w.t.Helper()
	for _, r := range w.runners {
		r.end()
	}
	for _, c := range w.closers {
		require.NoError(w.t, c())
	}
	if !w.skipCheck {
		require.NoError(w.t, w.check())
	}
}

// check holds the whole history against every promise.
func (w *env) check() error {
	run := w.run()
	if !w.skipAudit {
		w.expect = run.Expect(w.expect)
	}
	w.expect.Stored, w.expect.LockDuration = w.Stored(), w.Queue.LockDuration
	if w.expect.Guard == nil {
		w.expect.Guard = traffic.Guard
	}
	if w.expect.DocumentID == nil {
		w.expect.DocumentID = documentID
	}
	err := history.Verify(w.History, w.expect, w.seed, w.evidence)
	if w.skipAudit {
		return err
	}
	for _, wrong := range run.Audit() {
		err = errors.Join(err, fmt.Errorf("seed %d: %s", w.seed, wrong))
	}
	return err
}

// run is what was sent and what became of it.
func (w *env) run() traffic.Run {
	r := traffic.Run{Sent: w.sent, Queue: w.Queue.Name, Events: w.History.Events(), Documents: map[string]string{}, Records: w.records, Words: words}
	for _, d := range w.Account.Documents(w.Database, w.Container) {
		r.Documents[d.ID] = d.Body
	}
	return r
}

// leftBehind is longer than any call of a worker that was cut off from the world goes on.
const leftBehind = 10 * time.Minute

// leave ends everything, also after a failure. What a dead worker left behind still waits for answers, and the bubble's
// clock stands still once the test has returned.
func (w *env) leave() {
	for _, r := range w.runners {
		r.stop()
	}
	if err := w.Env.Close(); err != nil {
		w.t.Error(err)
	}
	time.Sleep(leftBehind)
}

// documentID is the worker's own mapping from a MessageId.
func documentID(messageID string) string { return identity.Text(messageID).DocumentID() }

// words are the reasons that this project promises.
var words = traffic.Words{
	Conflict:   "ContentConflict",
	Unreadable: []string{"EmptyBody", "NotJSON", "BodyNotObject", "InvalidUTF8", "DuplicateName"},
}

// send puts messages on the queue and returns the sequence number of the last.
func (w *env) send(messages ...traffic.Message) int64 {
	w.t.Helper()
	var last int64
	for _, m := range messages {
		if m.Before != "" {
			require.NoError(w.t, w.Account.Seed(w.Database, w.Container, m.Before))
		}
		seq, err := w.Broker.Send(w.Queue.Name, amqp.Message{
			Properties: &amqp.Properties{MessageID: m.ID, Subject: &m.Type}, ApplicationProperties: amqp.Map{{Key: traffic.EntityProperty, Value: m.Entity}},
			BodyKind: amqp.BodyData, Data: [][]byte{m.Body},
		})
		require.NoError(w.t, err)
		w.sent[seq], last = m, seq
	}
	return last
}

// order is a readable message.
func order(id, body string) traffic.Message {
	return traffic.Message{ID: id, Body: []byte(body), Kind: traffic.New}
}

// waitDrained lets time pass until nothing is on the queue any more.
func (w *env) waitDrained(limit time.Duration) {
	w.t.Helper()
	w.waitFor(limit, "the queue to be empty", func() bool {
		c, err := w.Broker.Counts(w.Queue.Name)
		require.NoError(w.t, err)
		return c.Active+c.Locked+c.Deferred+c.Scheduled == 0
	})
}

// waitFor lets time pass until a condition holds.
func (w *env) waitFor(limit time.Duration, what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		require.True(w.t, time.Now().Before(end), "waited %v of the bubble's time for %s", limit, what)
	}
}

// deadLetters returns the dead-letter queue.
func (w *env) deadLetters() []servicebus.Snapshot {
	w.t.Helper()
	messages, err := w.Broker.Messages(w.Queue.Name + "/$DeadLetterQueue")
	require.NoError(w.t, err)
	return messages
}

// count counts events of an operation about a key.
func (w *env) count(op, key string, effect bool) int {
	return w.History.Count(func(e history.Event) bool { return e.Op == op && e.Key == key && e.Effect == effect })
}

// A runner is a worker in the bubble that can be stopped like a process, or die like one.
type runner struct {
	t      *testing.T
	worker *worker.Worker
	store  *cosmosstore.Store
	door   *doorway
	stop   context.CancelFunc
	done   chan error
	ended  bool

	mu     sync.Mutex
	events []worker.Event
}

// start starts a worker with the handler of the orders.
func (w *env) start(adjust ...func(*worker.Config)) *runner {
	w.t.Helper()
	return w.startWith(worker.HandlerFunc(shop.Order), nil, adjust...)
}

// startWith starts a worker with a handler of the test, and with a store of the test around the real one.
func (w *env) startWith(h worker.Handler, wrap func(worker.Store) worker.Store, adjust ...func(*worker.Config)) *runner {
	w.t.Helper()
	r := &runner{t: w.t, door: &doorway{env: w.Env}, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	store, err := cosmosstore.Open(ctx, cosmosstore.Options{
		Endpoint: "http://localhost:8081/", Key: cosmosstore.Key(w.Account.Key()), Database: w.Database, Container: w.Container,
		Transport: skewed{r.door, w.skew}, InboxRecords: w.records,
	})
	require.NoError(w.t, err)
	r.store = store
	config := worker.Config{
		LockDuration: w.Queue.LockDuration, MaxDeliveryCount: w.Queue.MaxDeliveryCount,
		Observer: worker.ObserverFunc(r.observe),
	}
	config.Retry.Spread = time.Second // a poison message is dead-lettered soon, unless the test is about that
	for _, a := range adjust {
		a(&config)
	}
	var used worker.Store = store
	if wrap != nil {
		used = wrap(store)
	}
	r.worker, err = worker.New(config, worker.NewBroker(r.door.serviceBus, w.Queue.Name), used, h)
	require.NoError(w.t, err)
	go func() { r.done <- r.worker.Run(ctx) }()
	w.runners = append(w.runners, r)
	return r
}

func (r *runner) observe(e worker.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// saw counts the events of a kind that satisfy every filter.
func (r *runner) saw(kind worker.EventKind, filters ...func(worker.Event) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Kind == kind && !slices.ContainsFunc(filters, func(f func(worker.Event) bool) bool { return !f(e) }) {
			n++
		}
	}
	return n
}

// die cuts the worker off from the world, as SIGKILL does: whatever it still tries has no effect. It never blocks, so that
// it can be called from within an emulator. The contexts end a moment after the connections: at the same instant, go-amqp 1.7
// may leave a send behind that waits for a sender's loop which has ended, and a bubble must have no such goroutine.
func (r *runner) die() {
	r.door.cut()
	time.AfterFunc(time.Millisecond, func() {
		r.stop()
		r.worker.Abort()
	})
}

// end asks the worker to stop, unless it was, and waits for it.
func (r *runner) end() {
	r.t.Helper()
	if r.ended {
		return
	}
	r.ended = true
	r.stop()
	require.NoError(r.t, <-r.done)
	require.NoError(r.t, r.store.Close())
}

// doorway is a worker's only way to the emulators, until it is cut.
type doorway struct {
	env *testenv.Env
	// storeDown cuts the way to the store alone, while it is set.
	storeDown atomic.Bool

	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

var errCut = errors.New("this worker is dead")

func (d *doorway) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	for _, c := range d.conns {
		_ = c.Close()
	}
}

func (d *doorway) isCut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shut
}

// serviceBus returns a client with a connection of its own.
func (d *doorway) serviceBus() (*azservicebus.Client, error) {
	return azservicebus.NewClientFromConnectionString(d.env.Broker.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return d.dial(ctx) },
	})
}

func (d *doorway) dial(ctx context.Context) (net.Conn, error) {
	if d.isCut() {
		return nil, errCut
	}
	c, err := d.env.Dial(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		_ = c.Close()
		return nil, errCut
	}
	d.conns = append(d.conns, c)
	return c, nil
}

// Do sends a request to Cosmos DB. The answer to a worker that has died meanwhile reaches nobody.
func (d *doorway) Do(r *http.Request) (*http.Response, error) {
	if d.isCut() || d.storeDown.Load() {
		return nil, errCut
	}
	resp, err := d.env.Account.Transport().Do(r)
	if d.isCut() {
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errCut
	}
	return resp, err
}
