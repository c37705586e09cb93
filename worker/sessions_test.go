package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func sessionQueue() servicebus.Queue {
	return servicebus.Queue{RequiresSession: true, LockDuration: 30 * time.Second}
}

func sessionConfig() worker.Config {
	return worker.Config{Sessions: true, Concurrency: 4, LockDuration: 30 * time.Second}
}

// sendSessions sends n messages of each of so many sessions, with the ids "<session>-<n>".
func (e *env) sendSessions(sessions, n int) {
	var all []*azservicebus.Message
	for i := range n {
		for s := range sessions {
			id, session := fmt.Sprintf("s%d-%d", s, i), fmt.Sprintf("s%d", s)
			all = append(all, &azservicebus.Message{MessageID: &id, SessionID: &session, Body: fmt.Appendf(nil, `{"orderId":%q}`, id)})
		}
	}
	e.sendAll(all...)
}

// requireSessionOrder requires that the documents of each session were created in the order of its messages, each once.
func (e *env) requireSessionOrder(sessions, n int) {
	e.Helper()
	created := map[string][]string{}
	for _, ev := range e.history.Events() {
		if ev.Op == history.CreateDocument && ev.Effect {
			session, _, _ := splitLast(ev.Key)
			created[session] = append(created[session], ev.Key)
		}
	}
	require.Len(e, created, sessions)
	for session, keys := range created {
		want := make([]string, n)
		for i := range want {
			want[i] = fmt.Sprintf("%s-%d", session, i)
		}
		require.Equal(e, want, keys)
	}
}

func splitLast(key string) (session, n string, ok bool) {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] == '-' {
			return key[:i], key[i+1:], true
		}
	}
	return key, "", false
}

func TestMessagesOfASessionAreProcessedOneAfterTheOtherAndSessionsSideBySide(t *testing.T) {
	bubble(t, sessionQueue(), func(e *env) {
		var mu sync.Mutex
		busy, most := map[string]int{}, 0
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			session, _, _ := splitLast(m.MessageID)
			mu.Lock()
			busy[session]++
			most = max(most, len(busy))
			require.Equal(e, 1, busy[session])
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			delete(busy, session)
			mu.Unlock()
			return order(ctx, m)
		})
		e.sendSessions(8, 10)
		w := e.start(sessionConfig())
		e.await(10*time.Minute, "all processed", e.drained)
		e.end(w)
		e.requireSessionOrder(8, 10)
		require.Equal(e, 4, most)
	})
}

func TestAFailingMessageHoldsItsSessionUntilItIsDeadLettered(t *testing.T) {
	q := sessionQueue()
	q.MaxDeliveryCount = 3
	bubble(t, q, func(e *env) {
		var seen []string
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			seen = append(seen, m.MessageID)
			if m.MessageID == "s0-1" {
				return worker.Effects{}, errors.New("it cannot be processed")
			}
			return order(ctx, m)
		})
		e.sendSessions(1, 3)
		c := sessionConfig()
		c.MaxDeliveryCount, c.Retry.Attempts = 3, 1
		w := e.start(c)
		e.await(10*time.Minute, "all processed", e.drained)
		e.end(w)
		require.Equal(e, []string{"s0-0", "s0-1", "s0-1", "s0-1", "s0-2"}, seen)
		require.Len(e, e.deadLetters(), 1)
	})
}

func TestASessionWithoutMessagesIsGivenUpForTheNext(t *testing.T) {
	bubble(t, sessionQueue(), func(e *env) {
		c := sessionConfig()
		c.Concurrency = 1
		w := e.start(c)
		e.sendSessions(1, 1)
		e.await(time.Minute, "the first", e.drained)
		id, session := "other-0", "other"
		e.sendAll(&azservicebus.Message{MessageID: &id, SessionID: &session, Body: []byte(`{"n":1}`)})
		e.await(10*time.Second, "the next session", e.drained)
		e.end(w)
	})
}

