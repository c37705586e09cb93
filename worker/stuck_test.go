package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// The client spins over a management link that was detached as busy, and while anything runs a bubble's clock stands still.
// So this case has a fake that shows what a caller sees of it: no call on that link returns before its context ends.
func TestAManagementLinkBeyondRepairIsReplaced(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		var calls atomic.Int64
		b := &fakeBroker{open: func(n int) *fakeReceiver {
			if n > 1 {
				return &fakeReceiver{}
			}
			return &fakeReceiver{renew: func(ctx context.Context, _ *azservicebus.ReceivedMessage) error {
				calls.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}}
		}}
		b.queue = []*azservicebus.ReceivedMessage{fakeMessage("m", `{"n":1}`)}
		e.handler = slow(90*time.Second, nil)
		w := e.startOver(worker.Config{}, b)
		e.await(3*time.Minute, "completed", func() bool { return b.count("complete") == 1 })
		require.Equal(e, 1, e.mem.Len())
		require.Equal(e, int64(2), calls.Load(), "two failures, and the lock is renewed over another connection in time")
		require.Equal(e, "management_link", e.seen(worker.EventReceiverReplaced)[0].Reason)
		require.Zero(e, e.count(worker.EventLockLost))
		require.Equal(e, 1, b.tokenOnly, "settled by its lock token, since its own link is gone")
		e.end(w)
	})
}

// Settlements go over the link of the messages, so those that succeed say nothing of the management link.
func TestAManagementLinkBeyondRepairIsReplacedAlsoWhileMessagesAreSettled(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		var calls atomic.Int64
		b := &fakeBroker{open: func(n int) *fakeReceiver {
			if n > 1 {
				return &fakeReceiver{}
			}
			return &fakeReceiver{renew: func(ctx context.Context, _ *azservicebus.ReceivedMessage) error {
				calls.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}}
		}}
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			if m.MessageID == "slow" {
				return slow(50*time.Second, nil).Handle(ctx, m)
			}
			return order(ctx, m)
		})
		w := e.startOver(worker.Config{}, b)
		for i := range 200 {
			id := fmt.Sprint(i)
			if i == 50 { // of a worker that has opened up
				id = "slow"
			}
			b.mu.Lock()
			b.queue = append(b.queue, fakeMessage(id, `{"n":1}`))
			b.mu.Unlock()
			time.Sleep(500 * time.Millisecond)
		}
		require.Equal(e, int64(2), calls.Load(), "two failures in a row are enough")
		require.Equal(e, "management_link", e.seen(worker.EventReceiverReplaced)[0].Reason)
		require.Zero(e, e.count(worker.EventLockLost))
		require.Equal(e, 200, b.count("complete"))
		e.end(w)
	})
}

func TestAManagementLinkBeyondRepairIsFoundAlsoWhenNothingNeedsIt(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		var broken atomic.Bool
		b := &fakeBroker{}
		b.open = func(n int) *fakeReceiver {
			return &fakeReceiver{peek: func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
				if n == 1 && broken.Load() {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return nil, nil
			}, renew: func(ctx context.Context, _ *azservicebus.ReceivedMessage) error {
				if n == 1 && broken.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}}
		}
		w := e.startOver(worker.Config{}, b)
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		broken.Store(true)
		for i := range 300 { // a busy queue, so that no silence draws attention
			b.mu.Lock()
			b.queue = append(b.queue, fakeMessage(fmt.Sprint(i), `{"n":1}`))
			b.mu.Unlock()
			time.Sleep(time.Second)
		}
		require.Equal(e, 2, b.opens())
		require.Equal(e, 300, e.mem.Len())
		e.end(w)
	})
}

func TestACallThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	tests := []struct {
		name string
		make func(hang chan struct{}) *fakeReceiver
	}{
		{"receive", func(hang chan struct{}) *fakeReceiver {
			return &fakeReceiver{receive: func(context.Context, int) ([]*azservicebus.ReceivedMessage, error) { <-hang; return nil, nil }}
		}},
		{"receive, which at last returns a message", func(hang chan struct{}) *fakeReceiver {
			return &fakeReceiver{receive: func(context.Context, int) ([]*azservicebus.ReceivedMessage, error) {
				<-hang
				return []*azservicebus.ReceivedMessage{fakeMessage("late", `{"n":1}`)}, nil
			}}
		}},
		{"receive and close", func(hang chan struct{}) *fakeReceiver {
			return &fakeReceiver{
				receive: func(context.Context, int) ([]*azservicebus.ReceivedMessage, error) { <-hang; return nil, nil },
				close:   func(context.Context) error { <-hang; return nil },
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				hang := make(chan struct{})
				b := &fakeBroker{open: func(n int) *fakeReceiver {
					if n == 1 {
						return tt.make(hang)
					}
					return &fakeReceiver{}
				}}
				b.queue = []*azservicebus.ReceivedMessage{fakeMessage("m", `{"n":1}`)}
				w := e.startOver(worker.Config{}, b)
				e.await(2*time.Minute, "completed over another receiver", func() bool { return b.count("complete") == 1 })
				require.Equal(e, "stuck", e.seen(worker.EventReceiverReplaced)[0].Reason)
				start := time.Now()
				e.end(w)
				require.Less(e, time.Since(start), 10*time.Second)
				close(hang)
			})
		})
	}
}

func TestALateMessageIsGivenBackWhileTheWorkerRuns(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		hang := make(chan struct{})
		b := &fakeBroker{open: func(n int) *fakeReceiver {
			if n > 1 {
				return &fakeReceiver{}
			}
			return &fakeReceiver{receive: func(context.Context, int) ([]*azservicebus.ReceivedMessage, error) {
				<-hang
				return []*azservicebus.ReceivedMessage{fakeMessage("late", `{"n":1}`)}, nil
			}}
		}}
		w := e.startOver(worker.Config{}, b)
		time.Sleep(2 * time.Minute)
		close(hang)
		e.await(time.Second, "abandoned", func() bool { return b.count("abandon") == 1 })
		require.Equal(e, 1, b.tokenOnly)
		e.end(w)
	})
}

func TestAWorkerThatIsDeafIsNotReady(t *testing.T) {
	waiting := func(sequence int64) ([]*azservicebus.ReceivedMessage, error) {
		return []*azservicebus.ReceivedMessage{{MessageID: "waits", SequenceNumber: &sequence, State: azservicebus.MessageStateActive}}, nil
	}
	tests := []struct {
		name      string
		peek      func(look int) ([]*azservicebus.ReceivedMessage, error)
		deaf      bool
		replacedF func(n int) bool
	}{
		{"the same message waits all the time", func(int) ([]*azservicebus.ReceivedMessage, error) { return waiting(7) }, true, func(n int) bool { return n >= 2 && n <= 8 }},
		{"other workers take the messages", func(look int) ([]*azservicebus.ReceivedMessage, error) { return waiting(int64(look)) }, false, func(n int) bool { return n <= 8 }},
		{"all that waits is deferred or scheduled", func(look int) ([]*azservicebus.ReceivedMessage, error) {
			sequence := int64(look)
			return []*azservicebus.ReceivedMessage{
				{SequenceNumber: &sequence, State: azservicebus.MessageStateDeferred},
				{SequenceNumber: &sequence, State: azservicebus.MessageStateScheduled},
			}, nil
		}, false, func(n int) bool { return n == 1 }},
		{"the queue is empty", func(int) ([]*azservicebus.ReceivedMessage, error) { return nil, nil }, false, func(n int) bool { return n == 1 }},
		{"what waits makes the client panic", func(int) ([]*azservicebus.ReceivedMessage, error) { panic("interface conversion") }, true, func(n int) bool { return n >= 2 && n <= 8 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				var looks atomic.Int64
				b := &fakeBroker{open: func(int) *fakeReceiver {
					return &fakeReceiver{peek: func(context.Context) ([]*azservicebus.ReceivedMessage, error) { return tt.peek(int(looks.Add(1))) }}
				}}
				w := e.startOver(worker.Config{}, b)
				time.Sleep(time.Hour)
				require.Equal(e, !tt.deaf, w.Health().Ready)
				if tt.deaf {
					require.Equal(e, []string{"not_receiving"}, parts(w.Health()))
					require.Len(e, e.logs.lines("not_ready"), 1)
				}
				require.True(e, tt.replacedF(b.opens()), "%d receivers in an hour", b.opens())
				b.mu.Lock()
				b.queue = append(b.queue, fakeMessage("m", `{"n":1}`))
				b.mu.Unlock()
				e.await(time.Minute, "completed", func() bool { return b.count("complete") == 1 })
				require.True(e, w.Health().Ready, "a message that arrives proves that the worker hears")
				e.end(w)
			})
		})
	}
}

