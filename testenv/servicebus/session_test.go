package servicebus_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// sessionful returns options with a queue that requires sessions, and whose locks last 30 seconds.
func sessionful() servicebus.Options {
	return with(func(q *servicebus.Queue) {
		q.RequiresSession, q.LockDuration, q.MaxDeliveryCount = true, 30*time.Second, 3
	})
}

// of returns a message of a session.
func of(session, id string) *azservicebus.Message {
	m := message(id, "{}")
	m.SessionID = &session
	return m
}

func (w *env) accept(session string) *azservicebus.SessionReceiver {
	w.t.Helper()
	r, err := w.client.AcceptSessionForQueue(within(w.t, time.Minute), "orders", session, nil)
	require.NoError(w.t, err)
	return r
}

func (w *env) acceptNext() *azservicebus.SessionReceiver {
	w.t.Helper()
	r, err := w.client.AcceptNextSessionForQueue(within(w.t, time.Minute), "orders", nil)
	require.NoError(w.t, err)
	return r
}

func idsOf(ms []*azservicebus.ReceivedMessage) []string {
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.MessageID
	}
	return ids
}

func (w *env) sessions() map[string]servicebus.SessionSnapshot {
	w.t.Helper()
	list, err := w.Sessions("orders")
	require.NoError(w.t, err)
	all := map[string]servicebus.SessionSnapshot{}
	for _, s := range list {
		all[s.ID] = s
	}
	return all
}

func TestHolderGetsTheMessagesOfItsSessionInOrder(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		for i := range 5 {
			w.send(of("a", fmt.Sprint("a", i)), of("b", fmt.Sprint("b", i)))
		}
		b := w.accept("b")
		require.Equal(t, "b", b.SessionID())
		require.Equal(t, time.Now().Add(30*time.Second).Unix(), b.LockedUntil().Unix())
		ms := take(t, b, 5)
		require.Equal(t, []string{"b0", "b1", "b2", "b3", "b4"}, idsOf(ms))
		require.Equal(t, "b", *ms[0].SessionID)
		require.Equal(t, 5, w.counts().Active)
		require.Equal(t, 5, w.counts().Locked)
		for _, m := range ms {
			require.NoError(t, b.CompleteMessage(within(t, time.Minute), m, nil))
		}
		require.NoError(t, b.Close(within(t, time.Minute)))
		require.NotContains(t, w.sessions(), "b", "a session without messages, state and holder is gone")
		require.Equal(t, []string{"a0", "a1"}, idsOf(take(t, w.acceptNext(), 2)))
	})
}

func TestAbandonedMessageComesAgainBeforeTheNextOfItsSession(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"), of("a", "m2"))
		r := w.accept("a")
		for try := range 3 {
			m := take(t, r, 1)[0]
			require.Equal(t, []any{"m1", uint32(try + 1)}, []any{m.MessageID, m.DeliveryCount})
			require.NoError(t, r.AbandonMessage(within(t, time.Minute), m, nil))
		}
		require.Equal(t, "m2", take(t, r, 1)[0].MessageID, "the first is dead-lettered, and the session goes on")
		d := take(t, w.deadLetterReceiver(), 1)[0]
		require.Equal(t, []string{"m1", "MaxDeliveryCountExceeded", "a"}, []string{d.MessageID, *d.DeadLetterReason, *d.SessionID})
	})
}

func TestSessionHasOneHolder(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"))
		first := w.accept("a")
		_, err := w.dial().AcceptSessionForQueue(within(t, time.Minute), "orders", "a", nil)
		var e *goamqp.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, goamqp.ErrCond("com.microsoft:session-cannot-be-locked"), e.Condition)
		require.NoError(t, first.Close(within(t, time.Minute)))
		require.Equal(t, "m1", take(t, w.accept("a"), 1)[0].MessageID)
	})
}

func TestNextSessionIsTheOneThatHasWaitedLongest(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("b", "1"), of("a", "2"), of("c", "3"), of("b", "4"))
		var got []string
		for range 3 {
			got = append(got, w.acceptNext().SessionID())
		}
		require.Equal(t, []string{"b", "a", "c"}, got)
	})
}

