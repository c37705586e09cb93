package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// A .NET sender makes such properties of decimal and char.
func TestAMessageThatTheClientCannotReadTakesNoOtherDown(t *testing.T) {
	tests := []struct {
		name     string
		property any
		before   int // messages in front of it
	}{
		{"a decimal128 at the front", servicebus.Decimal128{1}, 0},
		{"a decimal128 behind others", servicebus.Decimal128{1}, 3},
		{"a decimal64 behind many", servicebus.Decimal64{1}, 40},
		{"a decimal32 in a list", servicebus.List{servicebus.Decimal32{1}}, 1},
		{"a char", servicebus.Char('x'), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 6, LockDuration: 30 * time.Second}, func(e *env) {
				for i := range tt.before {
					sendRaw(e, e.broker, fmt.Sprintf("before-%d", i), `{"n":1}`)
				}
				_, err := e.broker.Send("orders", servicebus.Message{
					Properties:            &servicebus.Properties{MessageID: "poison"},
					ApplicationProperties: servicebus.Map{{Key: "price", Value: tt.property}},
					BodyKind:              servicebus.BodyData,
					Data:                  [][]byte{[]byte(`{}`)},
				})
				require.NoError(e, err)
				for i := range 40 {
					sendRaw(e, e.broker, fmt.Sprintf("behind-%d", i), `{"n":1}`)
				}
				w := e.start(worker.Config{MaxDeliveryCount: 6, LockDuration: 30 * time.Second})
				e.await(2*time.Minute, "all others stored", func() bool { return e.mem.Len() == tt.before+40 })
				e.sendOrders("later-", 5)
				e.await(10*time.Second, "later ones stored", func() bool { return e.mem.Len() == tt.before+45 })
				e.await(5*time.Minute, "drained", e.drained)
				dead := e.deadLetters()
				require.Len(e, dead, 1)
				require.Equal(e, "poison", dead[0].Key)
				require.Equal(e, reason.MaxDeliveryCountExceeded, dead[0].DeadLetterReason, "the broker dead-letters what no client can read")
				for id, n := range e.deliveries() {
					if id != "poison" {
						require.LessOrEqual(e, n, 4, "%s came down with the poison until that was isolated", id)
					}
				}
				require.Len(e, e.logs.lines("receive_unreadable"), 1, "one line for one incident")
				require.LessOrEqual(e, len(e.logs.lines("not_ready")), 1)
				require.True(e, w.Health().Ready)
				time.Sleep(time.Hour)
				require.True(e, w.Health().Ready)
				require.Len(e, e.logs.lines("receive_unreadable"), 1)
				e.end(w)
			})
		})
	}
}

func TestAQueueThatCannotBeLookedAtIsReceivedFromAllTheSame(t *testing.T) {
	for _, from := range []int{0, 1} {
		t.Run(fmt.Sprintf("after %d looks", from), func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				looks := 0
				b := &fakeBroker{open: func(int) *fakeReceiver {
					return &fakeReceiver{
						peek: func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
							if looks++; looks <= from {
								return nil, nil
							}
							<-ctx.Done()
							return nil, ctx.Err()
						},
						renew: func(context.Context, *azservicebus.ReceivedMessage) error {
							return &azservicebus.Error{Code: azservicebus.CodeLockLost}
						},
					}
				}}
				w := e.startOver(worker.Config{}, b)
				for i := range 120 {
					time.Sleep(time.Minute)
					require.True(e, w.Health().Ready)
					b.mu.Lock()
					b.queue = append(b.queue, fakeMessage(fmt.Sprint(i), `{"n":1}`))
					b.mu.Unlock()
				}
				e.await(time.Minute, "all stored", func() bool { return e.mem.Len() == 120 })
				require.Equal(e, 1, b.opens())
				require.Len(e, e.logs.lines("receive_unreadable"), 1)
				e.end(w)
			})
		})
	}
}

