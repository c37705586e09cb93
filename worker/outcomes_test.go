package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
	"github.com/orderworker/orderworker/worker/storetest"
)

func TestEqualCopiesAreCompletedAndAnOddOneIsDeadLettered(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.send("1042", `{"orderId":"1042","amount":40,"items":[1,2]}`)
		w := e.start(worker.Config{Version: "1.2.3"})
		e.await(time.Minute, "stored", e.drained)
		e.send("1042", `{ "items": [1, 2], "amount": 40.0, "orderId": "1042" }`)
		e.send("1042", `{"orderId":"1042","amount":41,"items":[1,2]}`)
		e.await(time.Minute, "drained", e.drained)

		require.Equal(e, 1, e.mem.Len())
		require.Equal(e, 1, e.count(worker.EventDuplicate))
		dead := e.deadLetters()
		require.Len(e, dead, 1)
		require.Equal(e, reason.ContentConflict, dead[0].DeadLetterReason)
		require.Contains(e, dead[0].DeadLetterErrorDescription, "/amount")
		properties := map[string]string{}
		for _, name := range []string{worker.PropertyReason, worker.PropertyDocumentID, worker.PropertyPaths, worker.PropertyStoredHash, worker.PropertyArrivedHash, worker.PropertyVersion} {
			v, ok := dead[0].Message.ApplicationProperties.Get(name)
			require.True(e, ok, name)
			properties[name] = v.(string)
		}
		require.Equal(e, reason.ContentConflict, properties[worker.PropertyReason])
		require.Equal(e, "1042", properties[worker.PropertyDocumentID])
		require.Equal(e, "/amount", properties[worker.PropertyPaths])
		require.Equal(e, "1.2.3", properties[worker.PropertyVersion])
		require.Len(e, properties[worker.PropertyStoredHash], 64)
		require.Len(e, properties[worker.PropertyArrivedHash], 64)
		require.NotEqual(e, properties[worker.PropertyStoredHash], properties[worker.PropertyArrivedHash])

		record, err := e.mem.Find(e.Context(), "", "1042")
		require.NoError(e, err)
		require.JSONEq(e, `{"orderId":"1042","amount":40,"items":[1,2]}`, string(record.Content))
		require.Len(e, e.logs.lines("content_conflict"), 1)
		require.Len(e, e.logs.lines("dead_lettered"), 1)
		require.NotContains(e, e.logs.String(), "items", "no body is logged")
		e.end(w)
	})
}

func TestARunOfConflictsOnOneKeyCanBeTold(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.send("a", `{"n":0}`)
		w := e.start(worker.Config{})
		e.await(time.Minute, "stored", e.drained)
		for i := range 3 {
			e.send("a", fmt.Sprintf(`{"n":%d}`, i+1))
			e.await(time.Minute, "drained", e.drained)
		}
		conflicts := e.seen(worker.EventConflict)
		require.Len(e, conflicts, 3)
		require.Equal(e, 1, conflicts[0].Run)
		require.Equal(e, 3, conflicts[2].Run)
		e.end(w)
	})
}

func TestFiftyCopiesAtFourWorkersMakeOneDocument(t *testing.T) {
	for _, oddAt := range []int{0, 17, 50} {
		t.Run(fmt.Sprintf("the odd copy is number %d", oddAt), func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				for i := range 51 {
					amount := 40
					if i == oddAt {
						amount = 41
					}
					e.send("cc-1", fmt.Sprintf(`{"amount":%d}`, amount))
				}
				workers := []*running{e.start(worker.Config{}), e.start(worker.Config{}), e.start(worker.Config{}), e.start(worker.Config{})}
				e.await(time.Minute, "drained", e.drained)
				require.Equal(e, 1, e.mem.Creations("cc-1"))
				record, err := e.mem.Find(e.Context(), "", "cc-1")
				require.NoError(e, err)
				wantDead := 1
				if strings.Contains(string(record.Content), "41") {
					wantDead = 50 // the first writer wins, no matter which it is
				}
				require.Len(e, e.deadLetters(), wantDead)
				require.Equal(e, 50-wantDead, e.count(worker.EventDuplicate))
				for _, w := range workers {
					e.end(w)
				}
			})
		})
	}
}

