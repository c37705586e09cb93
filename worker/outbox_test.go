package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// announcing makes an order of a message, announces it and reserves stock for it.
func announcing(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Create(worker.Document{Type: "order", Content: m.Body}).Send(
		worker.Outgoing{Name: "reserve-1", To: "stock", Body: []byte(`{"line":1}`), Properties: map[string]any{"n": int64(1 << 60), "f": 1.5, "ok": true}},
		worker.Outgoing{Name: "reserve-2", To: "stock", Body: []byte(`{"line":2}`)},
		worker.Outgoing{Name: "accepted", To: "events", Subject: "OrderAccepted", Body: m.Body},
	), nil
}

// outboxBubble is a bubble with the queues stock and gone, and a topic with one subscription.
func outboxBubble(t *testing.T, f func(e *env)) {
	t.Helper()
	q := servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}
	o := servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{{}, {Name: "stock"}},
		Topics: []servicebus.Topic{{Name: "events", Subscriptions: []servicebus.Subscription{{Queue: withName(q, "audit")}}}}}}
	bubbleWith(t, o, func(e *env) {
		e.handler = worker.HandlerFunc(announcing)
		f(e)
	})
}

func withName(q servicebus.Queue, name string) servicebus.Queue {
	q.Name = name
	return q
}

// sending returns a config whose messages go to the destinations of the bubble.
func sending(e *env) worker.Config {
	return worker.Config{Outbox: worker.OutboxConfig{Sender: worker.NewSender(e.client), Destinations: []string{"Events", "stock", "gone"}}}
}

// arrived returns the message ids at a queue or subscription, in order, with their copies.
func (e *env) arrivedAt(entity string) []string {
	e.Helper()
	all, err := e.broker.Messages(entity)
	require.NoError(e, err)
	var ids []string
	for _, m := range all {
		ids = append(ids, m.Key)
	}
	return ids
}

// unique returns a list without what repeats, in the order of first sight.
func unique(ids []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

const auditPath = "events/Subscriptions/audit"

func TestMessagesAreSentOnceTheirOrderIsCommitted(t *testing.T) {
	outboxBubble(t, func(e *env) {
		w := e.start(sending(e))
		e.send("1", `{"amount":40}`)
		e.await(time.Minute, "drained", e.drained)
		require.Equal(e, []string{"1~part.accepted"}, e.arrivedAt(auditPath))
		require.Equal(e, []string{"1~part.reserve-1", "1~part.reserve-2"}, e.arrivedAt("stock"))
		_, err := e.mem.Pending(e.Context(), "", "1")
		require.ErrorIs(e, err, worker.ErrNotFound, "nothing is left")
		require.Equal(e, 3, e.seen(worker.EventSent)[0].Messages)
		e.send("1", `{"amount":40}`)
		e.await(time.Minute, "drained", e.drained)
		require.Len(e, e.arrivedAt("stock"), 2, "a duplicate sends nothing")
		e.send("1", `{"amount":41}`)
		e.await(time.Minute, "drained", e.drained)
		require.Len(e, e.arrivedAt("stock"), 2, "a conflict sends nothing")
		e.end(w)
	})
}

func TestWhatIsSentIsWhatTheHandlerSaid(t *testing.T) {
	outboxBubble(t, func(e *env) {
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			reply := worker.Reply(m, []byte("\xff\x00"))
			reply.Properties = map[string]any{"n": int64(1 << 60), "small": int32(7), "f": 1.5, "when": at}
			return worker.Create(worker.Document{Type: "order", Content: m.Body}).Send(reply,
				worker.Outgoing{Name: "later", To: "stock", Subject: "S", ContentType: "application/json", Body: []byte(`{}`), ScheduledAt: at, TTL: 2 * time.Hour, ReplyTo: "orders"}), nil
		})
		w := e.start(sending(e))
		id, to, session, correlation := "1", "stock", "s-1", "c-1"
		e.sendAll(&azservicebus.Message{MessageID: &id, ReplyTo: &to, ReplyToSessionID: &session, CorrelationID: &correlation, Body: []byte(`{}`),
			ApplicationProperties: map[string]any{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}})
		e.await(time.Minute, "drained", e.drained)
		c, err := e.client()
		require.NoError(e, err)
		r, err := c.NewReceiverForQueue("stock", nil)
		require.NoError(e, err)
		page, err := r.PeekMessages(e.Context(), 10, nil)
		require.NoError(e, err)
		require.Len(e, page, 2)
		reply, later := page[0], page[1]
		require.Equal(e, []byte("\xff\x00"), reply.Body)
		require.Equal(e, "1", *reply.CorrelationID, "a reply is correlated by the id of its request")
		require.Equal(e, "s-1", *reply.SessionID)
		require.Equal(e, int64(1<<60), reply.ApplicationProperties["n"])
		require.Equal(e, int32(7), reply.ApplicationProperties["small"])
		require.Equal(e, at, reply.ApplicationProperties["when"].(time.Time).UTC())
		require.Contains(e, reply.ApplicationProperties["traceparent"], "0af7651916cd43dd8448eb211c80319c")
		require.Equal(e, "c-1", *later.CorrelationID)
		require.Equal(e, "S", *later.Subject)
		require.Equal(e, at, later.ScheduledEnqueueTime.UTC())
		require.Equal(e, 2*time.Hour, *later.TimeToLive)
		require.Equal(e, "orders", *later.ReplyTo)
		require.NoError(e, c.Close(e.Context()))
		e.end(w)
	})
}

