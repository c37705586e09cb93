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

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

func TestAStopInAnyStateEndsInTimeAndGivesBackWhatCannotFinish(t *testing.T) {
	unavailable := &worker.UnavailableError{Cause: errors.New("down")}
	tests := []struct {
		name   string
		before func(e *env)             // before the worker starts
		handle worker.HandlerFunc       // nil stores the message
		during func(e *env, w *running) // between start and stop
		within time.Duration            // from the stop to the end of Run
		// What is in the queue afterwards, and how many documents.
		active, locked, stored int
		// proven has the worker commit messages before, so that it takes more than one at a time.
		proven bool
	}{
		{name: "idle", within: 3 * time.Second},
		{name: "work that fits is finished", before: func(e *env) { e.sendOrdersQuietly(5) },
			handle: pausing(10 * time.Second), within: 13 * time.Second, stored: 5, proven: true},
		{name: "work that does not fit is abandoned", before: func(e *env) { e.sendOrdersQuietly(5) },
			handle: pausing(5 * time.Minute), within: 27 * time.Second, active: 5},
		{name: "work that ignores its context is abandoned", before: func(e *env) { e.sendOrdersQuietly(5) },
			handle: func(ctx context.Context, m worker.Message) (worker.Effects, error) {
				time.Sleep(time.Hour - time.Minute)
				return order(ctx, m)
			}, within: 28 * time.Second, active: 5},
		{name: "messages that wait for a retry are abandoned at once", before: func(e *env) { e.sendOrdersQuietly(5) },
			handle: func(context.Context, worker.Message) (worker.Effects, error) {
				return worker.Effects{}, worker.RetryAfter(5*time.Minute, errors.New("later"))
			}, within: 3 * time.Second, active: 5},
		{name: "messages that wait for the store are abandoned at once", before: func(e *env) {
			e.sendOrdersQuietly(5)
			e.store.OnCommit(func(int, worker.Commit) *storetest.Fault { return &storetest.Fault{Err: unavailable} })
			e.store.OnReady(func(n int) error {
				if n > 1 {
					return unavailable
				}
				return nil
			})
		}, within: 3 * time.Second, active: 5},
		{name: "before the store has answered", before: func(e *env) { e.sendOrdersQuietly(5); e.store.Down(unavailable) }, within: 3 * time.Second, active: 5},
		{name: "while the store hangs", before: func(e *env) {
			e.sendOrdersQuietly(1)
			e.store.OnCommit(func(int, worker.Commit) *storetest.Fault {
				return &storetest.Fault{Err: context.DeadlineExceeded, Before: func(ctx context.Context) { <-ctx.Done() }}
			})
		}, within: 28 * time.Second, active: 1},
		{name: "while the broker refuses every link", before: func(e *env) {
			e.faults.Add(fault.On(history.Attach).Always().Before(fault.Reject("amqp:not-allowed")))
		}, within: 4 * time.Second},
		{name: "while the connection is cut", before: func(e *env) { e.sendOrdersQuietly(3) }, handle: pausing(10 * time.Second),
			during: func(e *env, _ *running) { e.broker.DropConnections() }, within: 20 * time.Second, stored: 3, proven: true},
		{name: "cut short by a second signal", before: func(e *env) { e.sendOrdersQuietly(5) }, handle: pausing(5 * time.Minute),
			during: func(_ *env, w *running) { w.Abort() }, within: 3 * time.Second, active: 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				if tt.handle != nil {
					e.handler = tt.handle
				}
				start := e.start
				if tt.proven {
					w := e.startProven(worker.Config{})
					start = func(worker.Config) *running { return w }
				}
				if tt.before != nil {
					tt.before(e)
				}
				w := start(worker.Config{})
				time.Sleep(3 * time.Second)
				if tt.during != nil {
					tt.during(e, w)
				}
				begun := time.Now()
				e.end(w)
				require.LessOrEqual(e, time.Since(begun), tt.within)
				c := e.counts()
				require.Equal(e, tt.active, c.Active, "free for another worker at once")
				require.Equal(e, tt.locked, c.Locked)
				require.Equal(e, tt.stored, e.mem.Len())
				require.Empty(e, e.deadLetters())
				require.LessOrEqual(e, e.maxDeliveries(), 1)
				require.False(e, w.Health().Ready)
				require.Len(e, e.logs.lines("worker_stopped"), 1)
				time.Sleep(2 * time.Hour) // what was left behind ends too
			})
		})
	}
}

// pausing is a handler that takes d and heeds its context.
func pausing(d time.Duration) worker.HandlerFunc {
	return func(ctx context.Context, m worker.Message) (worker.Effects, error) {
		select {
		case <-time.After(d):
			return order(ctx, m)
		case <-ctx.Done():
			return worker.Effects{}, context.Cause(ctx)
		}
	}
}

