package servicebus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

func faulty(rules ...*fault.Rule) servicebus.Options {
	return servicebus.Options{Faults: fault.Script(rules...)}
}

func TestFaultsAtASettlement(t *testing.T) {
	for name, tt := range map[string]struct {
		rule      *fault.Rule
		completed bool
		want      func(t *testing.T, err error)
	}{
		"silence before": {fault.On(history.Complete).Before(fault.Action{Kind: fault.Silence}), false, deadline},
		"silence after":  {fault.On(history.Complete).After(fault.Action{Kind: fault.Silence}), true, deadline},
		"drop before":    {fault.On(history.Complete).Before(fault.DropReply()), false, deadline},
		"drop after":     {fault.On(history.Complete).After(fault.DropReply()), true, deadline},
		"refused before": {fault.On(history.Complete).Before(fault.Reject("amqp:not-allowed")), false, func(t *testing.T, err error) {
			requireCondition(t, "amqp:not-allowed", err)
		}},
		"refused after": {fault.On(history.Complete).After(fault.Reject("com.microsoft:message-lock-lost")), true, func(t *testing.T, err error) {
			requireCode(t, azservicebus.CodeLockLost, err)
		}},
		"session ended after":    {fault.On(history.Complete).After(fault.Action{Kind: fault.EndSession}), true, deadline},
		"connection closed":      {fault.On(history.Complete).After(fault.Action{Kind: fault.CloseConnection}), true, deadline},
		"garbage":                {fault.On(history.Complete).Before(fault.Action{Kind: fault.Garble}), false, deadline},
		"detached before":        {fault.On(history.Complete).Before(fault.DetachLink("amqp:link:detach-forced")), true, func(t *testing.T, err error) { require.NoError(t, err) }},
		"detached after":         {fault.On(history.Complete).After(fault.DetachLink("amqp:link:detach-forced")), true, func(t *testing.T, err error) { requireCode(t, azservicebus.CodeLockLost, err) }},
		"only a delay":           {fault.On(history.Complete).After(fault.Wait(time.Second)), true, func(t *testing.T, err error) { require.NoError(t, err) }},
		"for another message":    {fault.On(history.Complete).Key("m2").Before(fault.DropReply()), true, func(t *testing.T, err error) { require.NoError(t, err) }},
		"at the second of these": {fault.On("servicebus.*").Key("m1").Nth(3).Before(fault.DropReply()), false, deadline},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, faulty(tt.rule), func(t *testing.T, w *env) {
				w.send(message("m1", "{}"))
				r := w.receiver()
				m := take(t, r, 1)[0]
				tt.want(t, r.CompleteMessage(within(t, 3*time.Second), m, nil))
				require.Equal(t, tt.completed, w.counts().Total() == 0)
			})
		})
	}
}

func deadline(t *testing.T, err error) { require.ErrorIs(t, err, context.DeadlineExceeded) }

func TestFaultsAtASend(t *testing.T) {
	for name, tt := range map[string]struct {
		rule   *fault.Rule
		copies int
		fails  string
	}{
		"a lost answer makes a second copy": {fault.On(history.Send).After(fault.DropReply()), 2, ""},
		"a lost request makes one":          {fault.On(history.Send).Before(fault.DropReply()), 1, ""},
		"throttling is tried again":         {fault.On(history.Send).Before(fault.Reject("com.microsoft:server-busy")), 1, ""},
		"a full queue is not":               {fault.On(history.Send).Before(fault.Reject("amqp:resource-limit-exceeded")), 0, "resource-limit-exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, faulty(tt.rule), func(t *testing.T, w *env) {
				s, err := w.client.NewSender("orders", nil)
				require.NoError(t, err)
				err = s.SendMessage(within(t, time.Hour), message("m1", "{}"), nil)
				if tt.fails != "" {
					require.ErrorContains(t, err, tt.fails)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, tt.copies, w.counts().Total())
			})
		})
	}
}