func TestARepeatedRequestGetsTheStoredReply(t *testing.T) {
	outboxBubble(t, func(e *env) {
		runs := 0
		e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			runs++
			return worker.Create(worker.Document{Type: "order", Content: m.Body}).Send(worker.Reply(m, fmt.Appendf(nil, `{"run":%d}`, runs))).ReplayReply(time.Hour), nil
		})
		w := e.start(sending(e))
		ask := func() {
			id, to := "1", "stock"
			e.sendAll(&azservicebus.Message{MessageID: &id, ReplyTo: &to, Body: []byte(`{}`)})
			e.await(time.Minute, "drained", e.drained)
		}
		ask()
		ask()
		replies, err := e.broker.Messages("stock")
		require.NoError(e, err)
		require.Len(e, replies, 2)
		require.Equal(e, replies[0].Message.Data, replies[1].Message.Data, "the stored reply, not a new one")
		require.Equal(e, `{"run":1}`, string(replies[1].Message.Data[0]))
		time.Sleep(2 * time.Hour)
		ask()
		require.Len(e, e.arrivedAt("stock"), 2, "its time is over")
		e.end(w)
	})
}

// destinationFaults are what may happen to a destination. Each lasts until clear.
var destinationFaults = []struct {
	name  string
	begin func(e *env)
	end   func(e *env)
}{
	{"disabled", func(e *env) { require.NoError(e, e.broker.SetStatus("stock", servicebus.Disabled)) },
		func(e *env) { require.NoError(e, e.broker.SetStatus("stock", servicebus.Active)) }},
	{"without the right to send", func(e *env) { require.NoError(e, e.broker.SetRights("stock", servicebus.Listen)) },
		func(e *env) { require.NoError(e, e.broker.SetRights("stock", servicebus.Manage)) }},
	{"throttled", func(e *env) {
		e.faults.Add(fault.On(history.Send).Entity("stock").Always().Before(fault.Reject("com.microsoft:server-busy")))
	}, func(e *env) { e.faults.Clear() }},
	{"silent", func(e *env) {
		e.faults.Add(fault.On(history.Send).Entity("stock").Always().Before(fault.Action{Kind: fault.Silence}))
	}, func(e *env) { e.faults.Clear(); e.broker.DropConnections() }},
	{"full", func(e *env) {
		e.faults.Add(fault.On(history.Send).Entity("stock").Always().Before(fault.Reject("amqp:resource-limit-exceeded")))
	}, func(e *env) { e.faults.Clear() }},
}

