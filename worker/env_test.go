package worker_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

const dlq = "orders/$DeadLetterQueue"

// env is the embedded broker, a store in memory, and workers over the unmodified client, all in one bubble.
type env struct {
	*testing.T
	broker  *servicebus.Broker
	faults  *fault.Plan
	history *history.Log
	mem     *storetest.Mem
	store   *storetest.Faulty
	handler worker.Handler
	ignored func(messageID string) bool
	logs    *logBook

	mu      sync.Mutex
	events  []worker.Event
	workers []*running
}

// bubble runs f in a bubble with an empty environment, and holds the history against the promises at the end.
func bubble(t *testing.T, q servicebus.Queue, f func(e *env)) {
	t.Helper()
	bubbleWith(t, servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{q}}}, f)
}

func bubbleWith(t *testing.T, o servicebus.Options, f func(e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &env{T: t, faults: fault.Script(), history: history.New(), mem: storetest.NewMem(), logs: &logBook{}}
		e.store = storetest.NewFaulty(&recorded{Mem: e.mem, log: e.history})
		e.handler = worker.HandlerFunc(order)
		for i := range o.Config.Queues {
			o.Config.Queues[i].Name = cmp.Or(o.Config.Queues[i].Name, "orders")
			if o.Config.Queues[i].DefaultMessageTimeToLive == 0 {
				o.Config.Queues[i].DefaultMessageTimeToLive = servicebus.Forever
			}
		}
		o.Faults, o.History = e.faults, e.history
		b, err := servicebus.New(o)
		require.NoError(t, err)
		e.broker = b
		defer b.Close()
		defer e.endAll()
		f(e)
		e.endAll()
		// A client that is closed while it sets up a link leaves the refresh of its tokens behind, until that fails.
		time.Sleep(time.Hour)
		require.NoError(e, history.Check(e.history.Events(), history.Expect{Ignored: e.ignored}))
		require.Empty(t, b.Refusals())
	})
}

// order makes one document of a message.
func order(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
}

// recorded writes what a store does into the history, as the embedded Cosmos DB would.
type recorded struct {
	*storetest.Mem
	log *history.Log
}

func (r *recorded) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	o, err := r.Mem.Commit(ctx, c)
	e := history.Event{Op: history.CreateDocument, Entity: "db/orders", Key: c.DocumentID, Partition: fmt.Sprintf("%q", c.DocumentID)}
	switch {
	case o.Created:
		e.Status, e.Effect = 201, true
		r.log.Add(e)
	case o.Existing != nil:
		e.Status = 409
		r.log.Add(e)
		r.log.Add(history.Event{Op: history.ReadDocument, Entity: e.Entity, Key: e.Key, Partition: e.Partition, Status: 200})
	}
	return o, err
}

func (r *recorded) Find(ctx context.Context, partition, documentID string) (worker.Record, error) {
	record, err := r.Mem.Find(ctx, partition, documentID)
	if err == nil {
		r.log.Add(history.Event{Op: history.ReadDocument, Entity: "db/orders", Key: documentID, Partition: fmt.Sprintf("%q", documentID), Status: 200})
	}
	return record, err
}

// A running worker.
type running struct {
	*worker.Worker
	stop func()
	done chan struct{}
	err  error
}

// client returns a client over a connection of its own to the embedded broker.
func (e *env) client() (*azservicebus.Client, error) {
	return azservicebus.NewClientFromConnectionString(e.broker.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return e.broker.Dial(ctx)
		},
	})
}

// start starts a worker that is stopped at the end of the test at the latest.
func (e *env) start(c worker.Config) *running {
	e.Helper()
	return e.startOver(c, worker.NewBroker(e.client, "orders"))
}

func (e *env) startOver(c worker.Config, b worker.Broker) *running {
	e.Helper()
	if c.Observer == nil {
		c.Observer = e
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewJSONHandler(e.logs, nil))
	}
	c.Retry.Spread = cmp.Or(c.Retry.Spread, time.Second) // a poison message is dead-lettered soon, unless the test is about that
	w, err := worker.New(c, b, e.store, e.handler)
	require.NoError(e, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Worker: w, stop: cancel, done: make(chan struct{})}
	go func() {
		r.err = w.Run(ctx)
		close(r.done)
	}()
	e.workers = append(e.workers, r)
	return r
}

// startProven starts a worker that has committed a message, so that it works without limits. It leaves nothing.
func (e *env) startProven(c worker.Config) *running {
	e.Helper()
	return e.startProvenOver(c, worker.NewBroker(e.client, "orders"))
}