func TestAWorkerIsNotDeafBecauseAnotherHoldsTheOnlyMessage(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.handler = worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.RetryAfter(time.Minute, errors.New("what the handler needs is down"))
		})
		a, b := e.start(worker.Config{}), e.start(worker.Config{})
		e.await(time.Minute, "ready", func() bool { return a.Health().Ready && b.Health().Ready })
		e.sendOrders("o-", 1)
		for range 180 {
			time.Sleep(time.Minute)
			require.Empty(e, parts(a.Health()))
			require.Empty(e, parts(b.Health()))
		}
		require.Greater(e, e.maxDeliveries(), 2, "it was held for longer each time")
		e.end(a)
		e.end(b)
	})
}

func TestAMessageWithAnEndedLockIsAskedForBeforeAnyWork(t *testing.T) {
	tests := []struct {
		name   string
		renew  error
		stored int
	}{
		{"the broker renews it, so only the clocks differ", nil, 1},
		{"the broker has given it to somebody else", &azservicebus.Error{Code: azservicebus.CodeLockLost}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				b := &fakeBroker{open: func(int) *fakeReceiver {
					return &fakeReceiver{renew: func(_ context.Context, m *azservicebus.ReceivedMessage) error {
						m.LockedUntil = new(time.Now().Add(-7 * time.Second).Add(time.Minute))
						return tt.renew
					}}
				}}
				m := fakeMessage("m", `{"n":1}`)
				m.LockedUntil = new(time.Now().Add(-7 * time.Second))
				b.queue = []*azservicebus.ReceivedMessage{m}
				w := e.startOver(worker.Config{}, b)
				e.await(time.Minute, "finished", func() bool { return e.count(worker.EventFinished) == 1 })
				require.Equal(e, tt.stored, e.mem.Len())
				require.Equal(e, tt.stored, b.count("complete"))
				require.Equal(e, 1-tt.stored, e.count(worker.EventLockLost))
				require.Zero(e, b.count("abandon")+b.count("dead-letter"))
				e.end(w)
			})
		})
	}
}

func TestAClockThatIsAheadCostsRenewalsAndNothingElse(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		const ahead = 10 * time.Minute
		var renewals atomic.Int64
		b := &fakeBroker{open: func(int) *fakeReceiver {
			return &fakeReceiver{renew: func(_ context.Context, m *azservicebus.ReceivedMessage) error {
				renewals.Add(1)
				m.LockedUntil = new(time.Now().Add(time.Minute - ahead))
				return nil
			}}
		}}
		m := fakeMessage("m", `{"n":1}`)
		m.LockedUntil = new(time.Now().Add(time.Minute - ahead))
		b.queue = []*azservicebus.ReceivedMessage{m}
		e.handler = slow(100*time.Second, nil)
		w := e.startOver(worker.Config{}, b)
		e.await(3*time.Minute, "completed", func() bool { return b.count("complete") == 1 })
		require.Less(e, renewals.Load(), int64(60))
		e.end(w)
	})
}

func TestASecondNilIsNeverBelieved(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		used := map[*azservicebus.ReceivedMessage]int{}
		b := &fakeBroker{open: func(int) *fakeReceiver {
			return &fakeReceiver{settle: func(_ context.Context, _ string, m *azservicebus.ReceivedMessage) error {
				used[m]++ // one message, so one goroutine
				if m.MessageID != "" {
					return errors.New("odd")
				}
				return nil
			}}
		}}
		b.queue = []*azservicebus.ReceivedMessage{fakeMessage("m", `{"n":1}`)}
		w := e.startOver(worker.Config{}, b)
		e.await(time.Minute, "finished", func() bool { return e.count(worker.EventFinished) == 1 })
		e.end(w)
		for m, n := range used {
			require.Equal(e, 1, n, "the object of message %q was used %d times", m.MessageID, n)
		}
		require.Len(e, used, 2)
	})
}

func TestAWorkerWhoseHandlersNeverReturnIsNotReady(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		release := make(chan struct{})
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			<-release
			return order(ctx, m)
		})
		w := e.start(worker.Config{Concurrency: 4})
		e.sendOrders("o-", 10)
		time.Sleep(time.Minute)
		require.True(e, w.Health().Ready, "the handlers are slow, which may be")
		time.Sleep(time.Hour)
		require.Equal(e, []string{"hung"}, parts(w.Health()))
		require.Len(e, e.logs.lines("not_ready"), 1)
		close(release)
		e.await(time.Minute, "drained", e.drained)
		require.True(e, w.Health().Ready)
		require.Equal(e, 10, e.mem.Len())
		e.end(w)
	})
}