func TestAStopBeforeTheStoreHasAnsweredIsNoIncident(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.store.OnReady(func(int) error {
			time.Sleep(5 * time.Second)
			return context.Canceled // by the stop, which comes before
		})
		w := e.start(worker.Config{})
		time.Sleep(4900 * time.Millisecond)
		e.end(w)
		require.Empty(e, e.logs.lines("breaker_opened"))
		require.Empty(e, e.logs.lines("not_ready"))
		require.Zero(e, e.count(worker.EventBreakerOpened))
	})
}

func TestAHandlerLearnsWhyItIsCut(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		var cause atomic.Value
		e.handler = worker.HandlerFunc(func(ctx context.Context, _ worker.Message) (worker.Effects, error) {
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return worker.Effects{}, ctx.Err()
		})
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{DrainTimeout: time.Second})
		time.Sleep(3 * time.Second)
		e.end(w)
		require.ErrorIs(e, cause.Load().(error), worker.ErrStopping)
		require.Equal(e, worker.CauseStopped, e.seen(worker.EventAbandoned)[0].Cause)
	})
}

func TestTheLastDeliveryIsNotGivenUpForAStop(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 1}, func(e *env) {
		e.handler = pausing(5 * time.Minute)
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{MaxDeliveryCount: 1})
		time.Sleep(3 * time.Second)
		e.end(w)
		require.Equal(e, 1, e.counts().Locked, "nothing that we could settle would save it")
		require.Zero(e, e.ops(history.DeadLetter)+e.ops(history.Abandon))
		require.Equal(e, 1, e.count(worker.EventNotSettled))
	})
}

func TestTenRollingRestartsUnderLoadCostAMessageADeliveryEachAtMost(t *testing.T) {
	bubble(t, servicebus.Queue{LockDuration: 30 * time.Second}, func(e *env) {
		e.handler = pausing(2 * time.Second)
		workers := []*running{e.start(worker.Config{LockDuration: 30 * time.Second}), e.start(worker.Config{LockDuration: 30 * time.Second})}
		sent := 0
		for round := range 10 {
			e.sendOrders(fmt.Sprintf("r%d-", round), 50)
			sent += 50
			time.Sleep(time.Second)
			old := workers[round%2]
			workers[round%2] = e.start(worker.Config{LockDuration: 30 * time.Second})
			e.end(old)
			require.LessOrEqual(e, e.maxDeliveries(), round+2)
		}
		e.await(10*time.Minute, "drained", e.drained)
		require.Equal(e, sent, e.mem.Len())
		require.Empty(e, e.deadLetters())
		require.LessOrEqual(e, e.maxDeliveries(), 2, "what fits the drain is finished")
		for i := range sent {
			require.Equal(e, 1, e.mem.Creations(fmt.Sprintf("r%d-%d", i/50, i%50)))
		}
	})
}

func TestAWorkerRunsOnce(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		w := e.start(worker.Config{})
		time.Sleep(time.Second)
		require.ErrorContains(e, w.Run(context.Background()), "once")
		e.end(w)
	})
}

func TestNoCreditIsLeftOutWhileNothingIsReceived(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		down := &worker.UnavailableError{Cause: errors.New("down")}
		w := e.startProven(worker.Config{})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		e.store.Down(down)
		e.sendOrders("a-", 5) // five of sixteen slots, so eleven credits are out when the breaker opens
		e.await(10*time.Minute, "open", func() bool { return w.Health().Breaker == "open" })
		time.Sleep(time.Minute)
		before := e.history.Count(func(ev history.Event) bool { return ev.Op == history.Lock || ev.Op == history.Release })
		e.sendOrders("b-", 100)
		time.Sleep(5 * time.Minute)
		after := e.history.Count(func(ev history.Event) bool { return ev.Op == history.Lock || ev.Op == history.Release })
		require.Equal(e, before, after, "nothing is handed out to a worker that does not receive")
		require.Equal(e, 100, e.counts().Active)
		e.store.Up()
		e.await(5*time.Minute, "drained", e.drained)
		e.end(w)
	})
}

func TestLocksHeldThroughAnOutageStayLockedOverANewConnection(t *testing.T) {
	bubble(t, servicebus.Queue{LockDuration: 30 * time.Second}, func(e *env) {
		w := e.start(worker.Config{LockDuration: 30 * time.Second})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		e.store.Down(&worker.UnavailableError{Cause: errors.New("down")})
		e.sendAll(&azservicebus.Message{MessageID: new("m"), Body: []byte(`{}`)})
		time.Sleep(5 * time.Minute)
		require.Equal(e, 1, e.counts().Locked)
		require.Equal(e, 1, e.maxDeliveries())
		e.store.Up()
		e.await(5*time.Minute, "drained", e.drained)
		require.Equal(e, 1, e.maxDeliveries())
		e.end(w)
	})
}