func TestWhatCanNeverBeStoredIsDeadLetteredAtOnce(t *testing.T) {
	text := func(s string) *string { return &s }
	tests := []struct {
		name    string
		message *azservicebus.Message
		handler worker.HandlerFunc
		fault   *storetest.Fault
		plant   *worker.Record
		want    string
		detail  string
	}{
		{name: "a message without an id", message: &azservicebus.Message{Body: []byte(`{}`)}, want: reason.MissingMessageID},
		{name: "a body that is not JSON", message: &azservicebus.Message{MessageID: text("m"), Body: []byte(`not json`)}, want: reason.NotJSON},
		{name: "a message that the handler rejects in its own words", handler: func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.Reject("UnknownCustomer", errors.New("customer 7 is not known"))
		}, want: "UnknownCustomer", detail: "customer 7 is not known"},
		{name: "a message that the handler rejects without a word", handler: func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, fmt.Errorf("wrapped: %w", worker.Reject("", errors.New("no")))
		}, want: reason.Rejected},
		{name: "a message for which the handler returns nothing", handler: func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, nil
		}, want: reason.InvalidEffects, detail: "The handler returned no effect"},
		{name: "a message for which the handler returns a list", handler: func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Create(worker.Document{Type: "order", Content: []byte(`[1]`)}), nil
		}, want: reason.InvalidEffects, detail: "not one JSON object"},
		{name: "a message that the store can never take", fault: &storetest.Fault{Err: &worker.UnstorableError{Reason: reason.PartitionFull, Detail: "The partition is full."}},
			want: reason.PartitionFull, detail: "The partition is full."},
		{name: "the stored document has no hash", plant: &worker.Record{Key: "m", Type: "order", Content: []byte(`{"amount":40}`)}, want: reason.StoredHashMissing},
		{name: "the stored document belongs to another key", plant: &worker.Record{Key: "other", Type: "order"}, want: reason.KeyCollision, detail: "other"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// The service gives a message an id where its sender gave none.
			o := servicebus.Options{LeaveMessageIDNull: true, Config: servicebus.Config{Queues: []servicebus.Queue{{}}}}
			bubbleWith(t, o, func(e *env) {
				if tt.handler != nil {
					e.handler = tt.handler
				}
				if tt.fault != nil {
					e.store.OnCommit(func(int, worker.Commit) *storetest.Fault { return tt.fault })
				}
				if tt.plant != nil {
					e.mem.Plant("m", *tt.plant)
				}
				if tt.message == nil {
					tt.message = &azservicebus.Message{MessageID: text("m"), Body: []byte(`{"amount":40}`)}
				}
				e.sendAll(tt.message)
				w := e.start(worker.Config{})
				e.await(time.Minute, "drained", e.drained)
				dead := e.deadLetters()
				require.Len(e, dead, 1)
				require.Equal(e, tt.want, dead[0].DeadLetterReason)
				require.NotEmpty(e, dead[0].DeadLetterErrorDescription)
				require.Contains(e, dead[0].DeadLetterErrorDescription, tt.detail)
				require.Equal(e, 1, e.ops(history.Lock), "one delivery was enough")
				require.True(e, w.Health().Ready, "a bad message is no reason to stop")
				e.end(w)
			})
		})
	}
}

func TestAnOrderIsStoredWithItsLinesOrNotAtAll(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			return worker.Create(worker.Document{Type: "order", Content: m.Body}, worker.Document{Name: "line-1", Type: "line", Content: []byte(`{}`)}), nil
		})
		e.mem.Plant(identity.PartDocumentID("stray", "line-1"), worker.Record{})
		e.send("whole", `{"amount":40}`)
		e.send("stray", `{"amount":40}`)
		w := e.start(worker.Config{})
		e.await(time.Minute, "drained", e.drained)
		dead := e.deadLetters()
		require.Len(e, dead, 1)
		require.Equal(e, reason.DocumentConflict, dead[0].DeadLetterReason)
		require.Zero(e, e.mem.Creations("stray"))
		require.Equal(e, 1, e.mem.Creations("whole"))

		e.mem.Remove(identity.PartDocumentID("whole", "line-1"))
		e.send("whole", `{"amount":40}`)
		e.await(time.Minute, "drained", e.drained)
		dead = e.deadLetters()
		require.Len(e, dead, 2, "an order without its line is never enough for a duplicate")
		require.Equal(e, reason.DocumentsMissing, dead[1].DeadLetterReason)
		require.Contains(e, dead[1].DeadLetterErrorDescription, "line-1")
		e.end(w)
	})
}

func TestAPanicOfTheHandlerIsTheFailureOfItsMessageAlone(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 3}, func(e *env) {
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			if m.MessageID == "bad" {
				panic("order of line 0")
			}
			return order(ctx, m)
		})
		e.send("bad", `{"n":1}`)
		e.sendOrders("good-", 20)
		w := e.start(worker.Config{MaxDeliveryCount: 3})
		e.await(10*time.Minute, "drained", e.drained)
		require.Equal(e, 20, e.mem.Len())
		dead := e.deadLetters()
		require.Len(e, dead, 1)
		require.Equal(e, reason.HandlerPanic, dead[0].DeadLetterReason)
		require.Contains(e, dead[0].DeadLetterErrorDescription, "order of line 0")
		require.Equal(e, 3, e.deliveries()["bad"])
		require.Zero(e, e.count(worker.EventBreakerOpened))
		require.NotContains(e, fmt.Sprint(dead[0]), "goroutine", "the stack is for the log")
		panics := e.logs.lines("panicked")
		require.Len(e, panics, 3, "one for each delivery")
		require.Equal(e, "bad", panics[0]["message_id"])
		stack := panics[0]["stack"].(string)
		require.Contains(e, stack, "outcomes_test.go", "the stack says where")
		require.LessOrEqual(e, len(stack), 8<<10)
		e.end(w)
	})
}