func TestFaultsAtADelivery(t *testing.T) {
	for name, tt := range map[string]struct {
		rule          *fault.Rule
		active, holds int
	}{
		"drop before":    {fault.On(history.Lock).Before(fault.DropReply()), 1, 0},
		"drop after":     {fault.On(history.Lock).After(fault.DropReply()), 0, 1},
		"detach before":  {fault.On(history.Lock).Before(fault.DetachLink("amqp:link:detach-forced")), 1, 0},
		"silence before": {fault.On(history.Lock).Before(fault.Action{Kind: fault.Silence}), 1, 0},
		"silence after":  {fault.On(history.Lock).After(fault.Action{Kind: fault.Silence}), 0, 1},
		"refused":        {fault.On(history.Lock).Before(fault.Reject("amqp:internal-error")), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, faulty(tt.rule), func(t *testing.T, w *env) {
				r := w.raw().receive("orders", -1)
				synctest.Wait()
				require.NoError(t, r.IssueCredit(1))
				w.send(message("m1", "{}"))
				synctest.Wait()
				require.Equal(t, []int{tt.active, tt.holds}, []int{w.counts().Active, w.counts().Locked})
				time.Sleep(time.Minute)
				want := uint32(1 + tt.holds)
				require.Equal(t, want, take(t, w.receiver(), 1)[0].DeliveryCount)
			})
		})
	}
}

func TestDelayedDeliveryArrivesLater(t *testing.T) {
	rule := fault.On(history.Lock).Before(fault.Wait(5 * time.Second))
	late := fault.On(history.Lock).After(fault.Wait(7 * time.Second))
	bubble(t, faulty(rule, late), func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		begin := time.Now()
		m := take(t, w.receiver(), 1)[0]
		require.Equal(t, 12*time.Second, time.Since(begin).Round(time.Second))
		require.Equal(t, 53*time.Second, time.Until(*m.LockedUntil).Round(time.Second), "the lock has been ticking")
	})
}

func TestMessageThatExpiresOnItsWayIsNotDelivered(t *testing.T) {
	o := with(func(q *servicebus.Queue) { q.DefaultMessageTimeToLive = 10 * time.Second })
	o.Faults = fault.Script(fault.On(history.Lock).Before(fault.Wait(20 * time.Second)))
	bubble(t, o, func(t *testing.T, w *env) {
		r := w.receiver()
		w.send(message("m1", "{}"))
		_, err := r.ReceiveMessages(within(t, time.Minute), 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, history.Expired, w.ops()[len(w.ops())-1])
		w.send(message("m2", "{}"))
		require.Equal(t, "m2", take(t, r, 1)[0].MessageID, "the credit was returned")
	})
}

func TestFaultsAtManagementRequests(t *testing.T) {
	renew := func(w *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
		return r.RenewMessageLock(within(w.t, time.Minute), m, nil)
	}
	complete := func(w *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
		return r.CompleteMessage(within(w.t, time.Minute), &azservicebus.ReceivedMessage{LockToken: m.LockToken}, nil)
	}
	for name, tt := range map[string]struct {
		rule *fault.Rule
		ask  func(*env, *azservicebus.Receiver, *azservicebus.ReceivedMessage) error
		want func(*testing.T, error)
	}{
		"renewal answered 410": {fault.On(history.Renew).Before(fault.Action{Kind: fault.Refuse, Status: 410}), renew, func(t *testing.T, err error) { requireCode(t, azservicebus.CodeLockLost, err) }},
		"renewal answered 503": {fault.On(history.Renew).Before(fault.Action{Kind: fault.Refuse, Status: 503}), renew, func(t *testing.T, err error) { require.NoError(t, err) }},
		"renewal answered 503 for ever": {fault.On(history.Renew).Always().Before(fault.Action{Kind: fault.Refuse, Status: 503}), renew, func(t *testing.T, err error) {
			require.ErrorContains(t, err, "503")
		}},
		"renewal not answered": {fault.On(history.Renew).Before(fault.Action{Kind: fault.Silence}), renew, deadline},
		"completion answered 410 though it was done": {fault.On(history.Complete).After(fault.Action{Kind: fault.Refuse, Status: 410}), complete, func(t *testing.T, err error) {
			requireCode(t, azservicebus.CodeLockLost, err)
		}},
		"completion answered with a condition": {fault.On(history.Complete).Before(fault.Reject("com.microsoft:message-lock-lost")), complete, func(t *testing.T, err error) {
			requireCode(t, azservicebus.CodeLockLost, err)
		}},
		"the second attempt after a lost answer": {fault.On(history.Complete).After(fault.DropReply()), complete, func(t *testing.T, err error) {
			requireCode(t, azservicebus.CodeLockLost, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, faulty(tt.rule), func(t *testing.T, w *env) {
				w.send(message("m1", "{}"))
				r := w.receiver()
				tt.want(t, tt.ask(w, r, take(t, r, 1)[0]))
			})
		})
	}
}

