package e2e_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/orderworker/orderworker/internal/shop"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/testenv/traffic"
	"github.com/orderworker/orderworker/worker"
)

// The tests of this file are the rows of the settlement table: what a message came to, and how it is settled.

func TestWhatIsKnownToBeCommittedIsCompleted(t *testing.T) {
	const body, lined = `{"amount":40}`, `{"amount":40,"lines":[{"sku":"a"},{"sku":"b"}]}`
	tests := []struct {
		name   string
		faults []*fault.Rule
		send   []traffic.Message
		want   map[worker.EventKind]int
		stored int
	}{
		{name: "created", send: []traffic.Message{order("1", body)}, want: map[worker.EventKind]int{worker.EventCreated: 1}, stored: 1},
		{name: "created with its lines", send: []traffic.Message{order("1", lined)}, want: map[worker.EventKind]int{worker.EventCreated: 1}, stored: 3},
		{name: "its own write, of which the answer was lost", send: []traffic.Message{order("1", body)}, stored: 1,
			faults: []*fault.Rule{fault.On(history.CreateDocument).Key("1").After(fault.DropReply())}, want: map[worker.EventKind]int{worker.EventOwn: 1}},
		{name: "its own write, answered with an error after the effect", send: []traffic.Message{order("1", body)}, stored: 1,
			faults: []*fault.Rule{fault.On(history.CreateDocument).Key("1").After(fault.Reply(503, 0))}, want: map[worker.EventKind]int{worker.EventOwn: 1}},
		{name: "its own batch, of which the answer was lost", send: []traffic.Message{order("1", lined)}, stored: 3,
			faults: []*fault.Rule{fault.On(history.ExecuteBatch).After(fault.DropReply())}, want: map[worker.EventKind]int{worker.EventOwn: 1}},
		{name: "a duplicate, written in another way", send: []traffic.Message{order("1", body), order("1", "{ \"amount\" : 4e1 }\n")}, stored: 1,
			want: map[worker.EventKind]int{worker.EventCreated: 1, worker.EventDuplicate: 1}},
		{name: "a duplicate with lines", send: []traffic.Message{order("1", lined), order("1", lined)}, stored: 3,
			want: map[worker.EventKind]int{worker.EventCreated: 1, worker.EventDuplicate: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, testenv.Options{Faults: fault.Script(tt.faults...)}, func(w *env) {
				r := w.start()
				w.send(tt.send...)
				w.waitDrained(time.Minute)
				r.end()
				for kind, n := range tt.want {
					require.Equal(t, n, r.saw(kind), kind)
				}
				require.Len(t, w.Stored(), tt.stored)
				require.Empty(t, w.deadLetters())
			})
		})
	}
}

func TestOfTwoContentsUnderOneIDTheFirstStaysAndTheSecondIsPutAside(t *testing.T) {
	inBubble(t, testenv.Options{}, func(w *env) {
		reader := metric.NewManualReader()
		r := w.start(func(c *worker.Config) { c.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader)) })
		w.send(order("1042", `{"orderId":"1042","amount":40,"note":"x"}`))
		w.waitDrained(time.Minute)
		before, ok := w.Account.Document("orders", "orders", "1042")
		require.True(t, ok)
		second := w.send(order("1042", `{"orderId":"1042","amount":400,"note":"x"}`))
		w.waitDrained(time.Minute)

		after, ok := w.Account.Document("orders", "orders", "1042")
		require.True(t, ok)
		require.Equal(t, before, after, "what is stored is untouched, its ETag too")
		dead := w.deadLetters()
		require.Len(t, dead, 1)
		require.Equal(t, second, dead[0].Sequence)
		require.Equal(t, "ContentConflict", dead[0].DeadLetterReason)
		stored, arrived := property(t, dead[0], worker.PropertyStoredHash), property(t, dead[0], worker.PropertyArrivedHash)
		require.NotEqual(t, stored, arrived)
		require.Contains(t, before.Body, stored, "the stored hash is the one in the document")
		require.Contains(t, dead[0].DeadLetterErrorDescription, stored)
		require.Contains(t, dead[0].DeadLetterErrorDescription, arrived)
		require.Equal(t, "/amount", property(t, dead[0], worker.PropertyPaths))
		require.NotContains(t, dead[0].DeadLetterErrorDescription, "400", "no value of the body is repeated")
		require.Equal(t, int64(1), counter(t, reader, "orderworker.content_conflicts"))
		require.Equal(t, 1, r.saw(worker.EventConflict))
	})
}

