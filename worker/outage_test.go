package worker_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// ready asks the worker as a prober would.
func ready(w *running, path string) int {
	rec := httptest.NewRecorder()
	w.HealthHandler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec.Code
}

func TestAnOutageOfTheStoreCostsNoMessage(t *testing.T) {
	unavailable := func(after time.Duration) error {
		return &worker.UnavailableError{Cause: errors.New("service unavailable"), RetryAfter: after}
	}
	tests := []struct {
		name    string
		outage  func(e *env)
		kind    worker.Cause
		backlog int
	}{
		{"throttled with a hint of one second", func(e *env) { e.store.Down(unavailable(time.Second)) }, worker.CauseUnavailable, 1000},
		{"throttled with a hint of a minute", func(e *env) { e.store.Down(unavailable(time.Minute)) }, worker.CauseUnavailable, 100},
		{"unavailable without a hint", func(e *env) { e.store.Down(unavailable(0)) }, worker.CauseUnavailable, 100},
		{"writes fail although the store says that it is ready", func(e *env) {
			e.store.OnCommit(func(int, worker.Commit) *storetest.Fault { return &storetest.Fault{Err: unavailable(0)} })
		}, worker.CauseUnavailable, 100},
		{"calls hang until their context ends", func(e *env) {
			e.store.OnCommit(func(int, worker.Commit) *storetest.Fault {
				return &storetest.Fault{Err: context.DeadlineExceeded, Before: func(ctx context.Context) { <-ctx.Done() }}
			})
			e.store.OnReady(func(int) error { return unavailable(0) })
		}, worker.CauseUnavailable, 100},
		{"an error of no class", func(e *env) { e.store.Down(errors.New("surprise")) }, worker.CauseUnavailable, 100},
		{"the rights are missing", func(e *env) {
			e.store.Down(&worker.MisconfiguredError{Cause: errors.New("forbidden"), Fix: "Give the identity its role."})
		}, worker.CauseMisconfigured, 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 10, LockDuration: 30 * time.Second}, func(e *env) {
				w := e.start(worker.Config{LockDuration: 30 * time.Second, Breaker: worker.BreakerConfig{ProbeMax: 30 * time.Second}})
				e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
				tt.outage(e)
				e.sendOrders("o-", tt.backlog)
				time.Sleep(2 * time.Minute)
				require.Equal(e, 503, ready(w, "/readyz"), "the outage shows")
				require.Equal(e, 200, ready(w, "/livez"), "a restart would not help")
				require.Equal(e, []string{"store"}, parts(w.Health()))
				before, held := runtime.NumGoroutine(), w.Health().InFlight
				require.LessOrEqual(e, held, 16)
				time.Sleep(28 * time.Minute)
				require.Equal(e, 503, ready(w, "/readyz"))
				// While others are tried in their stead, at most one more message is held for each slot.
				require.LessOrEqual(e, w.Health().InFlight, 2*16)
				require.LessOrEqual(e, runtime.NumGoroutine(), before+4*16, "nothing piles up")
				require.Equal(e, tt.kind, e.seen(worker.EventBreakerOpened)[0].Cause)
				probes := e.store.Probes() + e.store.Commits()
				require.Less(e, probes, 400, "the store is asked now and then, not all the time")

				e.store.Up()
				e.await(3*time.Minute, "drained", e.drained)
				require.Equal(e, 200, ready(w, "/readyz"))
				require.Equal(e, tt.backlog, e.mem.Len())
				require.Empty(e, e.deadLetters())
				require.LessOrEqual(e, e.maxDeliveries(), 3)
				require.Len(e, e.logs.lines("breaker_opened"), 1, "one line for one incident")
				require.Len(e, e.logs.lines("breaker_closed"), 1)
				require.Len(e, e.logs.lines("not_ready"), 1)
				e.end(w)
			})
		})
	}
}

func TestAnOutageAtTheLastDeliveryDeadLettersNothing(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 1, LockDuration: 30 * time.Second}, func(e *env) {
		e.store.Down(&worker.UnavailableError{Cause: errors.New("down")})
		e.store.OnReady(func(n int) error {
			if n == 1 {
				return nil // so that messages are received at all
			}
			return &worker.UnavailableError{Cause: errors.New("down")}
		})
		e.sendOrders("o-", 20)
		w := e.start(worker.Config{MaxDeliveryCount: 1, LockDuration: 30 * time.Second})
		time.Sleep(time.Hour)
		require.Empty(e, e.deadLetters())
		require.Positive(e, w.Health().Held)
		e.store.Up()
		e.await(3*time.Minute, "drained", e.drained)
		require.Equal(e, 20, e.mem.Len())
		require.Equal(e, 1, e.maxDeliveries())
		e.end(w)
	})
}

