package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

const lockLost = "com.microsoft:message-lock-lost"

// slow makes a handler that takes d, and calls during in the middle of it once.
func slow(d time.Duration, during func()) worker.Handler {
	var once atomic.Bool
	return worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
		time.Sleep(d / 2)
		if during != nil && once.CompareAndSwap(false, true) {
			during()
		}
		select {
		case <-time.After(d / 2):
		case <-ctx.Done():
			return worker.Effects{}, ctx.Err()
		}
		return order(ctx, m)
	})
}

func TestASettlementThatFailsOnTheLinkIsMadeByLockToken(t *testing.T) {
	tests := []struct {
		name    string
		action  fault.Action
		within  time.Duration
		unknown int
	}{
		{"the broker refuses with a condition that the client does not know", fault.Reject("com.example:odd"), 4 * time.Second, 0},
		{"the broker is busy", fault.Reject("com.microsoft:server-busy"), 5 * time.Second, 0},
		{"the broker does not answer", fault.Action{Kind: fault.Silence}, 5 * time.Second, 0},
		{"the link is detached", fault.DetachLink("amqp:link:detach-forced"), 5 * time.Second, 1},
		{"the session ends", fault.Action{Kind: fault.EndSession}, 10 * time.Second, 1},
		{"the connection is closed", fault.Action{Kind: fault.CloseConnection, Condition: "amqp:connection:forced"}, 10 * time.Second, 1},
		{"the connection is cut", fault.DropReply(), 10 * time.Second, 1},
	}
	for _, verb := range []struct {
		name, op, body string
		want           worker.EventKind
	}{{"complete", history.Complete, `{"n":1}`, worker.EventCreated}, {"dead-letter", history.DeadLetter, `not json`, worker.EventDeadLettered}} {
		for _, tt := range tests {
			t.Run(verb.name+", "+tt.name, func(t *testing.T) {
				bubble(t, servicebus.Queue{}, func(e *env) {
					e.faults.Add(fault.On(verb.op).Before(tt.action))
					e.send("m", verb.body)
					start := time.Now()
					w := e.start(worker.Config{})
					e.await(time.Minute, "finished", func() bool { return e.count(worker.EventFinished) == 1 })
					require.LessOrEqual(e, time.Since(start), tt.within)
					require.True(e, e.drained())
					require.Equal(e, 1, e.maxDeliveries(), "no redelivery was needed")
					require.Equal(e, 1, e.ops(verb.op))
					// The client itself goes on to the management link when a link is lost, while its receive call closes that
					// link too. Then the answer may be lost, and the outcome is unknown until redelivery, which never comes.
					require.LessOrEqual(e, e.count(worker.EventSettleFailed), tt.unknown)
					if e.count(worker.EventSettleFailed) == 0 {
						require.Equal(e, 1, e.count(verb.want))
					}
					e.end(w)
				})
			})
		}
	}
}

func TestACompletionIsTriedAsLongAsTheLockLasts(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.faults.Add(fault.On(history.Complete).Always().Before(fault.Reject("com.microsoft:server-busy")))
		w := e.start(worker.Config{})
		e.sendOrders("o-", 20)
		time.Sleep(40 * time.Second)
		require.Zero(e, e.ops(history.Complete))
		e.faults.Clear()
		e.await(30*time.Second, "drained", e.drained)
		require.Equal(e, 1, e.maxDeliveries(), "no redelivery was needed")
		require.Zero(e, e.count(worker.EventSettleFailed))
		require.Zero(e, e.count(worker.EventDuplicate))
		e.end(w)
	})
}

func TestALostAnswerToASettlementIsAnUnknownOutcomeAndHarmless(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.faults.Add(fault.On(history.Complete).After(fault.Action{Kind: fault.Silence}))
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{})
		e.await(time.Minute, "tried", func() bool { return e.count(worker.EventFinished) == 1 })
		require.True(e, e.drained())
		require.Equal(e, 1, e.count(worker.EventSettleFailed), "the token is gone, and nobody can tell why")
		require.Equal(e, 1, e.maxDeliveries())
		e.end(w)
	})
}