func (e *env) startProvenOver(c worker.Config, b worker.Broker) *running {
	e.Helper()
	handler := e.handler
	e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
		if m.MessageID == "proof" {
			return order(ctx, m)
		}
		return handler.Handle(ctx, m)
	})
	w := e.startOver(c, b)
	e.send("proof", `{"n":1}`)
	e.await(time.Minute, "proven", func() bool { return e.drained() && w.Health().Breaker == "closed" })
	e.mem.Remove("proof")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = nil
	return w
}

// endAll stops every worker, also when the test has failed.
func (e *env) endAll() {
	for _, w := range e.workers {
		w.stop()
		<-w.done
	}
}

// end stops a worker and waits for it.
func (e *env) end(r *running) {
	e.Helper()
	r.stop()
	<-r.done
	synctest.Wait() // the broker notices, too
	require.NoError(e, r.err)
}

// Observe implements [worker.Observer].
func (e *env) Observe(ev worker.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, ev)
}

// seen returns the events of a kind.
func (e *env) seen(k worker.EventKind) []worker.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []worker.Event
	for _, ev := range e.events {
		if ev.Kind == k {
			found = append(found, ev)
		}
	}
	return found
}

func (e *env) count(k worker.EventKind) int { return len(e.seen(k)) }

// send sends a message as an ordinary client would.
func (e *env) send(id, body string) {
	e.Helper()
	e.sendAll(&azservicebus.Message{MessageID: &id, Body: []byte(body)})
}

func (e *env) sendAll(messages ...*azservicebus.Message) {
	e.Helper()
	c, err := e.client()
	require.NoError(e, err)
	s, err := c.NewSender("orders", nil)
	require.NoError(e, err)
	for _, m := range messages {
		require.NoError(e, s.SendMessage(context.Background(), m, nil))
	}
	require.NoError(e, c.Close(context.Background()))
}

// sendOrders sends orders with the ids "<prefix>0" and so on.
func (e *env) sendOrders(prefix string, n int) {
	e.Helper()
	messages := make([]*azservicebus.Message, n)
	for i := range messages {
		id := fmt.Sprintf("%s%d", prefix, i)
		messages[i] = &azservicebus.Message{MessageID: &id, Body: fmt.Appendf(nil, `{"orderId":%q,"amount":40}`, id)}
	}
	e.sendAll(messages...)
}

// await waits in fake time until cond holds, and fails the test when it does not within d.
func (e *env) await(d time.Duration, what string, cond func() bool) {
	e.Helper()
	for end := time.Now().Add(d); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			e.Fatalf("after %v still not: %s\nqueue %+v\nhealth events %v\nlogs\n%s", d, what, e.counts(), e.kinds(), e.logs)
		}
	}
	synctest.Wait()
}

func (e *env) kinds() map[worker.EventKind]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := map[worker.EventKind]int{}
	for _, ev := range e.events {
		m[ev.Kind]++
	}
	return m
}

func (e *env) counts() servicebus.Counts {
	c, err := e.broker.Counts("orders")
	require.NoError(e, err)
	return c
}

// drained reports whether nothing is left in the queue but dead letters.
func (e *env) drained() bool {
	c := e.counts()
	return c.Active+c.Locked+c.Deferred+c.Scheduled == 0
}

// deadLetters returns the dead letters.
func (e *env) deadLetters() []servicebus.Snapshot {
	e.Helper()
	m, err := e.broker.Messages(dlq)
	require.NoError(e, err)
	return m
}

// maxDeliveries returns the highest delivery count with which a message was handed out.
func (e *env) maxDeliveries() int {
	most := 0
	for _, n := range e.deliveries() {
		most = max(most, n)
	}
	return most
}

// deliveries returns the delivery count of each message that was handed out in peek-lock, as its receiver saw it last. A
// message that the client released by itself, because it came between two receive calls, does not count.
func (e *env) deliveries() map[string]int {
	n := map[string]int{}
	for _, ev := range e.history.Events() {
		if ev.Op == history.Lock && ev.Effect {
			n[ev.Key] = max(n[ev.Key], ev.Delivery)
		}
	}
	return n
}

// ops counts the effects of an operation of the broker.
func (e *env) ops(op string) int {
	return e.history.Count(func(ev history.Event) bool { return ev.Op == op && ev.Effect })
}

// logBook keeps log lines. It is safe for concurrent use.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// lines returns the log lines of an event.
func (l *logBook) lines(event string) []map[string]any {
	var found []map[string]any
	for line := range bytes.Lines([]byte(l.String())) {
		m := map[string]any{}
		if json.Unmarshal(line, &m) == nil && m["event"] == event {
			found = append(found, m)
		}
	}
	return found
}

// parts returns the parts that are not ready.
func parts(h worker.Health) []string {
	var p []string
	for _, problem := range h.Problems {
		p = append(p, problem.Part)
	}
	slices.Sort(p)
	return p
}
