package amqpbroker_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/amqpbroker"
	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// world is an embedded Service Bus with a broker that looks at its dead letters, and a client of the SDK that makes them.
type world struct {
	*servicebus.Broker
	t       *testing.T
	faults  *fault.Plan
	history *history.Log
	broker  *amqpbroker.Broker
	sdk     *azservicebus.Client
}

const dead = "orders/$DeadLetterQueue"

func start(t *testing.T, change func(*servicebus.Options)) *world {
	t.Helper()
	w := &world{t: t, faults: fault.Script(), history: history.New()}
	o := servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{{Name: "orders"}}}, Faults: w.faults, History: w.history, OneCBSLink: true}
	if change != nil {
		change(&o)
	}
	var err error
	w.Broker, err = servicebus.New(o)
	require.NoError(t, err)
	t.Cleanup(w.Broker.Close)
	w.broker = w.open(amqpbroker.Options{ConnectionString: w.ConnectionString("embedded.test"), Queue: "orders", Dial: w.Dial})
	w.sdk, err = azservicebus.NewClientFromConnectionString(w.ConnectionString("embedded.test"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return w.Dial(ctx) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.sdk.Close(context.Background()) })
	return w
}

func (w *world) open(o amqpbroker.Options) *amqpbroker.Broker {
	w.t.Helper()
	b, err := amqpbroker.New(o)
	require.NoError(w.t, err)
	w.t.Cleanup(b.Close)
	return b
}

// bury sends n messages and dead-letters them.
func (w *world) bury(n int, properties map[string]any) {
	w.t.Helper()
	ctx := w.t.Context()
	s, err := w.sdk.NewSender("orders", nil)
	require.NoError(w.t, err)
	r, err := w.sdk.NewReceiverForQueue("orders", nil)
	require.NoError(w.t, err)
	for i := range n {
		id, reason := fmt.Sprintf("m%d", i+1), "Because"
		require.NoError(w.t, s.SendMessage(ctx, &azservicebus.Message{MessageID: &id, Body: []byte(`{"n":1}`)}, nil))
		got, err := r.ReceiveMessages(ctx, 1, nil)
		require.NoError(w.t, err)
		require.NoError(w.t, r.DeadLetterMessage(ctx, got[0], &azservicebus.DeadLetterOptions{Reason: &reason, PropertiesToModify: properties}))
	}
	require.NoError(w.t, r.Close(ctx))
	require.NoError(w.t, s.Close(ctx))
}

func (w *world) deadCount() servicebus.Counts {
	w.t.Helper()
	c, err := w.Counts(dead)
	require.NoError(w.t, err)
	return c
}

func ids(letters []*deadletter.DeadLetter) []string {
	out := []string{}
	for _, l := range letters {
		id, _ := l.MessageID()
		out = append(out, id)
	}
	return out
}

func sequences(locked []deadletter.LockedMessage) []int64 {
	out := []int64{}
	for _, l := range locked {
		out = append(out, l.Sequence)
	}
	return out
}

func inBubble(t *testing.T, change func(*servicebus.Options), f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) { f(t, start(t, change)) })
}

func TestPeekPagesAndTouchesNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		none, err := w.broker.Peek(t.Context(), 1, 10)
		require.NoError(t, err)
		require.Empty(t, none)
		w.bury(5, nil)
		first, err := w.broker.Peek(t.Context(), 1, 3)
		require.NoError(t, err)
		require.Equal(t, []string{"m1", "m2", "m3"}, ids(first))
		require.Equal(t, "Because", first[0].Reason())
		require.False(t, first[0].EnqueuedAt.IsZero())
		rest, err := w.broker.Peek(t.Context(), first[2].Sequence+1, 3)
		require.NoError(t, err)
		require.Equal(t, []string{"m4", "m5"}, ids(rest))
		require.Equal(t, servicebus.Counts{Active: 5, Bytes: w.deadCount().Bytes}, w.deadCount())
	})
}

