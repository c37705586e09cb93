package servicebus_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// receive opens a link in peek-lock mode.
func (c *rawClient) receive(address string, credit int32) *goamqp.Receiver {
	c.t.Helper()
	r, err := c.session.NewReceiver(within(c.t, time.Minute), address, &goamqp.ReceiverOptions{
		Credit: credit, SettlementMode: goamqp.ReceiverSettleModeSecond.Ptr(),
	})
	require.NoError(c.t, err)
	return r
}

func TestConnectionLivesWhileNothingHappens(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		c := w.raw()
		r := c.receive("orders", 1)
		_, err := r.Receive(within(t, 6*time.Hour), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, w.Connections())
	})
}

func TestSilentClientIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, servicebus.Options{IdleTimeout: time.Minute})
		nc, err := w.Dial(context.Background())
		require.NoError(t, err)
		defer func() { _ = nc.Close() }()
		synctest.Wait()
		require.Equal(t, 1, w.Connections())
		time.Sleep(3 * time.Minute)
		require.Zero(t, w.Connections())
	})
}

func TestCreditIsObeyedAndDrained(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		for i := range 10 {
			_, err := w.Send("orders", amqp.Message{Properties: &amqp.Properties{MessageID: fmt.Sprint(i)}})
			require.NoError(t, err)
		}
		c := w.raw()
		r := c.receive("orders", -1)
		synctest.Wait()
		require.Zero(t, w.counts().Locked)
		require.NoError(t, r.IssueCredit(3))
		synctest.Wait()
		require.Equal(t, 3, w.counts().Locked)
		for range 3 {
			m, err := r.Receive(within(t, time.Minute), nil)
			require.NoError(t, err)
			require.NoError(t, r.AcceptMessage(within(t, time.Minute), m))
		}
		require.NoError(t, r.IssueCredit(20))
		for range 7 {
			m, err := r.Receive(within(t, time.Minute), nil)
			require.NoError(t, err)
			require.NoError(t, r.AcceptMessage(within(t, time.Minute), m))
		}
		require.NoError(t, r.DrainCredit(within(t, time.Minute), nil))
		_, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, w.counts().Active, "the credit has been drained")
		require.NoError(t, r.IssueCredit(1))
		_, err = r.Receive(within(t, time.Minute), nil)
		require.NoError(t, err)
	})
}

func TestConsumersTakeTurns(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		a, b := w.raw().receive("orders", 100), w.raw().receive("orders", 100)
		synctest.Wait()
		for range 10 {
			_, err := w.Send("orders", amqp.Message{})
			require.NoError(t, err)
		}
		for range 5 {
			for _, r := range []*goamqp.Receiver{a, b} {
				_, err := r.Receive(within(t, time.Second), nil)
				require.NoError(t, err)
			}
		}
	})
}

func TestWindowOfTheSessionIsObeyed(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		const messages = 300
		body := bytes.Repeat([]byte("x"), 20_000) // forty frames of 512 bytes: the window of 5000 is used up twice
		for i := range messages {
			_, err := w.Send("orders", amqp.Message{Properties: &amqp.Properties{MessageID: fmt.Sprint(i)}, BodyKind: amqp.BodyData, Data: [][]byte{body}})
			require.NoError(t, err)
		}
		r := w.rawWith(&goamqp.ConnOptions{MaxFrameSize: 512}).receive("orders", messages)
		for i := range messages {
			m, err := r.Receive(within(t, time.Minute), nil)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), m.Properties.MessageID)
			require.Equal(t, body, m.GetData())
			require.NoError(t, r.AcceptMessage(within(t, time.Minute), m))
		}
		require.Zero(t, w.counts())
	})
}

func TestMessagesStayInTheQueueWhenTheClientDoesNotRead(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		body := make([]byte, 100_000)
		for range 100 {
			_, err := w.Send("orders", amqp.Message{BodyKind: amqp.BodyData, Data: [][]byte{body}})
			require.NoError(t, err)
		}
		c := w.raw()
		link := c.receive("orders", -1)
		w.SetMute(amqp.MuteFrames)
		require.NoError(t, link.IssueCredit(100))
		synctest.Wait()
		require.Less(t, w.counts().Locked, 15)
		w.SetMute(amqp.Speaking)
		for range 100 {
			m, err := link.Receive(within(t, time.Minute), nil)
			require.NoError(t, err)
			require.NoError(t, link.AcceptMessage(within(t, time.Minute), m))
		}
		require.Zero(t, w.counts())
	})
}

func TestEveryOutcomeOfAForeignClientIsUnderstood(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		for i := range 4 {
			_, err := w.Send("orders", amqp.Message{Properties: &amqp.Properties{MessageID: fmt.Sprint(i)}})
			require.NoError(t, err)
		}
		r := w.raw().receive("orders", -1)
		require.NoError(t, r.IssueCredit(4))
		var ms []*goamqp.Message
		for range 4 {
			m, err := r.Receive(within(t, time.Minute), nil)
			require.NoError(t, err)
			ms = append(ms, m)
		}
		ctx := within(t, time.Minute)
		require.NoError(t, r.RejectMessage(ctx, ms[0], nil))
		require.NoError(t, r.RejectMessage(ctx, ms[1], &goamqp.Error{Condition: "app:broken", Description: "because"}))
		require.NoError(t, r.ModifyMessage(ctx, ms[2], &goamqp.ModifyMessageOptions{DeliveryFailed: true}))
		require.NoError(t, r.ReleaseMessage(ctx, ms[3]))
		dead, err := w.Messages(dlq)
		require.NoError(t, err)
		require.Equal(t, []string{"", "app:broken"}, []string{dead[0].DeadLetterReason, dead[1].DeadLetterReason})
		require.Equal(t, "because", dead[1].DeadLetterErrorDescription)
		left, err := w.Messages("orders")
		require.NoError(t, err)
		require.Equal(t, []int{1, 0}, []int{left[0].DeliveryCount, left[1].DeliveryCount})
	})
}

