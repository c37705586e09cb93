package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
	"github.com/orderworker/orderworker/worker/storetest"
)

func refusing(keys ...string) func(int, worker.Commit) *storetest.Fault {
	return func(_ int, c worker.Commit) *storetest.Fault {
		for _, key := range keys {
			if c.MessageID == key {
				return &storetest.Fault{Err: &worker.UncertainError{Reason: reason.NeverStorable, Refused: true, Cause: errors.New("400")}}
			}
		}
		return nil
	}
}

// TestAStoreThatRefusesEveryWriteAndAnswersProbesCondemnsNoMessage has too few keys on the queue to tell by their number.
func TestAStoreThatRefusesEveryWriteAndAnswersProbesCondemnsNoMessage(t *testing.T) {
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprintf("%d keys", n), func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 3, LockDuration: 30 * time.Second}, func(e *env) {
				e.send("before", `{"n":0}`)
				w := e.start(worker.Config{MaxDeliveryCount: 3, LockDuration: 30 * time.Second})
				e.await(time.Minute, "stored", e.drained)
				e.store.OnCommit(refusing("k-1", "k-2", "k-3"))
				for i := range n {
					e.send(fmt.Sprintf("k-%d", i+1), `{"n":1}`)
				}
				for range 12 {
					e.send("before", `{"n":0}`) // duplicates are answered as ever, and prove nothing
					time.Sleep(30 * time.Minute)
				}
				require.Empty(e, e.deadLetters())
				require.ErrorContains(e, e.seen(worker.EventBreakerOpened)[0].Err, "refuses the write of a message while it answers probes")
				e.store.Up()
				e.await(time.Hour, "drained", e.drained)
				require.Equal(e, n+1, e.mem.Len())
				e.end(w)
			})
		})
	}
}

func TestAMessageThatAloneIsRefusedIsToBlame(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 3, LockDuration: 30 * time.Second}, func(e *env) {
		e.store.OnCommit(refusing("bad"))
		e.send("bad", `{"n":1}`)
		w := e.start(worker.Config{MaxDeliveryCount: 3, LockDuration: 30 * time.Second})
		for i := range 120 {
			e.send(fmt.Sprintf("good-%d", i), `{"n":1}`)
			time.Sleep(time.Minute)
		}
		e.await(time.Hour, "drained", e.drained)
		require.Len(e, e.deadLetters(), 1)
		require.Equal(e, reason.NeverStorable, e.deadLetters()[0].DeadLetterReason)
		require.Equal(e, 120, e.mem.Len())
		e.end(w)
	})
}

// TestRestartsWhileWritesHangTouchOneMessageEachAtMost stops ten processes that could commit nothing.
func TestRestartsWhileWritesHangTouchOneMessageEachAtMost(t *testing.T) {
	for name, probed := range map[string]bool{"the write probe hangs as well": true, "probes are answered": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 20, LockDuration: 30 * time.Second}, func(e *env) {
				hang := func(ctx context.Context) { <-ctx.Done() }
				e.store.OnCommit(func(int, worker.Commit) *storetest.Fault {
					return &storetest.Fault{Err: context.DeadlineExceeded, Before: hang}
				})
				if probed {
					e.store.OnReady(func(int) error { return &worker.UnavailableError{Cause: errors.New("no answer")} })
				}
				e.sendOrders("o-", 10)
				for range 10 {
					w := e.start(worker.Config{MaxDeliveryCount: 20, LockDuration: 30 * time.Second})
					time.Sleep(15 * time.Second)
					e.end(w)
				}
				total := 0
				for _, n := range e.deliveries() {
					total += n
				}
				if probed {
					require.Zero(e, total, "nothing is received before the store answers a write")
				}
				require.LessOrEqual(e, total, 10, "one delivery for each process")
				e.store.Up()
				w := e.start(worker.Config{MaxDeliveryCount: 20, LockDuration: 30 * time.Second})
				e.await(time.Hour, "drained", e.drained)
				require.Equal(e, 10, e.mem.Len())
				require.Empty(e, e.deadLetters())
				e.end(w)
			})
		})
	}
}

func TestAFreshProcessOpensUpWithItsFirstCommit(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		release := make(chan struct{})
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			<-release
			return order(ctx, m)
		})
		e.sendOrders("o-", 40)
		w := e.start(worker.Config{})
		time.Sleep(15 * time.Second)
		require.Equal(e, 1, w.Health().InFlight, "it has proven nothing yet")
		require.Equal(e, "trial", w.Health().Breaker)
		require.True(e, w.Health().Ready)
		close(release)
		e.await(time.Minute, "drained", e.drained)
		require.Equal(e, "closed", w.Health().Breaker)
		e.end(w)
	})
}

// A message that waits for something else than the store has not asked the store, and does not keep others from asking.
func TestAFreshProcessIsNotHeldUpByMessagesThatWait(t *testing.T) {
	for name, err := range map[string]error{
		"for a later retry":     worker.RetryAfter(time.Hour, errors.New("the other side is closed")),
		"between failed tries":  errors.New("a fault of this message"),
		"for a rejection later": nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 100}, func(e *env) {
				e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
					switch {
					case m.MessageID != "waits":
						return order(ctx, m)
					case err == nil:
						time.Sleep(5 * time.Second)
						return worker.Effects{}, worker.Reject("Never", errors.New("never"))
					}
					return worker.Effects{}, err
				})
				e.send("waits", `{"n":1}`)
				e.sendOrders("o-", 10)
				w := e.start(worker.Config{MaxDeliveryCount: 100, Retry: worker.RetryConfig{Base: time.Minute, Max: time.Minute}})
				e.await(10*time.Second, "the others to be stored", func() bool { return e.mem.Len() == 10 })
				e.end(w)
			})
		})
	}
}

func TestAFreshProcessWaitsBetweenTheTriesOfACommit(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		var at []time.Time
		e.store.OnCommit(func(int, worker.Commit) *storetest.Fault {
			at = append(at, time.Now())
			return &storetest.Fault{Err: &worker.UnavailableError{Cause: errors.New("503")}}
		})
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{})
		e.await(time.Minute, "open", func() bool { return w.Health().Breaker == "open" })
		e.end(w)
		for i := range at[1:] {
			require.NotEqual(e, at[i], at[i+1], "tried again without a wait")
		}
	})
}

func TestAWorkerWithoutWorkLeavesTheRampByItself(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{})
		e.await(time.Minute, "stored", e.drained)
		e.store.Down(&worker.UnavailableError{Cause: errors.New("down")})
		e.await(5*time.Minute, "open", func() bool { return w.Health().Breaker == "open" })
		e.store.Up()
		e.await(5*time.Minute, "closed again, with nothing to try", func() bool { return w.Health().Breaker == "closed" })
		e.end(w)
	})
}