func TestADestinationThatIsAwayLosesNothingAndHoldsUpNobody(t *testing.T) {
	for _, tt := range destinationFaults {
		t.Run(tt.name, func(t *testing.T) {
			outboxBubble(t, func(e *env) {
				w := e.startProven(sending(e))
				tt.begin(e)
				e.sendOrders("o-", 40)
				e.await(5*time.Minute, "drained", e.drained)
				require.Len(e, unique(e.arrivedAt(auditPath)), 40, "the healthy destination has got all")
				require.Empty(e, e.deadLetters())
				require.Equal(e, 1, e.maxDeliveries(), "no delivery is spent")
				require.Len(e, e.logs.lines("destination_down"), 1, "one line for one incident")
				time.Sleep(time.Hour)
				require.Empty(e, e.arrivedAt("stock"))
				require.NotEmpty(e, e.logs.lines("outbox_waiting"))
				require.Greater(e, e.seen(worker.EventWaiting)[len(e.seen(worker.EventWaiting))-1].Lag, 50*time.Minute)
				tt.end(e)
				e.await(5*time.Minute, "all sent", func() bool { return len(unique(e.arrivedAt("stock"))) == 80 })
				time.Sleep(10 * time.Minute)
				left, err := e.mem.Overdue(e.Context(), 0, 1000)
				require.NoError(e, err)
				require.Empty(e, left)
				require.Len(e, e.logs.lines("destination_up"), 1)
				require.Empty(e, e.deadLetters())
				for i := range 40 {
					require.Less(e, indexOf(e.arrivedAt("stock"), fmt.Sprintf("o-%d~part.reserve-1", i)), indexOf(e.arrivedAt("stock"), fmt.Sprintf("o-%d~part.reserve-2", i)), "in order")
				}
				e.end(w)
			})
		})
	}
}

func indexOf(all []string, s string) int {
	for i, each := range all {
		if each == s {
			return i
		}
	}
	return -1
}

func TestOfTwoRelaysOneSends(t *testing.T) {
	outboxBubble(t, func(e *env) {
		first, second := e.start(sending(e)), e.start(sending(e))
		require.NoError(e, e.broker.SetStatus("stock", servicebus.Disabled))
		e.sendOrders("o-", 20)
		e.await(5*time.Minute, "drained", e.drained)
		require.NoError(e, e.broker.SetStatus("stock", servicebus.Active))
		e.await(10*time.Minute, "all sent", func() bool { return len(unique(e.arrivedAt("stock"))) == 40 })
		time.Sleep(10 * time.Minute)
		require.Len(e, e.arrivedAt("stock"), 40, "nothing is sent twice on purpose")
		e.end(first)
		e.end(second)
	})
}

func TestARelayThatComesTooLateSendsNothing(t *testing.T) {
	outboxBubble(t, func(e *env) {
		require.NoError(e, e.broker.SetStatus("stock", servicebus.Disabled))
		w := e.start(sending(e))
		e.send("1", `{}`)
		e.await(time.Minute, "drained", e.drained)
		e.end(w)
		left, err := e.mem.Overdue(e.Context(), 0, 10)
		require.NoError(e, err)
		require.Len(e, left, 1)
		require.NoError(e, e.broker.SetStatus("stock", servicebus.Active))
		c := sending(e)
		p, err := worker.NewPipeline(c, e.mem, e.handler)
		require.NoError(e, err)
		_, err = p.Relay(e.Context(), left[0])
		require.NoError(e, err)
		_, err = p.Relay(e.Context(), left[0])
		var moved *worker.StateMovedError
		require.ErrorAs(e, err, &moved)
		require.Len(e, e.arrivedAt("stock"), 2)
		require.NoError(e, c.Outbox.Sender.Close(e.Context()))
	})
}

func TestAMessageThatIsStaleSendsNothing(t *testing.T) {
	outboxBubble(t, func(e *env) {
		e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			return worker.Apply(worker.Upsert("p", []byte(`{"v":1}`))).SetVersion("p", "/v", 1).Send(worker.Outgoing{Name: "x", To: "stock", Body: m.Body}), nil
		})
		e.ignored = func(string) bool { return true } // its record alone is committed, which the history of this store does not show
		w := e.start(sending(e))
		e.mem.Put("1", "p", []byte(`{"v":7}`))
		e.send("1", `{}`)
		e.await(time.Minute, "drained", e.drained)
		require.Equal(e, 1, e.count(worker.EventStale))
		time.Sleep(10 * time.Minute)
		require.Empty(e, e.arrivedAt("stock"))
		e.end(w)
	})
}

func TestAMissingDestinationIsNamedAndItsMessagesWait(t *testing.T) {
	outboxBubble(t, func(e *env) {
		e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			return worker.Create(worker.Document{Type: "order", Content: m.Body}).Send(worker.Outgoing{Name: "x", To: "gone", Body: m.Body}), nil
		})
		w := e.start(sending(e))
		e.sendOrders("o-", 3)
		e.await(5*time.Minute, "drained", e.drained)
		require.Empty(e, e.deadLetters())
		require.Equal(e, 3, e.mem.Len())
		lines := e.logs.lines("destination_down")
		require.Len(e, lines, 1)
		require.Contains(e, lines[0]["detail"], "gone")
		left, err := e.mem.Overdue(e.Context(), 0, 10)
		require.NoError(e, err)
		require.Len(e, left, 3)
		e.end(w)
	})
}

