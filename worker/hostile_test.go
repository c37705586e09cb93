package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

func TestAReceiverThatIsBeyondRepairIsReplaced(t *testing.T) {
	for _, condition := range []string{"com.microsoft:server-busy", "com.microsoft:timeout", "com.microsoft:operation-cancelled"} {
		t.Run(condition, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				w := e.start(worker.Config{})
				e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
				n, err := e.broker.Detach("orders", servicebus.Receivers, condition)
				require.NoError(e, err)
				require.Equal(e, 1, n)
				start := time.Now()
				e.sendOrders("o-", 10)
				e.await(30*time.Second, "drained", e.drained)
				require.Less(e, time.Since(start), 30*time.Second, "throughput is back")
				require.Len(e, e.logs.lines("receiver_replaced"), 1)
				require.Equal(e, 1, e.broker.Connections(), "the old connection is closed")
				e.end(w)
			})
		})
	}
}

func TestABrokerThatFlapsIsNotHammered(t *testing.T) {
	tests := []struct {
		name  string
		fault fault.Action
		part  string
	}{
		{"every attach is detached at once", fault.DetachLink("amqp:link:detach-forced"), "broker"},
		{"every attach closes the connection", fault.Action{Kind: fault.CloseConnection, Condition: "amqp:connection:forced"}, "broker"},
		{"every attach is refused as busy", fault.Reject("com.microsoft:server-busy"), "broker"},
		{"every attach cuts the connection", fault.DropReply(), "broker"},
		{"no attach is answered", fault.Action{Kind: fault.Silence}, "broker"},
		{"the queue needs sessions", fault.Reject("amqp:not-allowed"), "broker"},
		{"the entity has too many receivers", fault.Reject("amqp:resource-limit-exceeded"), "broker"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				e.faults.Add(fault.On(history.Attach).Always().Before(tt.fault))
				e.sendOrdersQuietly(10)
				w := e.start(worker.Config{})
				time.Sleep(time.Hour)
				require.Contains(e, parts(w.Health()), tt.part)
				require.Equal(e, 200, ready(w, "/livez"))
				require.Len(e, e.logs.lines("not_ready"), 1, "one line for one incident")
				require.LessOrEqual(e, len(e.logs.lines("receiver_replaced")), 1)
				attaches := e.history.Count(func(ev history.Event) bool { return ev.Op == history.Attach || ev.Op == history.Connect })
				require.Less(e, attaches, 5000, "an hour of it costs little")
				e.faults.Clear()
				e.await(3*time.Minute, "drained", e.drained)
				e.await(3*time.Minute, "ready", func() bool { return w.Health().Ready })
				require.Equal(e, 10, e.mem.Len())
				require.Equal(e, 1, e.maxDeliveries())
				e.end(w)
			})
		})
	}
}

// sendOrdersQuietly puts orders into the queue without a client, for a broker that no client can reach.
func (e *env) sendOrdersQuietly(n int) {
	e.Helper()
	for i := range n {
		id := fmt.Sprintf("q-%d", i)
		sendRaw(e, e.broker, id, fmt.Sprintf(`{"orderId":%q}`, id))
	}
}

func sendRaw(t require.TestingT, b *servicebus.Broker, id, body string) {
	_, err := b.Send("orders", servicebus.Message{Properties: &servicebus.Properties{MessageID: id}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(body)}})
	require.NoError(t, err)
}