func TestOneLookThatFailsProvesNothing(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		looks := 0
		b := &fakeBroker{open: func(int) *fakeReceiver {
			return &fakeReceiver{
				peek: func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
					if looks++; looks%4 != 0 {
						return nil, nil
					}
					<-ctx.Done()
					return nil, ctx.Err()
				},
				renew: func(context.Context, *azservicebus.ReceivedMessage) error {
					return &azservicebus.Error{Code: azservicebus.CodeLockLost}
				},
			}
		}}
		w := e.startOver(worker.Config{}, b)
		for i := range 600 {
			time.Sleep(10 * time.Second)
			require.True(e, w.Health().Ready)
			b.mu.Lock()
			b.queue = append(b.queue, fakeMessage(fmt.Sprint(i), `{"n":1}`))
			b.mu.Unlock()
		}
		require.Empty(e, e.logs.lines("receive_unreadable"))
		require.Equal(e, 1, b.opens())
		e.end(w)
		require.Greater(e, looks, 50)
	})
}

func TestABrokerThatDiesWhileNothingIsReceivedShows(t *testing.T) {
	tests := []struct {
		name   string
		outage bool
		parts  []string
	}{
		{"every slot has a message in a long handler", false, []string{"broker"}},
		{"the store is down, and its messages are held", true, []string{"broker", "store"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				g := &gate{e: e}
				if !tt.outage {
					e.handler = pausing(40 * time.Minute)
				}
				w := e.startOver(worker.Config{Concurrency: 3, HandlerTimeout: time.Hour}, worker.NewBroker(g.client, "orders"))
				e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
				if tt.outage {
					e.store.Down(&worker.UnavailableError{Cause: errors.New("down")})
				}
				e.sendOrders("o-", 6)
				time.Sleep(5 * time.Minute)
				require.NotContains(e, parts(w.Health()), "broker")
				g.shut.Store(true)
				e.broker.DropConnections()
				time.Sleep(90 * time.Second)
				require.Equal(e, tt.parts, parts(w.Health()))
				time.Sleep(10 * time.Minute)
				require.Equal(e, tt.parts, parts(w.Health()), "and stays so")
				require.Len(e, e.logs.lines("not_ready"), len(tt.parts), "one line for each incident")
				g.shut.Store(false)
				time.Sleep(time.Minute)
				require.NotContains(e, parts(w.Health()), "broker", "and ends without a message")
				e.store.Up()
				e.await(3*time.Hour, "drained", e.drained)
				require.Equal(e, 6, e.mem.Len())
				require.Empty(e, e.deadLetters())
				e.end(w)
			})
		})
	}
}

func TestAGoodLookDoesNotLiftTheIsolationOfAMessageThatPanics(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		const lock = 30 * time.Second
		looks := 0
		var panicked time.Time
		var asked []int // for, in each call while the message that panics may come again
		b := &fakeBroker{}
		b.open = func(int) *fakeReceiver {
			return &fakeReceiver{
				peek: func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
					if looks++; looks > 1 {
						return nil, nil
					}
					<-ctx.Done()
					return nil, ctx.Err()
				},
				renew: func(context.Context, *azservicebus.ReceivedMessage) error {
					return &azservicebus.Error{Code: azservicebus.CodeLockLost}
				},
				receive: func(_ context.Context, n int) ([]*azservicebus.ReceivedMessage, error) {
					if panicked.IsZero() {
						panicked = time.Now()
						panic("interface conversion")
					}
					if time.Since(panicked) < 2*lock {
						asked = append(asked, n)
					}
					time.Sleep(time.Second)
					return []*azservicebus.ReceivedMessage{fakeMessage(fmt.Sprint(time.Now()), `{"n":1}`)}, nil
				},
			}
		}
		w := e.startOver(worker.Config{LockDuration: lock}, b)
		time.Sleep(2 * time.Minute)
		e.end(w)
		require.Greater(e, looks, 1, "the queue was looked at again")
		require.NotEmpty(e, asked)
		require.Equal(e, 1, slices.Max(asked), "%v", asked)
	})
}