func TestMessagesThatMustNotBeSentAreTheHandlersFault(t *testing.T) {
	ok := worker.Outgoing{Name: "x", To: "stock"}
	with := func(change func(o *worker.Outgoing)) worker.Effects {
		o := ok
		change(&o)
		return worker.Create(worker.Document{Type: "order", Content: []byte(`{}`)}).Send(o)
	}
	for _, tt := range []struct {
		name    string
		effects worker.Effects
		want    string
	}{
		{"without a name", with(func(o *worker.Outgoing) { o.Name = "" }), "Name"},
		{"to nowhere", with(func(o *worker.Outgoing) { o.To = "" }), "no To"},
		{"to a queue that the program does not send to", with(func(o *worker.Outgoing) { o.To = "payments" }), "none of the destinations"},
		{"too large", with(func(o *worker.Outgoing) { o.Body = make([]byte, 300<<10) }), "by reference"},
		{"too large by its properties", with(func(o *worker.Outgoing) { o.Properties = map[string]any{"x": strings.Repeat("x", 300<<10)} }), "by reference"},
		{"a property of no type of AMQP", with(func(o *worker.Outgoing) { o.Properties = map[string]any{"x": struct{}{}} }), "AMQP"},
		{"a session that is too long", with(func(o *worker.Outgoing) { o.SessionID = strings.Repeat("s", 129) }), "Shorten"},
		{"a partition key beside another session", with(func(o *worker.Outgoing) { o.SessionID, o.PartitionKey = "a", "b" }), "PartitionKey"},
		{"a negative time to live", with(func(o *worker.Outgoing) { o.TTL = -1 }), "TTL"},
		{"two of one name", worker.Create(worker.Document{Type: "order", Content: []byte(`{}`)}).Send(ok, ok), "unique"},
		{"without a record", worker.Apply(worker.Upsert("a", []byte(`{}`))).Send(ok).WithoutRecord(), "WithoutRecord"},
		{"with an Ignore", worker.Ignore("NotOurs").Send(ok), "Ignore"},
		{"a replay of nothing", worker.Create(worker.Document{Type: "order", Content: []byte(`{}`)}).ReplayReply(time.Hour), "ReplayReply"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			outboxBubble(t, func(e *env) {
				e.handler = worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) { return tt.effects, nil })
				e.send("1", `{}`)
				w := e.start(sending(e))
				e.await(time.Minute, "dead-lettered", func() bool { return len(e.deadLetters()) == 1 })
				require.Equal(e, "InvalidEffects", e.deadLetters()[0].DeadLetterReason)
				require.Contains(e, e.deadLetters()[0].DeadLetterErrorDescription, tt.want)
				require.Zero(e, e.mem.Len())
				e.end(w)
			})
		})
	}
}

// lossyOutbox loses what a test says of the outbox of a store.
type lossyOutbox struct {
	*storetest.Faulty
	sent func() error
}

func (l lossyOutbox) Sent(ctx context.Context, u worker.Unsent) error {
	if err := l.sent(); err != nil {
		return err
	}
	return l.Faulty.Sent(ctx, u)
}

func TestWhatWasSentAndNotRecordedIsSentAgainWithTheSameIDs(t *testing.T) {
	outboxBubble(t, func(e *env) {
		var lost atomic.Bool
		lost.Store(true)
		w, err := worker.New(worker.Config{Observer: e, Outbox: sending(e).Outbox}, worker.NewBroker(e.client, "orders"), lossyOutbox{e.store, func() error {
			if lost.Load() {
				return &worker.UnavailableError{}
			}
			return nil
		}}, e.handler)
		require.NoError(e, err)
		ctx, cancel := context.WithCancel(e.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = w.Run(ctx) }()
		e.send("1", `{}`)
		e.await(time.Minute, "drained", e.drained)
		lost.Store(false)
		e.await(5*time.Minute, "relayed", func() bool { return e.count(worker.EventRelayed) == 1 })
		require.Len(e, e.arrivedAt("stock"), 4)
		require.Len(e, unique(e.arrivedAt("stock")), 2)
		time.Sleep(10 * time.Minute)
		require.Len(e, e.arrivedAt("stock"), 4, "and no more once it is recorded")
		cancel()
		<-done
	})
}