func TestNoSessionIsATimeoutAfterTheWaitOfTheClient(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		begin := time.Now()
		_, err := w.client.AcceptNextSessionForQueue(within(t, 10*time.Second), "orders", nil)
		requireCode(t, azservicebus.CodeTimeout, err)
		require.InDelta(t, 10, time.Since(begin).Seconds(), 0.2)
		begin = time.Now()
		_, err = w.client.AcceptNextSessionForQueue(context.Background(), "orders", nil)
		requireCode(t, azservicebus.CodeTimeout, err)
		require.Equal(t, 65*time.Second, time.Since(begin), "the service's own wait")
		require.Empty(t, w.sessions())
	})
}

func TestWaitingReceiverGetsASessionAsSoonAsThereIsOne(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"))
		first := w.acceptNext()
		accepted := make(chan string, 1)
		go func() {
			r, err := w.dial().AcceptNextSessionForQueue(within(t, time.Minute), "orders", nil)
			if err != nil {
				accepted <- err.Error()
				return
			}
			accepted <- r.SessionID()
		}()
		synctest.Wait()
		require.Empty(t, accepted)
		w.send(of("b", "m2"))
		require.Equal(t, "b", <-accepted)
		require.Equal(t, "m1", take(t, first, 1)[0].MessageID)
	})
}

func TestReceiverThatHasGoneGetsNoSession(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		gone := make(chan error, 1)
		other := w.dial()
		go func() {
			_, err := other.AcceptNextSessionForQueue(within(t, time.Hour), "orders", nil)
			gone <- err
		}()
		synctest.Wait()
		w.DropConnections()
		require.Error(t, <-gone)
		w.client = w.dial()
		w.send(of("a", "m1"))
		require.Equal(t, "a", w.acceptNext().SessionID())
	})
}

func TestLostSessionLockCountsTheDeliveriesAndFreesTheSession(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"), of("a", "m2"), of("a", "m3"))
		r := w.accept("a")
		ms := take(t, r, 2)
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), ms[0], nil))
		time.Sleep(31 * time.Second)
		require.False(t, w.sessions()["a"].Locked)
		links, err := w.Links("orders", servicebus.Receivers)
		require.NoError(t, err)
		require.Zero(t, links, "its receiver is told")
		require.Equal(t, 2, w.sessions()["a"].Active)
		require.Error(t, r.CompleteMessage(within(t, 3*time.Second), ms[1], nil), "the lock was lost")

		other, err := w.dial().AcceptSessionForQueue(within(t, time.Minute), "orders", "a", nil)
		require.NoError(t, err)
		again := take(t, other, 2)
		require.Equal(t, []string{"m2", "m3"}, idsOf(again))
		require.Equal(t, []uint32{2, 1}, []uint32{again[0].DeliveryCount, again[1].DeliveryCount}, "only what was delivered counts")
		requireCode(t, azservicebus.CodeLockLost, other.CompleteMessage(within(t, time.Minute), &azservicebus.ReceivedMessage{LockToken: ms[1].LockToken}, nil))
		require.Contains(t, w.ops(), history.SessionLockExpired)
	})
}

func TestRenewedSessionLockKeepsTheMessages(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"))
		r := w.accept("a")
		m := take(t, r, 1)[0]
		for range 5 {
			time.Sleep(20 * time.Second)
			require.NoError(t, r.RenewSessionLock(within(t, time.Minute), nil))
			require.Equal(t, time.Now().Add(30*time.Second).UnixMilli(), w.copiesOf("orders")[0].LockedUntil.UnixMilli(), "what is locked under it too")
			require.Equal(t, time.Now().Add(30*time.Second).UnixMilli(), r.LockedUntil().UnixMilli())
		}
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), m, nil))
		require.Zero(t, w.counts())
	})
}

func TestClosedSessionGivesItsMessagesBackUncounted(t *testing.T) {
	for name, leave := range map[string]func(w *env, r *azservicebus.SessionReceiver){
		"closed by its receiver": func(w *env, r *azservicebus.SessionReceiver) {
			require.NoError(w.t, r.Close(within(w.t, time.Minute)))
		},
		"connection cut": func(w *env, _ *azservicebus.SessionReceiver) {
			w.DropConnections()
			synctest.Wait()
			w.client = w.dial()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, sessionful(), func(t *testing.T, w *env) {
				w.send(of("a", "m1"), of("a", "m2"))
				r := w.accept("a")
				require.Len(t, take(t, r, 2), 2)
				leave(w, r)
				ms := take(t, w.acceptNext(), 2)
				require.Equal(t, []string{"m1", "m2"}, idsOf(ms))
				require.Equal(t, uint32(1), ms[0].DeliveryCount)
			})
		})
	}
}