func TestFaultsAtPeekDeferScheduleAndReceiveDeferred(t *testing.T) {
	refuse := fault.Action{Kind: fault.Refuse, Status: 401}
	o := faulty(fault.On(history.Peek).Before(refuse), fault.On(history.Schedule).Before(refuse), fault.On(history.ReceiveDeferred).Before(refuse),
		fault.On(history.CancelScheduled).Before(refuse), fault.On(history.Defer).Before(fault.Reject("amqp:not-allowed")), fault.On(history.Abandon).Before(fault.Reject("amqp:not-allowed")),
		fault.On(history.DeadLetter).Before(fault.Reject("amqp:not-allowed")))
	bubble(t, o, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		ctx := within(t, time.Hour)
		token := &azservicebus.ReceivedMessage{LockToken: m.LockToken}
		_, err := r.PeekMessages(ctx, 1, nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
		_, err = r.ReceiveDeferredMessages(ctx, []int64{1}, nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		_, err = s.ScheduleMessages(ctx, []*azservicebus.Message{message("m2", "{}")}, time.Now(), nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, s.CancelScheduledMessages(ctx, []int64{1}, nil))
		require.Equal(t, 1, w.counts().Locked)
		requireCondition(t, "amqp:not-allowed", r.DeferMessage(ctx, m, nil))
		require.Error(t, r.AbandonMessage(within(t, 2*time.Second), token, nil))
		require.Error(t, r.DeadLetterMessage(within(t, 2*time.Second), token, nil))
		require.Equal(t, 1, w.counts().Locked)
		require.Equal(t, 7, o.Faults.Applied())
	})
}

func TestFaultsAtConnectingAndAttaching(t *testing.T) {
	for name, rules := range map[string][]*fault.Rule{
		"connection cut":          {fault.On(history.Connect).Before(fault.DropReply())},
		"connection cut later":    {fault.On(history.Connect).After(fault.DropReply())},
		"connection closed":       {fault.On(history.Connect).After(fault.Action{Kind: fault.CloseConnection})},
		"connection slow":         {fault.On(history.Connect).Before(fault.Wait(time.Second))},
		"token refused once":      {fault.On(history.PutToken).Before(fault.Action{Kind: fault.Refuse, Status: 500})},
		"token put, cut":          {fault.On(history.PutToken).After(fault.DropReply())},
		"attach refused as busy":  {fault.On(history.Attach).Key("orders").Before(fault.Reject("com.microsoft:server-busy"))},
		"attach, connection cut":  {fault.On(history.Attach).Key("orders").Before(fault.DropReply())},
		"attached, cut":           {fault.On(history.Attach).Key("orders").After(fault.DropReply())},
		"attach, session ended":   {fault.On(history.Attach).Key("orders").Before(fault.Action{Kind: fault.EndSession})},
		"attach slow":             {fault.On(history.Attach).Always().Before(fault.Wait(time.Second))},
		"attached, then detached": {fault.On(history.Attach).Key("orders").After(fault.DetachLink("amqp:link:detach-forced"))},
		"connection garbled":      {fault.On(history.Connect).After(fault.Action{Kind: fault.Garble})},
	} {
		t.Run(name, func(t *testing.T) {
			o := faulty(rules...)
			bubble(t, o, func(t *testing.T, w *env) {
				w.client = w.dialRetrying(azservicebus.RetryOptions{})
				s, err := w.client.NewSender("orders", nil)
				require.NoError(t, err)
				require.NoError(t, s.SendMessage(within(t, time.Hour), message("m1", "{}"), nil))
				require.NotZero(t, o.Faults.Applied())
				require.Equal(t, "m1", take(t, w.receiver(), 1)[0].MessageID)
				require.Empty(t, w.Refusals())
			})
		})
	}
}

func TestUnansweredTokenHangsTheClientUntilItsDeadline(t *testing.T) {
	bubble(t, faulty(fault.On(history.PutToken).Before(fault.Action{Kind: fault.Silence})), func(t *testing.T, w *env) {
		_, err := w.receiver().ReceiveMessages(within(t, 10*time.Second), 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestRefusedTokenIsUnauthorized(t *testing.T) {
	bubble(t, faulty(fault.On(history.PutToken).Before(fault.Action{Kind: fault.Refuse})), func(t *testing.T, w *env) {
		_, err := w.receiver().ReceiveMessages(within(t, time.Minute), 1, nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
	})
}

func TestLagIsNoFaultOfAQueue(t *testing.T) {
	bubble(t, faulty(fault.On(history.Send).Before(fault.Action{Kind: fault.Lag})), func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		require.Error(t, s.SendMessage(within(t, time.Second), message("m1", "{}"), nil))
		require.Len(t, w.Refusals(), 1)
		require.Contains(t, w.Refusals()[0], "Lag")
	})
}

func TestDelaysOverlap(t *testing.T) {
	o := faulty(fault.On(history.Complete).Always().Before(fault.Wait(20 * time.Millisecond)))
	bubble(t, o, func(t *testing.T, w *env) {
		const n = 64
		for i := range n {
			w.send(message(fmt.Sprint(i), "{}"))
		}
		r := w.receiver()
		ms := take(t, r, n)
		begin := time.Now()
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i, m := range ms {
			wg.Go(func() { errs[i] = r.CompleteMessage(within(t, time.Minute), m, nil) })
		}
		wg.Wait()
		require.Equal(t, make([]error, n), errs)
		require.Equal(t, 20*time.Millisecond, time.Since(begin))
	})
}

func TestDelayedSendsKeepTheirOrder(t *testing.T) {
	o := faulty(
		fault.On(history.Send).Key("0").Before(fault.Wait(time.Second)),
		fault.On(history.Send).Key("2").Before(fault.Wait(time.Millisecond)),
	)
	bubble(t, o, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { require.NoError(t, s.SendMessage(within(t, time.Minute), message(fmt.Sprint(i), "{}"), nil)) })
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, time.Second, time.Since(begin))
		all, err := w.Messages("orders")
		require.NoError(t, err)
		for i, m := range all {
			require.Equal(t, fmt.Sprint(i), m.Key)
		}
	})
}

func TestDoIsCalledAtThePointAndMayUseTheBroker(t *testing.T) {
	var w *env
	var seen servicebus.Counts
	rule := fault.On(history.Complete).Key("m1").After(fault.Call(func() { seen = w.counts(); w.DropConnections() }))
	synctest.Test(t, func(t *testing.T) {
		w = start(t, faulty(rule))
		w.send(message("m1", "{}"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		require.Equal(t, 1, w.counts().Locked)
		require.Error(t, r.CompleteMessage(within(t, 3*time.Second), m, nil))
		require.Zero(t, seen)
	})
}

func TestClosingEndsWhatWaits(t *testing.T) {
	o := faulty(fault.On("servicebus.*").Always().Before(fault.Wait(1000 * time.Hour)))
	synctest.Test(t, func(t *testing.T) {
		w := start(t, o)
		_, err := w.receiver().ReceiveMessages(within(t, time.Second), 1, nil)
		require.Error(t, err)
		begin := time.Now()
		w.Close()
		require.Equal(t, begin, time.Now())
	})
}