func TestWhatCanNeverSucceedIsDeadLetteredAtOnceWithItsReason(t *testing.T) {
	reject := worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		return worker.Effects{}, worker.Reject("CustomerUnknown", errors.New("the customer of this order does not exist"))
	})
	grow := worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
		return worker.Create(worker.Document{Type: "order", Content: []byte(`{"text":"` + strings.Repeat("x", 1_700_000) + `"}`)}), nil
	})
	tests := []struct {
		name    string
		handler worker.Handler
		faults  []*fault.Rule
		body    string
		reason  string
	}{
		{name: "an unreadable body", body: `{"amount":`, reason: "NotJSON"},
		{name: "a body that is no object", body: `[1]`, reason: "BodyNotObject"},
		{name: "no body", body: ``, reason: "EmptyBody"},
		{name: "a handler that rejects", body: `{}`, handler: reject, reason: "CustomerUnknown"},
		{name: "a document that the store finds too large", body: `{}`, handler: grow, reason: "TooLarge",
			faults: []*fault.Rule{fault.On(history.CreateDocument).Key("1").Always().Before(fault.Reply(413, 0))}},
		{name: "more lines than a transaction holds", body: `{"lines":[` + strings.Repeat(`{"sku":"a"},`, 100) + `{"sku":"a"}]}`, reason: "TooLarge"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, testenv.Options{Faults: fault.Script(tt.faults...)}, func(w *env) {
				w.skipAudit = true
				w.expect.Reasons = []string{tt.reason}
				h := tt.handler
				if h == nil {
					h = worker.HandlerFunc(shop.Order)
				}
				w.startWith(h, nil)
				w.send(order("1", tt.body))
				w.waitDrained(time.Minute)
				dead := w.deadLetters()
				require.Len(t, dead, 1)
				require.Equal(t, tt.reason, dead[0].DeadLetterReason)
				require.NotEmpty(t, dead[0].DeadLetterErrorDescription)
				require.Equal(t, 1, w.count(history.Lock, "1", true), "one delivery is enough")
				require.Empty(t, w.Stored())
			})
		})
	}
}

func TestAMessageThatKeepsFailingForItsOwnCauseIsDeadLetteredWithThatCause(t *testing.T) {
	fail := worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
		return worker.Effects{}, errors.New("the price list has no such product")
	})
	boom := worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) { panic("nil price list") })
	for name, tt := range map[string]struct {
		handler worker.Handler
		reason  string
	}{"an error": {fail, "HandlerError"}, "a panic": {boom, "HandlerPanic"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testenv.Options{Adjust: func(q *servicebus.Queue) { q.MaxDeliveryCount = 3 }}, func(w *env) {
				w.skipAudit = true
				w.expect.Reasons = []string{tt.reason}
				w.startWith(tt.handler, nil)
				w.send(order("1", `{}`))
				w.waitDrained(10 * time.Minute)
				dead := w.deadLetters()
				require.Len(t, dead, 1)
				require.Equal(t, tt.reason, dead[0].DeadLetterReason, "the real cause, not MaxDeliveryCountExceeded")
				require.Equal(t, 3, w.count(history.Lock, "1", true))
				require.Equal(t, 2, w.count(history.Abandon, "1", true))
			})
		})
	}
}