func TestLettersThatTheSDKPanicsAtAreLetters(t *testing.T) {
	for name, value := range map[string]any{"a number": int32(1), "a truth": true, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
				w.bury(2, map[string]any{"DeadLetterReason": value})
				r, err := w.sdk.NewReceiverForQueue("orders", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
				require.NoError(t, err)
				require.Panics(t, func() { _, _ = r.PeekMessages(t.Context(), 1, nil) }, "or this broker is not needed any more")
				letters, err := w.broker.Peek(t.Context(), 1, 10)
				require.NoError(t, err)
				require.Equal(t, []string{"m1", "m2"}, ids(letters))
				require.NotZero(t, letters[0].Sequence)
				locked, err := w.broker.Lock(t.Context(), 1, time.Second)
				require.NoError(t, err)
				require.NoError(t, w.broker.Complete(t.Context(), locked[0].Lock))
				require.NoError(t, w.broker.Unlock(t.Context()))
				require.Equal(t, 1, w.deadCount().Total())
				require.NoError(t, r.Close(t.Context()))
			})
		})
	}
}

func TestLockRenewCompleteAndReleaseByToken(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.bury(4, nil)
		letters, err := w.broker.Lock(t.Context(), 3, time.Second)
		require.NoError(t, err)
		require.Equal(t, []int64{1, 2, 3}, sequences(letters))
		require.Equal(t, 3, w.deadCount().Locked)
		for range 5 {
			time.Sleep(40 * time.Second)
			require.NoError(t, w.broker.Renew(t.Context(), []deadletter.LockToken{letters[0].Lock, letters[1].Lock}))
		}
		require.NoError(t, w.broker.Complete(t.Context(), letters[0].Lock))
		require.NoError(t, w.broker.Release(t.Context(), []deadletter.LockToken{letters[1].Lock, letters[2].Lock}), "one that is lost does not keep the other")
		require.NoError(t, w.broker.Unlock(t.Context()))
		require.Equal(t, servicebus.Counts{Active: 3, Bytes: w.deadCount().Bytes}, w.deadCount())
		require.ErrorIs(t, w.broker.Complete(t.Context(), letters[2].Lock), deadletter.ErrLockLost)
		require.ErrorIs(t, w.broker.Renew(t.Context(), []deadletter.LockToken{letters[0].Lock}), deadletter.ErrLockLost)
		left, err := w.Messages(dead)
		require.NoError(t, err)
		for _, m := range left {
			require.Zero(t, m.DeliveryCount, "giving back costs nothing")
		}
	})
}

func TestLockWaitsNoLongerThanItMay(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		begun := time.Now()
		letters, err := w.broker.Lock(t.Context(), 10, 3*time.Second)
		require.NoError(t, err)
		require.Empty(t, letters)
		require.Equal(t, 3*time.Second, time.Since(begun))
		w.bury(1, nil)
		letters, err = w.broker.Lock(t.Context(), 10, 3*time.Second)
		require.NoError(t, err)
		require.Len(t, letters, 1)
	})
}

func TestNothingIsLockedBehindTheBackOfItsReader(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.bury(2, nil)
		letters, err := w.broker.Lock(t.Context(), 10, time.Second)
		require.NoError(t, err)
		require.Len(t, letters, 2)
		w.bury(3, nil)
		synctest.Wait()
		require.Equal(t, 2, w.deadCount().Locked, "credit that is left would take what comes")
		require.Equal(t, 3, w.deadCount().Active)
		more, err := w.broker.Lock(t.Context(), 10, time.Second)
		require.NoError(t, err)
		require.Len(t, more, 3)
		require.NoError(t, w.broker.Unlock(t.Context()))
	})
}

func TestLocksOutliveTheConnection(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.bury(3, nil)
		letters, err := w.broker.Lock(t.Context(), 2, time.Second)
		require.NoError(t, err)
		w.CloseConnections("amqp:connection:forced")
		synctest.Wait()
		require.NoError(t, w.broker.Renew(t.Context(), []deadletter.LockToken{letters[0].Lock, letters[1].Lock}))
		require.NoError(t, w.broker.Complete(t.Context(), letters[0].Lock))
		more, err := w.broker.Lock(t.Context(), 1, time.Second)
		require.NoError(t, err)
		require.Equal(t, []int64{3}, sequences(more))
		require.NoError(t, w.broker.Unlock(t.Context()))
	})
}