func TestADisabledQueueIsWaitedFor(t *testing.T) {
	tests := []struct {
		name    string
		off, on func(e *env) error
		advice  string
	}{
		{"disabled", func(e *env) error { return e.broker.SetStatus("orders", servicebus.Disabled) },
			func(e *env) error { return e.broker.SetStatus("orders", servicebus.Active) }, "disabled"},
		{"disabled for receiving", func(e *env) error { return e.broker.SetStatus("orders", servicebus.ReceiveDisabled) },
			func(e *env) error { return e.broker.SetStatus("orders", servicebus.Active) }, "disabled"},
		{"without the right to listen", func(e *env) error { return e.broker.SetRights("orders", servicebus.Send) },
			func(e *env) error { return e.broker.SetRights("orders", servicebus.Manage) }, "Azure Service Bus Data Receiver"},
		{"with tokens that are refused", func(e *env) error {
			e.faults.Add(fault.On(history.PutToken).Always().Before(fault.Action{Kind: fault.Refuse, Status: 401}))
			e.broker.DropConnections()
			return nil
		}, func(e *env) error { e.faults.Clear(); return nil }, "Azure Service Bus Data Receiver"},
		{"that is not there", func(e *env) error {
			e.faults.Add(fault.On(history.PutToken).Always().Before(fault.Action{Kind: fault.Refuse, Status: 404}))
			e.broker.DropConnections()
			return nil
		}, func(e *env) error { e.faults.Clear(); return nil }, "no such queue"},
	}
	for _, tt := range tests {
		for _, from := range []string{"from the start", "while running"} {
			t.Run(tt.name+" "+from, func(t *testing.T) {
				bubble(t, servicebus.Queue{}, func(e *env) {
					e.sendOrdersQuietly(5)
					var w *running
					if from == "from the start" {
						require.NoError(e, tt.off(e))
						w = e.start(worker.Config{})
					} else {
						w = e.start(worker.Config{})
						e.await(time.Minute, "drained", e.drained)
						require.NoError(e, tt.off(e))
					}
					time.Sleep(time.Hour)
					require.Equal(e, 503, ready(w, "/readyz"))
					require.Equal(e, 200, ready(w, "/livez"))
					lines := e.logs.lines("not_ready")
					require.Len(e, lines, 1)
					require.Contains(e, w.Health().Problems[0].Detail, tt.advice)
					tries := e.history.Count(func(ev history.Event) bool { return ev.Op == history.Attach || ev.Op == history.PutToken })
					require.Less(e, tries, 5000)
					require.NoError(e, tt.on(e))
					e.await(3*time.Minute, "ready", func() bool { return w.Health().Ready })
					e.sendOrders("later-", 5)
					e.await(time.Minute, "drained", e.drained)
					require.Equal(e, 10, e.mem.Len())
					require.Equal(e, 1, e.maxDeliveries())
					e.end(w)
				})
			})
		}
	}
}

func TestAMessageThatMakesTheClientPanicTakesNoOtherDown(t *testing.T) {
	poison := map[string]servicebus.Map{
		"an integer as dead-letter reason": {{Key: "DeadLetterReason", Value: int32(1)}},
		"a boolean as description":         {{Key: "DeadLetterErrorDescription", Value: true}},
		"null as dead-letter reason":       {{Key: "DeadLetterReason", Value: nil}},
	}
	for name, properties := range poison {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Queue{MaxDeliveryCount: 4, LockDuration: 30 * time.Second}, func(e *env) {
				e.sendOrdersQuietly(3)
				_, err := e.broker.Send("orders", servicebus.Message{
					Properties:            &servicebus.Properties{MessageID: "poison"},
					ApplicationProperties: properties,
					BodyKind:              servicebus.BodyData,
					Data:                  [][]byte{[]byte(`{}`)},
				})
				require.NoError(e, err)
				w := e.start(worker.Config{MaxDeliveryCount: 4, LockDuration: 30 * time.Second})
				time.Sleep(5 * time.Second)
				e.sendOrders("later-", 3)
				e.await(10*time.Minute, "drained", e.drained)
				require.Equal(e, 6, e.mem.Len())
				dead := e.deadLetters()
				require.Len(e, dead, 1)
				require.Equal(e, reason.MaxDeliveryCountExceeded, dead[0].DeadLetterReason, "the broker dead-letters what no client can read")
				require.Positive(e, e.count(worker.EventReceivePanicked))
				for id, n := range e.deliveries() {
					if id != "poison" {
						require.LessOrEqual(e, n, 2, "%s came down with the poison once at most", id)
					}
				}
				e.await(3*time.Minute, "ready", func() bool { return w.Health().Ready })
				e.end(w)
			})
		})
	}
}