func TestAnOutageOfTheStoreDeadLettersNothing(t *testing.T) {
	const outage, messages = 30 * time.Minute, 200
	inBubble(t, testenv.Options{}, func(w *env) {
		w.Faults.Add(fault.On("cosmosdb.*").Always().Before(fault.Reply(503, 0)))
		w.expect.Reasons = []string{}
		stream := traffic.NewStream(1, "o-")
		for n := 0; n < messages; {
			if m := stream.Next(); m.Kind == traffic.New || m.Kind == traffic.Lines {
				w.send(m)
				n++
			}
		}
		a, b := w.start(), w.start()
		time.Sleep(outage)
		require.False(t, a.worker.Health().Ready)
		require.False(t, b.worker.Health().Ready)
		w.Faults.Clear()
		w.waitDrained(10 * time.Minute)
		require.Empty(t, w.deadLetters())
		require.LessOrEqual(t, mostDeliveries(w.History), 3)
		w.waitFor(time.Minute, "both workers to be ready", func() bool { return a.worker.Health().Ready && b.worker.Health().Ready })
	})
}

func TestWhenNothingCanBeStoredNothingIsSettledAndNobodyRestartsTheWorker(t *testing.T) {
	inBubble(t, testenv.Options{}, func(w *env) {
		w.expect.Reasons = []string{}
		w.Account.DenyData(0)
		r := w.start()
		for _, id := range []string{"1", "2", "3"} {
			w.send(order(id, `{"amount":40}`))
		}
		time.Sleep(20 * time.Minute)
		require.False(t, r.worker.Health().Ready)
		require.Empty(t, w.Stored())
		require.Empty(t, w.deadLetters())
		require.LessOrEqual(t, mostDeliveries(w.History), 3)
		w.Account.AllowData() // the role has arrived
		w.waitDrained(10 * time.Minute)
		require.Len(t, w.Stored(), 3)
		w.waitFor(time.Minute, "the worker to be ready", func() bool { return r.worker.Health().Ready })
	})
}

// TestAnAnswerWithoutSenseIsNotAMissingLine holds what a seed once found: the answer to a batch was lost, and so was the
// sense of an answer about one of its lines.
func TestAnAnswerWithoutSenseIsNotAMissingLine(t *testing.T) {
	garble := fault.Action{Kind: fault.Garble}
	inBubble(t, testenv.Options{Faults: fault.Script(
		fault.On(history.ExecuteBatch).After(garble),
		fault.On(history.ReadDocument).Key("1~part.line-2").Times(3).After(garble),
	)}, func(w *env) {
		w.expect.Reasons = []string{}
		w.start()
		w.send(order("1", `{"lines":[{"sku":"a"},{"sku":"b"}]}`))
		w.waitDrained(10 * time.Minute)
		require.Len(t, w.Stored(), 3)
	})
}

func TestAMissingContainerIsWaitedFor(t *testing.T) {
	inBubble(t, testenv.Options{}, func(w *env) {
		w.Faults.Add(fault.On(history.ReadContainer).Always().Before(fault.Reply(404, 1003)), fault.On(history.CreateDocument).Always().Before(fault.Reply(404, 1003)), fault.On(history.ReadDocument).Always().Before(fault.Reply(404, 1003)))
		r := w.start()
		w.send(order("1", `{"amount":40}`))
		time.Sleep(5 * time.Minute)
		require.False(t, r.worker.Health().Ready)
		require.Empty(t, w.deadLetters())
		w.Faults.Clear()
		w.waitDrained(10 * time.Minute)
		require.Equal(t, []string{"1"}, w.Stored())
	})
}

// mostDeliveries is the number of deliveries of the message that was delivered most often.
func mostDeliveries(l *history.Log) int {
	most := 0
	for _, e := range l.Events() {
		if e.Op == history.Lock && e.Effect {
			most = max(most, e.Delivery)
		}
	}
	return most
}

func property(t *testing.T, s servicebus.Snapshot, name string) string {
	t.Helper()
	v, ok := s.Message.ApplicationProperties.Get(name)
	require.True(t, ok, "the dead letter has no property %s", name)
	text, ok := v.(string)
	require.True(t, ok)
	return text
}

// counter sums a counter over its attributes.
func counter(t *testing.T, reader *metric.ManualReader, name string) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	total := int64(0)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, point := range sum.DataPoints {
					total += point.Value
				}
			}
		}
	}
	return total
}