func TestACallOutlivesOneBrokenConnection(t *testing.T) {
	for name, a := range map[string]fault.Action{"the connection is cut": fault.DropReply(), "the link is detached": fault.DetachLink("amqp:link:detach-forced"), "no answer comes": {Kind: fault.Silence}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
				w.bury(2, nil)
				w.faults.Add(fault.On(history.Peek).Before(a))
				letters, err := w.broker.Peek(t.Context(), 1, 10)
				require.NoError(t, err)
				require.Len(t, letters, 2)
			})
		})
	}
}

func TestABrokerThatLetsNobodyInIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, nil)
		b := w.open(amqpbroker.Options{ConnectionString: w.ConnectionString("embedded.test"), Queue: "orders", CallTimeout: 20 * time.Second, Dial: func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		for name, call := range map[string]func() error{
			"peek": func() error { _, err := b.Peek(t.Context(), 1, 1); return err },
			"lock": func() error { _, err := b.Lock(t.Context(), 1, time.Second); return err },
		} {
			began := time.Now()
			require.ErrorIs(t, call(), context.DeadlineExceeded, name)
			require.Equal(t, 20*time.Second, time.Since(began), name)
		}
	})
}

func TestACallerWhoGivesUpDisturbsNobodyElse(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.bury(1, nil)
		w.faults.Add(fault.On(history.Peek).Before(fault.Action{Kind: fault.Silence}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.broker.Peek(ctx, 1, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		connections := w.history.Count(func(e history.Event) bool { return e.Op == history.Connect })
		_, err = w.broker.Peek(t.Context(), 1, 1)
		require.NoError(t, err)
		require.Equal(t, connections, w.history.Count(func(e history.Event) bool { return e.Op == history.Connect }))
	})
}

func TestTokensAreRenewedWhileTheBrokerIsUsed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		for range 30 {
			time.Sleep(10 * time.Minute)
			_, err := w.broker.Peek(t.Context(), 1, 1)
			require.NoError(t, err)
			_, err = w.broker.Lock(t.Context(), 1, time.Millisecond)
			require.NoError(t, err)
		}
	})
}

func TestWhatTheBrokerRefusesIsSaidAndNotRepeated(t *testing.T) {
	t.Run("no such queue", func(t *testing.T) {
		inBubble(t, nil, func(t *testing.T, w *world) {
			b := w.open(amqpbroker.Options{ConnectionString: w.ConnectionString("embedded.test"), Queue: "nosuch", Dial: w.Dial})
			_, err := b.Peek(t.Context(), 1, 1)
			var refused *amqpbroker.StatusError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, 404, refused.Status)
			require.Equal(t, "nosuch/$DeadLetterQueue", refused.Entity)
		})
	})
	t.Run("a wrong key", func(t *testing.T) {
		inBubble(t, nil, func(t *testing.T, w *world) {
			b := w.open(amqpbroker.Options{ConnectionString: "Endpoint=sb://embedded.test;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=wrong;UseDevelopmentEmulator=true", Queue: "orders", Dial: w.Dial})
			_, err := b.Peek(t.Context(), 1, 1)
			var refused *amqpbroker.StatusError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, 401, refused.Status)
			require.NotContains(t, err.Error(), "wrong")
		})
	})
	t.Run("no right to send", func(t *testing.T) {
		inBubble(t, nil, func(t *testing.T, w *world) {
			require.NoError(t, w.SetRights("orders", servicebus.Listen))
			_, err := w.broker.Peek(t.Context(), 1, 1)
			require.NoError(t, err, "looking takes the right to listen alone")
			begun := time.Now()
			require.Error(t, w.broker.Send(t.Context(), []byte{0, 0x53, 0x75, 0xA0, 1, 'x'}))
			require.Less(t, time.Since(begun), time.Second)
		})
	})
	t.Run("closed", func(t *testing.T) {
		inBubble(t, nil, func(t *testing.T, w *world) {
			w.broker.Close()
			_, err := w.broker.Peek(t.Context(), 1, 1)
			require.ErrorIs(t, err, amqpbroker.ErrClosed)
		})
	})
}