func TestALockLostAfterTheCommitIsHarmless(t *testing.T) {
	for _, verb := range []struct{ name, op, body string }{{"complete", history.Complete, `{"n":1}`}, {"dead-letter", history.DeadLetter, "not json"}} {
		t.Run(verb.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{LockDuration: 30 * time.Second}, func(e *env) {
				e.faults.Add(fault.On(verb.op).Before(fault.Reject(lockLost)))
				e.send("m", verb.body)
				w := e.start(worker.Config{LockDuration: 30 * time.Second})
				e.await(2*time.Minute, "drained", e.drained)
				require.Equal(e, 2, e.maxDeliveries(), "the broker redelivers, and a second settle of the same object proves nothing")
				require.Equal(e, 1, e.count(worker.EventLockLost))
				require.Equal(e, 1, e.ops(verb.op))
				require.LessOrEqual(e, e.mem.Len(), 1)
				require.True(e, w.Health().Ready)
				e.end(w)
			})
		})
	}
}

func TestALockLostBeforeTheCommitCancelsTheHandler(t *testing.T) {
	bubble(t, servicebus.Queue{LockDuration: 30 * time.Second}, func(e *env) {
		e.faults.Add(fault.On(history.Renew).Before(fault.Action{Kind: fault.Refuse, Status: 410}))
		var cause atomic.Value
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			if m.DeliveryCount == 1 {
				<-ctx.Done()
				cause.Store(context.Cause(ctx))
				return order(ctx, m)
			}
			return order(ctx, m)
		})
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{LockDuration: 30 * time.Second})
		e.await(2*time.Minute, "drained", e.drained)
		require.ErrorIs(e, cause.Load().(error), worker.ErrLockLost)
		require.Equal(e, 1, e.count(worker.EventLockLost))
		require.Equal(e, 1, e.ops(history.Complete))
		require.Zero(e, e.ops(history.Abandon), "nothing is settled without a lock")
		require.Equal(e, 1, e.mem.Creations("m"))
		e.end(w)
	})
}

func TestAHandlerSlowerThanTheLockKeepsItsMessage(t *testing.T) {
	bubble(t, servicebus.Queue{LockDuration: 10 * time.Second}, func(e *env) {
		e.handler = slow(100*time.Second, nil)
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{LockDuration: 10 * time.Second})
		e.await(3*time.Minute, "drained", e.drained)
		require.Equal(e, 1, e.maxDeliveries())
		require.InDelta(e, 20, e.ops(history.Renew), 2, "100s of work, renewed each 5s")
		e.end(w)
	})
}

func TestALockShorterThanConfiguredIsLearnedFromTheMessage(t *testing.T) {
	bubble(t, servicebus.Queue{LockDuration: 10 * time.Second}, func(e *env) {
		e.handler = slow(50*time.Second, nil)
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{LockDuration: 5 * time.Minute})
		e.await(3*time.Minute, "drained", e.drained)
		require.Equal(e, 1, e.maxDeliveries())
		e.end(w)
	})
}

func TestRenewalsThatFailAreRepeatedBeforeTheLockEnds(t *testing.T) {
	bubble(t, servicebus.Queue{LockDuration: 30 * time.Second}, func(e *env) {
		e.faults.Add(fault.On(history.Renew).Times(2).Before(fault.Action{Kind: fault.Refuse, Status: 503}))
		e.faults.Add(fault.On(history.Renew).Nth(4).Before(fault.Action{Kind: fault.Silence}))
		e.handler = slow(2*time.Minute, nil)
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{LockDuration: 30 * time.Second, HandlerTimeout: 3 * time.Minute})
		e.await(5*time.Minute, "drained", e.drained)
		require.Equal(e, 1, e.maxDeliveries())
		e.end(w)
	})
}

func TestTheManagementLinkDiesWhileAHandlerWorks(t *testing.T) {
	// The conditions after which the client never recovers the link make it spin, and a bubble's clock stands still
	// meanwhile: see TestAManagementLinkBeyondRepairIsReplaced.
	for _, condition := range []string{"amqp:link:detach-forced", "amqp:internal-error"} {
		t.Run(condition, func(t *testing.T) {
			bubble(t, servicebus.Queue{LockDuration: 30 * time.Second}, func(e *env) {
				e.handler = slow(2*time.Minute, func() {
					n, err := e.broker.Detach("orders", servicebus.ManagementLinks, condition)
					require.NoError(e, err)
					require.Positive(e, n)
				})
				e.send("m", `{"n":1}`)
				w := e.start(worker.Config{LockDuration: 30 * time.Second, HandlerTimeout: 3 * time.Minute})
				e.await(5*time.Minute, "drained", e.drained)
				require.Equal(e, 1, e.maxDeliveries(), "the lock was kept over another connection")
				e.end(w)
			})
		})
	}
}