func TestTheLastDeliveryIsDeadLetteredWithTheRealCause(t *testing.T) {
	tests := []struct {
		name    string
		handler worker.HandlerFunc
		fault   error
		want    string
		detail  string
	}{
		{name: "the handler keeps failing", handler: func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, errors.New("tax table has no row for 7")
		}, want: reason.HandlerError, detail: "tax table has no row for 7"},
		{name: "the handler is too slow", handler: func(ctx context.Context, _ worker.Message) (worker.Effects, error) {
			<-ctx.Done()
			return worker.Effects{}, ctx.Err()
		}, want: reason.Timeout},
		{name: "the store cannot judge the message", fault: &worker.UncertainError{Reason: reason.ConflictUnread, Detail: "The create is refused and nothing is there."},
			want: reason.ConflictUnread, detail: "nothing is there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 4}, func(e *env) {
				if tt.handler != nil {
					e.handler = tt.handler
				}
				if tt.fault != nil {
					e.store.OnCommit(func(int, worker.Commit) *storetest.Fault { return &storetest.Fault{Err: tt.fault} })
				}
				e.send("m", `{"amount":40}`)
				w := e.start(worker.Config{MaxDeliveryCount: 4, HandlerTimeout: 5 * time.Second})
				e.await(time.Hour, "drained", e.drained)
				dead := e.deadLetters()
				require.Len(e, dead, 1)
				require.Equal(e, tt.want, dead[0].DeadLetterReason)
				require.Contains(e, dead[0].DeadLetterErrorDescription, tt.detail)
				require.Equal(e, 4, e.deliveries()["m"])
				require.Equal(e, 3, e.count(worker.EventAbandoned))
				require.True(e, w.Health().Ready)
				e.end(w)
			})
		})
	}
}

func TestAPassingFaultIsRetriedInPlace(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		var calls atomic.Int64
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			if calls.Add(1) < 3 {
				return worker.Effects{}, errors.New("not yet")
			}
			return order(ctx, m)
		})
		e.store.OnCommit(func(n int, _ worker.Commit) *storetest.Fault {
			switch n {
			case 1:
				return &storetest.Fault{Err: &worker.UnavailableError{Cause: errors.New("429"), RetryAfter: 3 * time.Second}}
			case 2:
				return &storetest.Fault{Err: &worker.UnavailableError{Cause: errors.New("reset"), Ambiguous: true}, Applied: true}
			}
			return nil
		})
		e.send("m", `{"amount":40}`)
		w := e.start(worker.Config{})
		e.await(10*time.Minute, "drained", e.drained)
		require.Equal(e, int64(3), calls.Load(), "the documents are kept while the store is tried again")
		require.Equal(e, 1, e.maxDeliveries())
		require.Equal(e, 1, e.count(worker.EventOwn), "the second commit had its effect and the third recognised it")
		require.Empty(e, e.deadLetters())
		e.end(w)
	})
}

func TestAHandlerThatAsksForALaterRetryGetsIt(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 2}, func(e *env) {
		start := time.Now()
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			if time.Since(start) < 5*time.Minute {
				return worker.Effects{}, worker.RetryAfter(30*time.Second, errors.New("the tax office is closed"))
			}
			return order(ctx, m)
		})
		e.send("m", `{"amount":40}`)
		w := e.start(worker.Config{MaxDeliveryCount: 2})
		e.await(10*time.Minute, "drained", e.drained)
		require.Equal(e, 1, e.mem.Len())
		require.Equal(e, 1, e.maxDeliveries(), "waiting costs no delivery while the lock can be renewed")
		require.GreaterOrEqual(e, e.ops(history.Renew), 9)
		e.end(w)
	})
}

func TestALaterRetryThanAMessageMayBeHeldSpendsNoDeliveriesAtOnce(t *testing.T) {
	for _, after := range []time.Duration{15 * time.Minute, time.Hour, 100 * 24 * time.Hour} {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 3}, func(e *env) {
				calls := 0
				e.handler = worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
					calls++
					return worker.Effects{}, worker.RetryAfter(after, errors.New("the other side is closed"))
				})
				e.sendOrdersQuietly(1)
				w := e.start(worker.Config{MaxDeliveryCount: 3})
				time.Sleep(9 * time.Minute)
				require.Equal(e, 1, e.maxDeliveries())
				time.Sleep(20 * time.Minute)
				require.Equal(e, 2, e.maxDeliveries(), "abandoned after ten minutes, and held for twenty")
				time.Sleep(time.Hour)
				dead := e.deadLetters()
				require.Len(e, dead, 1)
				require.Equal(e, reason.HandlerError, dead[0].DeadLetterReason)
				e.end(w)
				require.Less(e, calls, 10)
			})
		})
	}
}