func TestStateOfASession(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		r := w.accept("a")
		state := func(r *azservicebus.SessionReceiver) []byte {
			b, err := r.GetSessionState(within(t, time.Minute), nil)
			require.NoError(t, err)
			return b
		}
		require.Nil(t, state(r))
		require.NoError(t, r.SetSessionState(within(t, time.Minute), []byte("so far"), nil))
		require.NoError(t, r.Close(within(t, time.Minute)))
		require.Equal(t, []byte("so far"), w.sessions()["a"].State, "it stays without messages")
		r = w.accept("a")
		require.Equal(t, []byte("so far"), state(r))
		require.NoError(t, r.SetSessionState(within(t, time.Minute), nil, nil))
		require.Nil(t, state(r))
		require.NoError(t, r.Close(within(t, time.Minute)))
		require.Empty(t, w.sessions())
		_, err := w.client.AcceptNextSessionForQueue(within(t, time.Second), "orders", nil)
		requireCode(t, azservicebus.CodeTimeout, err)
	})
}

func TestSessionIsNotForAnotherConnection(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.accept("a")
		c := w.raw()
		for op, body := range map[string]map[string]any{
			"renew-session-lock": {"session-id": "a"}, "get-session-state": {"session-id": "a"},
			"set-session-state": {"session-id": "a", "session-state": []byte("x")},
		} {
			status, _ := c.call("orders/$management", map[string]any{"operation": "com.microsoft:" + op}, body)
			require.Equal(t, int32(410), status, op)
		}
		status, _ := c.call("orders/$management", map[string]any{"operation": "com.microsoft:renew-lock"}, map[string]any{"lock-tokens": []goamqp.UUID{{1}}})
		require.Equal(t, int32(400), status, "messages have no locks of their own")
	})
}

func TestSessionsAreListed(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("messages", "m1"))
		r := w.accept("state")
		require.NoError(t, r.SetSessionState(within(t, time.Minute), []byte("x"), nil))
		require.NoError(t, r.Close(within(t, time.Minute)))
		list := func(o *azservicebus.ListSessionsOptions) []string {
			var all []string
			p := w.client.NewListSessionsForQueuePager("orders", o)
			for p.More() {
				page, err := p.NextPage(within(t, time.Minute))
				require.NoError(t, err)
				all = append(all, page.Sessions...)
			}
			return all
		}
		require.Equal(t, []string{"messages", "state"}, list(nil))
		before, after := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		require.Equal(t, []string{"state"}, list(&azservicebus.ListSessionsOptions{SessionStateUpdatedAfter: &before}))
		require.Empty(t, list(&azservicebus.ListSessionsOptions{SessionStateUpdatedAfter: &after}))
	})
}

func TestDeferredMessageOfASession(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"), of("b", "m2"))
		r := w.accept("a")
		m := take(t, r, 1)[0]
		require.NoError(t, r.DeferMessage(within(t, time.Minute), m, nil))
		require.NoError(t, r.Close(within(t, time.Minute)))
		b := w.acceptNext()
		require.Equal(t, "b", b.SessionID())
		_, err := w.client.AcceptNextSessionForQueue(within(t, time.Second), "orders", nil)
		requireCode(t, azservicebus.CodeTimeout, err) // a session of which all is deferred is not offered
		r = w.accept("a")
		_, err = b.ReceiveDeferredMessages(within(t, time.Minute), []int64{*m.SequenceNumber}, nil)
		require.Error(t, err, "it belongs to the other session")
		again, err := r.ReceiveDeferredMessages(within(t, time.Minute), []int64{*m.SequenceNumber}, nil)
		require.NoError(t, err)
		require.Equal(t, "m1", again[0].MessageID)
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), again[0], nil))
		require.Equal(t, 1, w.counts().Total())
	})
}

