package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

const twoQueues = `{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[{"Name":"orders"},{"Name":"stock"}]}]}}`

// reserving stores an order and reserves stock for it, twice.
func reserving(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Create(worker.Document{Type: "order", Content: m.Body}).Send(
		worker.Outgoing{Name: "reserve-1", To: "stock", Body: []byte(`{"line":1}`)},
		worker.Outgoing{Name: "reserve-2", To: "stock", Body: []byte(`{"line":2}`)},
	), nil
}

// outboxEnv is an environment with a queue stock behind the queue orders.
func outboxEnv(t *testing.T, records bool, life time.Duration, test func(w *env)) {
	t.Helper()
	short := func(q *servicebus.Queue) {
		if q.Name == "orders" {
			q.DefaultMessageTimeToLive = life
		}
	}
	inBubble(t, testenv.Options{Config: strings.NewReader(twoQueues), Queue: "orders", Adjust: short}, func(w *env) {
		w.skipCheck, w.records = true, records // the promises of an outbox are checked by the test
		test(w)
	})
}

// sender starts a worker that reserves stock.
func (w *env) reserver() *runner {
	w.t.Helper()
	n := len(w.runners) // the runner and its door are the next ones
	return w.startWith(worker.HandlerFunc(reserving), nil, func(c *worker.Config) {
		c.Outbox = worker.OutboxConfig{Destinations: []string{"stock"}, Sender: worker.NewSender(func() (*azservicebus.Client, error) { return w.runners[n].door.serviceBus() })}
	})
}

// downstream starts a worker of another program, which stores what it is asked to reserve in the same container.
func (w *env) downstream() *runner {
	w.t.Helper()
	queue := w.Queue.Name
	w.Queue.Name = "stock"
	defer func() { w.Queue.Name = queue }()
	return w.startWith(worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		return worker.Create(worker.Document{Type: "reservation", Content: m.Body}), nil
	}), nil, func(c *worker.Config) { c.Admission.Consumer = "stock" })
}

// settleDown lets everything end, and checks the promises of the outbox for orders with these ids.
func (w *env) settleDown(ids ...string) {
	w.t.Helper()
	down := w.downstream()
	w.waitFor(10*time.Minute, "everything to arrive", func() bool {
		c, err := w.Broker.Counts("stock")
		require.NoError(w.t, err)
		return c.Active+c.Locked == 0 && len(w.stored("reservation")) == 2*len(ids)
	})
	w.waitFor(time.Hour, "everything to be recorded as sent", func() bool { return len(w.stored("outbox")) == 0 })
	time.Sleep(10 * time.Minute) // what would be sent once more is
	down.end()
	require.Empty(w.t, w.deadLetters())
	require.Len(w.t, w.stored("order"), len(ids), "orders")
	require.Len(w.t, w.stored("reservation"), 2*len(ids), "reservations")
	require.Empty(w.t, w.stored("outbox"), "everything was sent")
	dead, err := w.Broker.Messages("stock/$DeadLetterQueue")
	require.NoError(w.t, err)
	require.Empty(w.t, dead, "copies have the same content")
	for _, id := range ids {
		require.Contains(w.t, w.sentIDs(), id+"~part.reserve-1")
		require.Contains(w.t, w.sentIDs(), id+"~part.reserve-2")
	}
}