func TestBadMessagesNeverTripTheBreaker(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 2}, func(e *env) {
		e.store.OnCommit(func(n int, c worker.Commit) *storetest.Fault {
			switch n % 3 {
			case 0:
				return &storetest.Fault{Err: &worker.UnstorableError{Reason: "NeverStorable", Detail: "too deep"}}
			case 1:
				return &storetest.Fault{Err: &worker.UncertainError{Reason: "ConflictUnread", Detail: "nothing there"}}
			}
			return &storetest.Fault{Panic: "nil map"}
		})
		e.sendOrders("bad-", 100)
		for range 20 {
			e.send("unreadable", "not json")
		}
		w := e.start(worker.Config{MaxDeliveryCount: 2})
		e.await(time.Hour, "drained", e.drained)
		require.Len(e, e.deadLetters(), 120)
		require.Zero(e, e.count(worker.EventBreakerOpened))
		require.True(e, w.Health().Ready)
		e.end(w)
	})
}

func TestAWorkerStartsBeforeItsStoreAndItsRights(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.store.OnReady(func(n int) error {
			if n <= 4 {
				return &worker.MisconfiguredError{Cause: errors.New("forbidden"), Fix: "Give the identity its role."}
			}
			return nil
		})
		e.sendOrders("o-", 10)
		w := e.start(worker.Config{})
		time.Sleep(time.Second)
		require.Zero(e, e.ops(history.Lock), "nothing is received before the store has answered")
		require.False(e, w.Health().Ready)
		e.await(5*time.Minute, "drained", e.drained)
		require.True(e, w.Health().Ready)
		require.Equal(e, 1, e.maxDeliveries())
		require.Len(e, e.logs.lines("breaker_opened"), 1)
		e.end(w)
	})
}

func TestAHeldMessageIsGivenBackOnce(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		w := e.startProven(worker.Config{Retry: worker.RetryConfig{HoldFor: 5 * time.Minute}})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		e.store.Down(&worker.UnavailableError{Cause: errors.New("down")})
		e.sendOrders("o-", 5)
		time.Sleep(time.Hour)
		require.Equal(e, 5, e.counts().Active, "another worker can have them")
		require.Equal(e, 5, e.ops(history.Abandon))
		require.Equal(e, 1, e.maxDeliveries())
		require.Zero(e, w.Health().InFlight)
		e.store.Up()
		e.await(time.Minute, "drained", e.drained)
		require.Equal(e, 2, e.maxDeliveries())
		e.end(w)
	})
}

func TestAStoreThatIgnoresItsContextDoesNotHoldTheWorker(t *testing.T) {
	bubble(t, servicebus.Queue{LockDuration: 30 * time.Second}, func(e *env) {
		release := make(chan struct{})
		e.store.OnCommit(func(n int, _ worker.Commit) *storetest.Fault {
			if n == 1 {
				return &storetest.Fault{Before: func(context.Context) { <-release }, Applied: true}
			}
			return nil
		})
		e.send("m", `{"amount":40}`)
		w := e.start(worker.Config{LockDuration: 30 * time.Second})
		time.Sleep(2 * time.Minute)
		require.Positive(e, e.ops(history.Renew), "renewal goes on meanwhile")
		require.Equal(e, 1, w.Health().InFlight)
		start := time.Now()
		e.end(w)
		require.Less(e, time.Since(start), 30*time.Second, "the stop ends within its bounds")
		require.Equal(e, 1, e.counts().Active, "and gives the message back")
		close(release)
		time.Sleep(time.Second)
		require.Equal(e, 1, e.mem.Len(), "the late write is there")

		again := e.start(worker.Config{LockDuration: 30 * time.Second})
		e.await(time.Minute, "drained", e.drained)
		require.Equal(e, 1, e.count(worker.EventRedelivered))
		require.Equal(e, 1, e.mem.Creations("m"))
		e.end(again)
	})
}