func TestALongHandlerKeepsItsSession(t *testing.T) {
	bubble(t, sessionQueue(), func(e *env) {
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			time.Sleep(100 * time.Second)
			return order(ctx, m)
		})
		e.sendSessions(1, 2)
		a, b := e.start(sessionConfig()), e.start(sessionConfig())
		e.await(10*time.Minute, "all processed", e.drained)
		e.end(a)
		e.end(b)
		require.Equal(e, 1, e.maxDeliveries())
		e.requireSessionOrder(1, 2)
	})
}

func TestALostSessionIsNotSettledAndKeepsItsOrder(t *testing.T) {
	bubble(t, sessionQueue(), func(e *env) {
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			time.Sleep(time.Second)
			return order(ctx, m)
		})
		e.sendSessions(1, 5)
		w := e.start(sessionConfig())
		e.await(time.Minute, "the second in process", func() bool { return e.count(worker.EventReceived) == 2 })
		require.NoError(e, e.broker.EndSessionLock("orders", "s0"))
		e.await(10*time.Minute, "all processed", e.drained)
		e.end(w)
		require.Equal(e, 2, e.maxDeliveries())
		e.requireSessionOrder(1, 5)
	})
}

func TestAWorkerThatStopsFinishesWhatIsInHandAndHandsItsSessionsOver(t *testing.T) {
	bubble(t, sessionQueue(), func(e *env) {
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			time.Sleep(time.Second)
			return order(ctx, m)
		})
		e.sendSessions(4, 10)
		a := e.start(sessionConfig())
		e.await(time.Minute, "work under way", func() bool { return e.count(worker.EventReceived) >= 8 })
		begun := time.Now()
		e.end(a)
		require.Less(e, time.Since(begun), 10*time.Second)
		b := e.start(sessionConfig())
		e.await(30*time.Second, "all processed by the other", e.drained)
		e.end(b)
		require.Equal(e, 1, e.maxDeliveries())
		e.requireSessionOrder(4, 10)
	})
}

func TestTheOrderOfFiveHundredSessionsOutlivesKillsLostLocksAndCutConnections(t *testing.T) {
	const sessions, each = 500, 20
	q := sessionQueue()
	q.MaxDeliveryCount = 100
	bubble(t, q, func(e *env) {
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			time.Sleep(20 * time.Millisecond)
			return order(ctx, m)
		})
		e.sendSessions(sessions, each)
		c := sessionConfig()
		c.Concurrency, c.MaxDeliveryCount = 8, 100
		replicas := []*running{e.start(c), e.start(c)}
		for round := 0; !e.drained(); round++ {
			require.Less(e, round, 2000)
			time.Sleep(500 * time.Millisecond)
			switch round % 10 {
			case 3:
				e.endSomeSessionLocks(3)
			case 6:
				e.broker.DropConnections()
			case 9: // a worker that is killed has its connections cut, and settles nothing more
				killed := replicas[round/10%2]
				killed.stop()
				killed.Abort()
				e.broker.DropConnections()
				replicas[round/10%2] = e.start(c)
			}
		}
		e.requireSessionOrder(sessions, each)
		require.Empty(e, e.deadLetters())
	})
}

// endSomeSessionLocks takes the locks of up to n sessions away.
func (e *env) endSomeSessionLocks(n int) {
	e.Helper()
	sessions, err := e.broker.Sessions("orders")
	require.NoError(e, err)
	for _, s := range sessions {
		if s.Locked && n > 0 {
			require.NoError(e, e.broker.EndSessionLock("orders", s.ID))
			n--
		}
	}
}

func TestASessionDoesNotGoOnAfterASettlementThatIsNotConfirmed(t *testing.T) {
	for name, action := range map[string]fault.Action{"refused": fault.Reject("com.microsoft:server-busy"), "not answered": {Kind: fault.Silence}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, sessionQueue(), func(e *env) {
				failed := false
				e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
					if m.MessageID == "s0-0" && !failed {
						failed = true
						return worker.Effects{}, errors.New("once")
					}
					return order(ctx, m)
				})
				e.faults.Add(fault.On(history.Abandon).Nth(1).Before(action))
				e.sendSessions(1, 4)
				c := sessionConfig()
				c.Retry.Attempts = 1
				w := e.start(c)
				e.await(10*time.Minute, "all processed", e.drained)
				e.end(w)
				e.requireSessionOrder(1, 4)
			})
		})
	}
}