// stored returns the ids of the documents of a type.
func (w *env) stored(kind string) []string {
	var ids []string
	for _, d := range w.Account.Documents(w.Database, w.Container) {
		if strings.Contains(d.Body, fmt.Sprintf(`"type":%q`, kind)) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// sentIDs returns the ids that reached stock, in order.
func (w *env) sentIDs() []string {
	var ids []string
	for _, e := range w.History.Events() {
		if e.Op == history.Send && e.Entity == "stock" && e.Effect {
			ids = append(ids, e.Key)
		}
	}
	return ids
}

func TestAWorkerWithAnOutboxDiesAtEveryStep(t *testing.T) {
	steps := []struct {
		name string
		rule func() *fault.Rule
	}{
		{"the lock", func() *fault.Rule { return fault.On(history.Lock).Key("1") }},
		{"the commit", func() *fault.Rule { return fault.On(history.ExecuteBatch).Key("1") }},
		{"the send", func() *fault.Rule { return fault.On(history.Send).Entity("stock") }},
		{"the record that it was sent", func() *fault.Rule { return fault.On(history.ExecuteBatch).Key("1~part.outbox") }},
		{"the completion", func() *fault.Rule { return fault.On(history.Complete).Key("1") }},
	}
	for _, records := range []bool{false, true} {
		for _, step := range steps {
			for _, after := range []bool{false, true} {
				for _, life := range []time.Duration{time.Hour, 30 * time.Second} {
					name := fmt.Sprintf("%s, after its effect %t, records %t, incoming lives %v", step.name, after, records, life)
					t.Run(name, func(t *testing.T) {
						outboxEnv(t, records, life, func(w *env) {
							doomed := w.reserver()
							w.waitFor(time.Minute, "ready", func() bool { return doomed.worker.Health().Ready })
							kill := fault.Call(doomed.die)
							rule := step.rule()
							if records && step.name == "the commit" {
								rule = fault.On(history.ExecuteBatch).Key("1~part.inbox-record")
							}
							if after {
								w.Faults.Add(rule.After(kill))
							} else {
								w.Faults.Add(rule.Before(lost(kill)))
							}
							w.send(order("1", `{"amount":40}`))
							w.waitFor(time.Minute, "the worker to die", doomed.door.isCut)
							w.Faults.Clear()
							if life < time.Minute {
								time.Sleep(5 * time.Minute) // the incoming message is gone
								w.waitDrained(time.Minute)
							}
							w.reserver()
							w.waitDrained(5 * time.Minute)
							if life < time.Minute && len(w.stored("order")) == 0 {
								require.Empty(w.t, w.sentIDs(), "nothing is sent for what was not committed")
								return
							}
							w.settleDown("1")
						})
					})
				}
			}
		}
	}
}

func TestAnswersThatGetLostMakeAnOutboxSendNoLess(t *testing.T) {
	for name, rule := range map[string]*fault.Rule{
		"of the commit":         fault.On(history.ExecuteBatch).Key("1"),
		"of the send":           fault.On(history.Send).Entity("stock"),
		"of what records it":    fault.On(history.ExecuteBatch).Key("1~part.outbox"),
		"of every send a while": fault.On(history.Send).Entity("stock").Times(20),
	} {
		t.Run(name, func(t *testing.T) {
			outboxEnv(t, false, time.Hour, func(w *env) {
				w.Faults.Add(rule.After(fault.DropReply()))
				w.reserver()
				w.send(order("1", `{"amount":40}`))
				w.waitDrained(5 * time.Minute)
				w.settleDown("1")
			})
		})
	}
}

func TestFiftyCopiesAndTwoWorkersSendWhatOneSends(t *testing.T) {
	outboxEnv(t, true, time.Hour, func(w *env) {
		w.reserver()
		w.reserver()
		for range 50 {
			w.send(order("1", `{"amount":40}`))
		}
		w.waitDrained(5 * time.Minute)
		ids := w.sentIDs()
		slices.Sort(ids)
		require.Len(w.t, slices.Compact(ids), 2)
		w.settleDown("1")
	})
}

func TestAnOutboxTakesThreeRoundTripsInARow(t *testing.T) {
	outboxEnv(t, false, time.Hour, func(w *env) {
		r := w.reserver()
		w.send(order("first", `{"amount":40}`))
		w.waitDrained(time.Minute)
		from := len(w.History.Events())
		w.send(order("1", `{"amount":40}`))
		w.waitDrained(time.Minute)
		time.Sleep(time.Second)
		var ops []string
		for _, e := range w.History.Events()[from:] {
			switch e.Op {
			case history.ExecuteBatch, history.CreateDocument, history.ReadDocument, history.Complete, history.DeleteDocument:
				ops = append(ops, e.Op)
			case history.Send:
				if e.Entity == "stock" {
					ops = append(ops, e.Op)
				}
			}
		}
		require.Contains(t, []string{"[cosmosdb.batch servicebus.send cosmosdb.batch servicebus.complete]", "[cosmosdb.batch servicebus.send servicebus.complete cosmosdb.batch]"},
			fmt.Sprint(slices.Compact(ops)), "one batch of messages is one send, and the last two are made at once")
		r.end()
	})
}