func TestSendIsByteForByte(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.bury(1, map[string]any{"null": nil, "int": int32(7), "uuid": amqp.UUID{1}})
		letters, err := w.broker.Peek(t.Context(), 1, 1)
		require.NoError(t, err)
		encoded, err := deadletter.Copy(letters[0], deadletter.Choice{}, time.Now(), true)
		require.NoError(t, err)
		require.NoError(t, w.broker.Send(t.Context(), encoded))
		got, err := w.Messages("orders")
		require.NoError(t, err)
		require.Len(t, got, 1)
		again, err := deadletter.Copy(deadletter.Parse(got[0].Encoded), deadletter.Choice{}, time.Now(), true)
		require.NoError(t, err)
		require.Equal(t, encoded, again)
	})
}

func TestASenderThatHasRestedIsNotTrusted(t *testing.T) {
	inBubble(t, func(o *servicebus.Options) { o.IdleLinkTimeout = 10 * time.Minute }, func(t *testing.T, w *world) {
		for range 3 {
			require.NoError(t, w.broker.Send(t.Context(), []byte{0, 0x53, 0x75, 0xA0, 1, 'x'}))
			_, err := w.broker.Peek(t.Context(), 1, 1)
			require.NoError(t, err)
			time.Sleep(12 * time.Minute)
		}
		c, err := w.Counts("orders")
		require.NoError(t, err)
		require.Equal(t, 3, c.Active)
	})
}

func TestAMessageThatIsTooLargeIsNotSent(t *testing.T) {
	inBubble(t, func(o *servicebus.Options) { o.MaxMessageSize = 2048 }, func(t *testing.T, w *world) {
		body := append([]byte{0, 0x53, 0x75, 0xB0, 0, 0, 8, 0}, make([]byte, 2048)...)
		require.ErrorIs(t, w.broker.Send(t.Context(), body), deadletter.ErrTooLarge)
		require.NoError(t, w.broker.Send(t.Context(), []byte{0, 0x53, 0x75, 0xA0, 1, 'x'}), "the link is as good as before")
	})
}

func TestOverSockets(t *testing.T) {
	w := start(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-served) })
	w.bury(1, nil)
	b := w.open(amqpbroker.Options{ConnectionString: w.ConnectionString(l.Addr().String()), Queue: "orders"})
	letters, err := b.Peek(t.Context(), 1, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"m1"}, ids(letters))
}

type staticCredential struct{ asked []string }

func (c *staticCredential) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.asked = append(c.asked, o.Scopes...)
	return azcore.AccessToken{Token: "jwt", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestAnIdentityIsAskedForATokenOfServiceBus(t *testing.T) {
	inBubble(t, func(o *servicebus.Options) { o.AcceptJWT = true }, func(t *testing.T, w *world) {
		credential := &staticCredential{}
		b := w.open(amqpbroker.Options{Namespace: "embedded.test", Credential: credential, Queue: "orders", Dial: w.Dial})
		_, err := b.Peek(t.Context(), 1, 1)
		require.NoError(t, err)
		require.Contains(t, credential.asked, "https://servicebus.azure.net//.default")
	})
}

func TestOptionsThatMakeNoSenseAreRefusedWithoutTheirSecrets(t *testing.T) {
	for name, o := range map[string]amqpbroker.Options{
		"nothing": {}, "no queue": {ConnectionString: "Endpoint=sb://a.test;SharedAccessKeyName=n;SharedAccessKey=secret"},
		"no endpoint": {ConnectionString: "SharedAccessKeyName=n;SharedAccessKey=secret", Queue: "q"},
		"no key name": {ConnectionString: "Endpoint=sb://a.test;SharedAccessKey=secret", Queue: "q"}, "no identity": {Namespace: "a.test", Queue: "q"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := amqpbroker.New(o)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}