func TestAnIdleReceiverIsDetachedAndNobodyMinds(t *testing.T) {
	o := servicebus.Options{IdleLinkTimeout: 10 * time.Minute, Config: servicebus.Config{Queues: []servicebus.Queue{{}}}}
	bubbleWith(t, o, func(e *env) {
		w := e.start(worker.Config{})
		for i := range 10 {
			time.Sleep(time.Duration(i) * 7 * time.Minute)
			e.send(fmt.Sprintf("m-%d", i), `{"n":1}`)
			e.await(10*time.Second, "drained", e.drained)
		}
		require.Equal(e, 1, e.maxDeliveries())
		require.Equal(e, 10, e.mem.Len())
		require.Empty(e, e.logs.lines("not_ready"))
		e.end(w)
	})
}

func TestTokensAreRefreshedForDays(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		w := e.start(worker.Config{})
		for range 8 {
			time.Sleep(6 * time.Hour)
			require.True(e, w.Health().Ready)
			e.sendOrders(fmt.Sprintf("o-%d-", time.Now().Unix()), 3)
			e.await(10*time.Second, "drained", e.drained)
		}
		require.Equal(e, 1, e.maxDeliveries())
		require.LessOrEqual(e, e.broker.Connections(), 1)
		e.end(w)
	})
}

func TestABrokerThatFallsSilentIsNoticed(t *testing.T) {
	for _, mute := range []servicebus.Mute{servicebus.MuteAll, servicebus.MuteFrames} {
		t.Run(fmt.Sprint(mute), func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				w := e.start(worker.Config{})
				e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
				e.broker.SetMute(mute)
				e.sendOrdersQuietly(5)
				e.await(30*time.Second, "not ready", func() bool { return !w.Health().Ready })
				e.broker.SetMute(servicebus.Speaking)
				e.await(5*time.Minute, "drained", e.drained)
				e.await(5*time.Minute, "ready", func() bool { return w.Health().Ready })
				require.Equal(e, 5, e.mem.Len())
				require.LessOrEqual(e, e.maxDeliveries(), 3, "one into the silence, one when that lock ended a moment before it was noticed")
				e.end(w)
			})
		})
	}
}

func TestASilentConnectionOfAnIdleWorkerIsNoticedWithinHalfAMinute(t *testing.T) {
	for _, idle := range []time.Duration{0, 7 * time.Second, 14 * time.Second, time.Hour} {
		t.Run("after "+idle.String(), func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				w := e.start(worker.Config{})
				e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
				time.Sleep(idle)
				require.True(e, w.Health().Ready)
				e.broker.SetMute(servicebus.MuteFrames)
				e.await(30*time.Second, "not ready", func() bool { return !w.Health().Ready })
				require.Equal(e, 200, ready(w, "/livez"))
				e.broker.SetMute(servicebus.Speaking)
				e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
				e.end(w)
			})
		})
	}
}

func TestASlowHandlerOfAnotherReplicaReplacesNoReceiver(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.handler = pausing(40 * time.Second)
		busy := e.start(worker.Config{})
		e.sendOrders("o-", 1)
		e.await(10*time.Second, "received", func() bool { return len(e.seen(worker.EventReceived)) == 1 })
		idle := e.start(worker.Config{})
		e.await(2*time.Minute, "drained", e.drained)
		require.Empty(e, e.logs.lines("receiver_replaced"))
		e.end(busy)
		e.end(idle)
	})
}

func TestATrickleIsProcessedAtOnce(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		w := e.start(worker.Config{})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		for i := range 60 {
			e.send(fmt.Sprintf("m-%d", i), `{"n":1}`)
			time.Sleep(time.Second)
		}
		for _, ev := range e.seen(worker.EventReceived) {
			require.Less(e, ev.Lag, 2*time.Second)
		}
		require.Equal(e, 60, e.mem.Len())
		require.Equal(e, 1, e.maxDeliveries())
		e.end(w)
	})
}