func TestWhatSessionsRefuse(t *testing.T) {
	for name, tt := range map[string]struct {
		o    servicebus.Options
		do   func(w *env) error
		want goamqp.ErrCond
		text string
	}{
		"a message without a session": {sessionful(), func(w *env) error {
			s, err := w.client.NewSender("orders", nil)
			require.NoError(w.t, err)
			return s.SendMessage(within(w.t, time.Minute), message("m1", "{}"), nil)
		}, goamqp.ErrCondNotAllowed, "The SessionId was not set"},
		"a session id that is too long": {sessionful(), func(w *env) error {
			s, err := w.client.NewSender("orders", nil)
			require.NoError(w.t, err)
			return s.SendMessage(within(w.t, time.Minute), of(string(make([]byte, 129)), "m1"), nil)
		}, "com.microsoft:argument-out-of-range", "129 characters"},
		"a receiver without a session": {sessionful(), func(w *env) error {
			_, err := w.receiver().ReceiveMessages(within(w.t, time.Minute), 1, nil)
			return err
		}, goamqp.ErrCondNotAllowed, "It is not possible for an entity that requires sessions to create a non-sessionful message receiver"},
		"a session of a queue without sessions": {servicebus.Options{}, func(w *env) error {
			_, err := w.client.AcceptSessionForQueue(within(w.t, time.Minute), "orders", "a", nil)
			return err
		}, goamqp.ErrCondNotAllowed, "does not require sessions"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, tt.o, func(t *testing.T, w *env) {
				err := tt.do(w)
				require.ErrorContains(t, err, string(tt.want))
				require.ErrorContains(t, err, tt.text)
				require.Empty(t, w.Refusals(), "the service refuses it as well")
			})
		})
	}
}

func TestEmptySessionIDIsASession(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("", "m1"))
		r := w.accept("")
		require.Equal(t, "", r.SessionID())
		require.Equal(t, "", *take(t, r, 1)[0].SessionID)
	})
}

func TestSubscriptionWithSessions(t *testing.T) {
	bubble(t, events(func(_ *servicebus.Topic, b, _ *servicebus.Subscription) { b.RequiresSession = true }), func(t *testing.T, w *env) {
		w.publish(of("a", "m1"), message("m2", "{}"), of("a", "m3"))
		r, err := w.client.AcceptNextSessionForSubscription(within(t, time.Minute), "events", "billing", nil)
		require.NoError(t, err)
		require.Equal(t, []string{"m1", "m3"}, idsOf(take(t, r, 2)))
		require.Equal(t, 3, w.countsOf(audit).Active, "the other subscription has no sessions")
		d := take(t, w.subscriber("billing", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}), 1)[0]
		require.Equal(t, []string{"m2", "Session ID is null."}, []string{d.MessageID, *d.DeadLetterReason})
	})
}

func TestDelayedDeliveryKeepsTheOrderOfItsSession(t *testing.T) {
	for name, rule := range map[string]*fault.Rule{
		"before it is locked": fault.On(history.Lock).Key("m1").Before(fault.Wait(5 * time.Second)),
		"after it is locked":  fault.On(history.Lock).Key("m1").After(fault.Wait(5 * time.Second)),
	} {
		t.Run(name, func(t *testing.T) {
			o := sessionful()
			o.Faults = fault.Script(rule)
			bubble(t, o, func(t *testing.T, w *env) {
				w.send(of("a", "m1"), of("a", "m2"), of("a", "m3"))
				require.Equal(t, []string{"m1", "m2", "m3"}, idsOf(take(t, w.accept("a"), 3)))
			})
		})
	}
}

func TestLockOfASessionEndsByHand(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"))
		r := w.accept("a")
		take(t, r, 1)
		require.NoError(t, w.EndSessionLock("orders", "a"))
		require.Equal(t, uint32(2), take(t, w.acceptNext(), 1)[0].DeliveryCount)
		require.ErrorContains(t, w.EndSessionLock("orders", "b"), "is not locked")
	})
}

// TestSessionEventsOfTheHistory holds that what happens to a session can be told from the history, in order.
func TestSessionEventsOfTheHistory(t *testing.T) {
	bubble(t, sessionful(), func(t *testing.T, w *env) {
		w.send(of("a", "m1"), of("a", "m2"))
		r := w.accept("a")
		ms := take(t, r, 2)
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), ms[0], nil))
		require.NoError(t, r.Close(within(t, time.Minute)))
		var got []string
		for _, e := range w.history.Events() {
			if e.Session == "a" && e.Effect {
				got = append(got, e.Op+" "+e.Key)
			}
		}
		require.Equal(t, []string{
			"servicebus.send m1", "servicebus.send m2", "servicebus.accept-session a", "servicebus.lock m1", "servicebus.lock m2",
			"servicebus.complete m1", "servicebus.release-session a", "servicebus.release m2",
		}, got)
	})
}