func TestSettlingOnceForAllIsUnderstood(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		_, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		c := w.raw()
		r, err := c.session.NewReceiver(within(t, time.Minute), "orders", &goamqp.ReceiverOptions{SettlementMode: goamqp.ReceiverSettleModeFirst.Ptr()})
		require.NoError(t, err)
		m, err := r.Receive(within(t, time.Minute), nil)
		require.NoError(t, err)
		require.NoError(t, r.AcceptMessage(within(t, time.Minute), m))
		synctest.Wait()
		require.Zero(t, w.counts())
	})
}

func TestSendersNeedNoAnswerWhenTheySaySo(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		c := w.raw()
		s, err := c.session.NewSender(within(t, time.Minute), "orders", &goamqp.SenderOptions{SettlementMode: goamqp.SenderSettleModeSettled.Ptr()})
		require.NoError(t, err)
		for range 3000 { // more than the credit, so that it has to be renewed
			require.NoError(t, s.Send(within(t, time.Minute), goamqp.NewMessage([]byte("{}")), nil))
		}
		synctest.Wait()
		require.Equal(t, 3000, w.counts().Active)
	})
}

func TestChannelsAndHandlesAreUsedAgain(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		c := w.raw()
		for range 300 {
			ctx := within(t, time.Minute)
			s, err := c.conn.NewSession(ctx, nil)
			require.NoError(t, err)
			r, err := s.NewReceiver(ctx, "orders", nil)
			require.NoError(t, err)
			require.NoError(t, r.Close(ctx))
			_, err = s.NewReceiver(ctx, "nowhere", nil)
			require.Error(t, err)
			_, err = s.NewSender(ctx, "orders", nil)
			require.NoError(t, err)
			require.NoError(t, s.Close(ctx))
		}
	})
}

func TestSecondPairOfTokenLinksIsRefusedWhenAskedFor(t *testing.T) {
	bubble(t, servicebus.Options{OneCBSLink: true}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		require.Len(t, take(t, w.receiver(), 1), 1)
		c := w.raw()
		_, err := c.session.NewSender(within(t, time.Minute), "$cbs", nil)
		require.NoError(t, err)
		_, err = c.session.NewSender(within(t, time.Minute), "$cbs", nil)
		var e *goamqp.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, goamqp.ErrCondNotAllowed, e.Condition)
	})
}

func TestLinkWithoutATokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, servicebus.Options{})
		nc, err := w.Dial(context.Background())
		require.NoError(t, err)
		conn, err := goamqp.NewConn(within(t, time.Minute), nc, &goamqp.ConnOptions{SASLType: goamqp.SASLTypeAnonymous()})
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		s, err := conn.NewSession(within(t, time.Minute), nil)
		require.NoError(t, err)
		_, err = s.NewReceiver(within(t, time.Minute), "orders", nil)
		var e *goamqp.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, goamqp.ErrCondUnauthorizedAccess, e.Condition)
	})
}

func TestSASLIsNeededAndItsMechanismsAreThoseOfTheService(t *testing.T) {
	for name, o := range map[string]*goamqp.ConnOptions{
		"no SASL": {}, "external": {SASLType: goamqp.SASLTypeExternal("")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, servicebus.Options{})
				nc, err := w.Dial(context.Background())
				require.NoError(t, err)
				_, err = goamqp.NewConn(within(t, time.Minute), nc, o)
				require.Error(t, err)
				synctest.Wait()
				require.Zero(t, w.Connections())
			})
		})
	}
}

func TestManyReceiversAndSendersAtOnceOverSockets(t *testing.T) {
	w := open(t, servicebus.Options{})
	const clients, each = 4, 200
	errs := make(chan error, 2*clients)
	l := w.listen()
	for i := range clients {
		c := w.dialAddress(l)
		go func() { errs <- produce(c, i, each) }()
		go func() { errs <- consume(c, each) }()
	}
	for range 2 * clients {
		require.NoError(t, <-errs)
	}
	require.Zero(t, w.counts().Total())
}

func produce(c *azservicebus.Client, i, n int) error {
	s, err := c.NewSender("orders", nil)
	for k := 0; k < n && err == nil; k++ {
		err = s.SendMessage(context.Background(), message(fmt.Sprintf("%d-%d", i, k), "{}"), nil)
	}
	return err
}

func consume(c *azservicebus.Client, n int) error {
	r, err := c.NewReceiverForQueue("orders", nil)
	for n > 0 && err == nil {
		var ms []*azservicebus.ReceivedMessage
		ms, err = r.ReceiveMessages(context.Background(), min(n, 10), nil)
		for _, m := range ms {
			if e := r.CompleteMessage(context.Background(), m, nil); e != nil {
				return e
			}
		}
		n -= len(ms)
	}
	return err
}