func TestTheConnectionDiesWhileAHandlerWorks(t *testing.T) {
	tests := []struct {
		name string
		do   func(e *env)
	}{
		{"the connection is cut", func(e *env) { e.broker.DropConnections() }},
		{"the connection is closed", func(e *env) { e.broker.CloseConnections("amqp:connection:forced") }},
		{"the session ends", func(e *env) { require.NoError(e, e.broker.EndSessions("orders", "amqp:internal-error")) }},
		{"the receiver is detached", func(e *env) {
			_, err := e.broker.Detach("orders", servicebus.Receivers, "amqp:link:detach-forced")
			require.NoError(e, err)
		}},
		{"the receiver is detached as busy", func(e *env) {
			_, err := e.broker.Detach("orders", servicebus.Receivers, "com.microsoft:server-busy")
			require.NoError(e, err)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				e.handler = slow(20*time.Second, func() { tt.do(e) })
				w := e.startProven(worker.Config{})
				e.sendOrders("o-", 5)
				e.await(2*time.Minute, "drained", e.drained)
				require.Equal(e, 1, e.maxDeliveries(), "every message was settled by its lock token over the new connection")
				require.Equal(e, 5, e.mem.Len())
				e.sendOrders("p-", 5)
				e.await(time.Minute, "drained", e.drained)
				require.Equal(e, 10, e.mem.Len())
				e.end(w)
			})
		})
	}
}

func TestDeadLetterTextsAreCutToWhatTheBrokerTakes(t *testing.T) {
	for _, n := range []int{0, 10, 3999, 4000, 4001, 4095, 4096, 4097, 33000, 70000} {
		for _, c := range []string{"x", "ü", "日", "😀", "\xff", "\x00"} {
			bubble(t, servicebus.Queue{}, func(e *env) {
				e.handler = worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
					return worker.Effects{}, worker.Reject(strings.Repeat(c, n/10), errors.New("Why: "+strings.Repeat(c, n)))
				})
				e.send("m", `{"n":1}`)
				w := e.start(worker.Config{})
				e.await(time.Minute, "drained", e.drained)
				dead := e.deadLetters()
				require.Len(e, dead, 1)
				for text, limit := range map[string]int{dead[0].DeadLetterReason: 256, dead[0].DeadLetterErrorDescription: 4000} {
					require.LessOrEqual(e, len(text), limit)
					require.True(e, utf8.ValidString(text))
					require.NotContains(e, text, "\x00")
				}
				require.NotEmpty(e, dead[0].DeadLetterReason)
				require.True(e, strings.HasPrefix(dead[0].DeadLetterErrorDescription, "Why: "))
				e.end(w)
			})
		}
	}
}

func TestADeadLetterThatIsRefusedIsTriedBareAndThenLeftToTheBroker(t *testing.T) {
	tests := []struct {
		name      string
		times     int
		condition string
		reason    string
		bare      bool
	}{
		{"refused once", 1, "amqp:link:message-size-exceeded", reason.NotJSON, true},
		{"refused once with a condition that the client does not know", 1, "com.example:odd", reason.NotJSON, false},
		{"always refused", -1, "amqp:link:message-size-exceeded", reason.MaxDeliveryCountExceeded, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 2, LockDuration: 30 * time.Second}, func(e *env) {
				rule := fault.On(history.DeadLetter).Key("m").Before(fault.Action{Kind: fault.Refuse, Condition: tt.condition, Status: 400})
				if tt.times < 0 {
					rule = rule.Always()
				}
				e.faults.Add(rule)
				e.sendAll(&azservicebus.Message{MessageID: new("m"), Body: []byte("not json"), ApplicationProperties: map[string]any{"p": strings.Repeat("x", 31000)}})
				w := e.start(worker.Config{MaxDeliveryCount: 2, LockDuration: 30 * time.Second})
				e.await(10*time.Minute, "drained", e.drained)
				dead := e.deadLetters()
				require.Len(e, dead, 1)
				require.Equal(e, tt.reason, dead[0].DeadLetterReason)
				if tt.times > 0 && tt.bare {
					require.Empty(e, dead[0].DeadLetterErrorDescription)
				}
				require.LessOrEqual(e, e.maxDeliveries(), 2)
				tries := e.history.Count(func(ev history.Event) bool { return ev.Op == history.DeadLetter && !ev.Effect })
				require.LessOrEqual(e, tries, 2*6, "never an endless loop")
				e.end(w)
			})
		})
	}
}
