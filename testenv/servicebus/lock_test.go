package servicebus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// bubble runs a test in fake time, with a broker behind the in-memory door.
func bubble(t *testing.T, o servicebus.Options, f func(t *testing.T, w *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, start(t, o)) })
}

func requireCode(t *testing.T, code azservicebus.Code, err error) {
	t.Helper()
	var e *azservicebus.Error
	require.True(t, errors.As(err, &e), "want code %s, got %v", code, err)
	require.Equal(t, code, e.Code)
}

func TestLockExpiresSilentlyAndCountsTheDelivery(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		first := take(t, r, 1)[0]
		require.Equal(t, uint32(1), first.DeliveryCount)
		require.Equal(t, time.Now().Add(time.Minute).UTC(), first.LockedUntil.UTC())
		require.Equal(t, servicebus.Counts{Locked: 1, Bytes: w.counts().Bytes}, w.counts())
		time.Sleep(59 * time.Second)
		require.Equal(t, 1, w.counts().Locked)
		time.Sleep(time.Second)
		require.Equal(t, 1, w.counts().Active)
		second := take(t, r, 1)[0]
		require.Equal(t, uint32(2), second.DeliveryCount)
		require.Equal(t, *first.SequenceNumber, *second.SequenceNumber)
		require.NotEqual(t, first.LockToken, second.LockToken)

		ctx := within(t, 3*time.Second)
		requireCode(t, azservicebus.CodeLockLost, r.CompleteMessage(ctx, first, nil))
		require.NoError(t, r.CompleteMessage(ctx, first, nil), "the client library takes a refused message for a settled one")
		byToken := &azservicebus.ReceivedMessage{LockToken: first.LockToken}
		requireCode(t, azservicebus.CodeLockLost, r.CompleteMessage(within(t, 3*time.Second), byToken, nil))
		requireCode(t, azservicebus.CodeLockLost, r.RenewMessageLock(within(t, 3*time.Second), byToken, nil))
		require.Equal(t, 1, w.counts().Locked, "the new lock must hold")
		require.NoError(t, r.CompleteMessage(within(t, 3*time.Second), second, nil))
		require.Zero(t, w.counts())
		require.Equal(t, []string{history.Send, history.Lock, history.LockExpired, history.Lock, history.Complete}, w.ops())
	})
}

func TestSettlingAfterExpiryFailsForEveryVerb(t *testing.T) {
	for name, settle := range verbs() {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				w.send(message("m1", "{}"))
				r := w.receiver()
				m := take(t, r, 1)[0]
				time.Sleep(time.Minute)
				requireCode(t, azservicebus.CodeLockLost, settle(within(t, 3*time.Second), r, m))
				require.Equal(t, 1, w.counts().Active)
				requireCode(t, azservicebus.CodeLockLost, settle(within(t, 3*time.Second), r, &azservicebus.ReceivedMessage{LockToken: m.LockToken}))
			})
		})
	}
}

type settleFunc func(context.Context, *azservicebus.Receiver, *azservicebus.ReceivedMessage) error

func verbs() map[string]settleFunc {
	changes := map[string]any{"note": "n"}
	return map[string]settleFunc{
		"complete": func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			return r.CompleteMessage(ctx, m, nil)
		},
		"abandon": func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			return r.AbandonMessage(ctx, m, &azservicebus.AbandonMessageOptions{PropertiesToModify: changes})
		},
		"defer": func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			return r.DeferMessage(ctx, m, &azservicebus.DeferMessageOptions{PropertiesToModify: changes})
		},
		"dead-letter": func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			return r.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{
				Reason: text("reason"), ErrorDescription: text("description"), PropertiesToModify: changes,
			})
		},
	}
}

func TestSettlingWorksFromEverywhere(t *testing.T) {
	want := map[string]struct {
		counts servicebus.Counts
		op     string
	}{
		"complete":    {servicebus.Counts{}, history.Complete},
		"abandon":     {servicebus.Counts{Active: 1}, history.Abandon},
		"defer":       {servicebus.Counts{Deferred: 1}, history.Defer},
		"dead-letter": {servicebus.Counts{DeadLettered: 1}, history.DeadLetter},
	}
	ways := map[string]func(t *testing.T, w *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) (*azservicebus.Receiver, *azservicebus.ReceivedMessage){
		"on its own link": func(_ *testing.T, _ *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
			return r, m
		},
		"by lock token": func(_ *testing.T, _ *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
			return r, &azservicebus.ReceivedMessage{LockToken: m.LockToken}
		},
		"by lock token from another connection": func(t *testing.T, w *env, _ *azservicebus.Receiver, m *azservicebus.ReceivedMessage) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
			return receiverOf(t, w.dial(), nil), &azservicebus.ReceivedMessage{LockToken: m.LockToken}
		},
		"after the receiver was closed": func(t *testing.T, w *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
			require.NoError(t, r.Close(within(t, time.Minute)))
			return receiverOf(t, w.dial(), nil), m
		},
		"after the link was detached": func(t *testing.T, w *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
			n, err := w.Detach("orders", servicebus.Receivers, "amqp:link:detach-forced")
			require.NoError(t, err)
			require.Equal(t, 1, n)
			synctest.Wait()
			return r, m
		},
		"by lock token after the connection was cut": func(t *testing.T, w *env, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
			w.DropConnections()
			synctest.Wait()
			require.Zero(t, w.Connections())
			return r, &azservicebus.ReceivedMessage{LockToken: m.LockToken}
		},
	}
	for way, prepare := range ways {
		for verb, settle := range verbs() {
			t.Run(verb+" "+way, func(t *testing.T) {
				bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
					w.send(message("m1", "{}"))
					r := w.receiver()
					r, m := prepare(t, w, r, take(t, r, 1)[0])
					require.NoError(t, settle(within(t, time.Minute), r, m))
					got := w.counts()
					got.Bytes = 0
					require.Equal(t, want[verb].counts, got)
					ops := w.ops()
					require.Equal(t, want[verb].op, ops[len(ops)-1])
					path := "orders"
					if verb == "dead-letter" {
						path = dlq
					}
					all, err := w.Messages(path)
					require.NoError(t, err)
					if verb == "complete" {
						require.Empty(t, all)
						return
					}
					note, _ := all[0].Message.ApplicationProperties.Get("note")
					require.Equal(t, "n", note)
				})
			})
		}
	}
}

func TestRenewedLockHoldsFromTheRenewalOn(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		other := receiverOf(t, w.dial(), nil)
		for i := range 5 {
			time.Sleep(59 * time.Second)
			held := &azservicebus.ReceivedMessage{LockToken: m.LockToken}
			by := r
			if i%2 == 1 {
				by = other
			}
			require.NoError(t, by.RenewMessageLock(within(t, time.Second), held, nil))
			require.Equal(t, time.Now().Add(time.Minute).UTC(), held.LockedUntil.UTC())
		}
		require.NoError(t, r.CompleteMessage(within(t, time.Second), m, nil))
		require.Zero(t, w.counts())
	})
}

func TestDeliveriesWithoutSuccessEndInTheDeadLetterQueue(t *testing.T) {
	for name, fail := range map[string]func(*testing.T, *azservicebus.Receiver, *azservicebus.ReceivedMessage){
		"by abandoning": func(t *testing.T, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) {
			require.NoError(t, r.AbandonMessage(within(t, time.Minute), m, nil))
		},
		"by letting the lock expire": func(*testing.T, *azservicebus.Receiver, *azservicebus.ReceivedMessage) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			q := orders()
			q.MaxDeliveryCount = 3
			bubble(t, servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{q}}}, func(t *testing.T, w *env) {
				w.send(message("m1", "{}"))
				r := w.receiver()
				for want := uint32(1); want <= 3; want++ {
					m := take(t, r, 1)[0]
					require.Equal(t, want, m.DeliveryCount)
					fail(t, r, m)
				}
				require.Equal(t, servicebus.Counts{DeadLettered: 1, Bytes: w.counts().Bytes}, w.counts())
				d := w.deadLetterReceiver()
				m := take(t, d, 1)[0]
				require.Equal(t, "MaxDeliveryCountExceeded", *m.DeadLetterReason)
				require.Equal(t, "Message could not be consumed after 3 delivery attempts.", *m.DeadLetterErrorDescription)
				require.Equal(t, "orders", *m.DeadLetterSource)
			})
		})
	}
}

func TestReleaseGivesBackWithoutCounting(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		r := w.receiver()
		// Credit is left over from a call that found nothing, so that the client releases what arrives later.
		_, err := r.ReceiveMessages(within(t, time.Second), 5, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.send(message("m1", "{}"))
		synctest.Wait()
		require.Contains(t, w.ops(), history.Release)
		require.Equal(t, 1, w.counts().Active)
		m := take(t, r, 1)[0]
		require.Equal(t, uint32(1), m.DeliveryCount)
	})
}

func TestDeadLettersAreNotCountedAndDoNotExpire(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		require.NoError(t, r.AbandonMessage(within(t, time.Minute), m, nil))
		m = take(t, r, 1)[0]
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), m, nil))
		d := w.deadLetterReceiver()
		for range 12 {
			m = take(t, d, 1)[0]
			require.Equal(t, uint32(2), m.DeliveryCount)
			require.NoError(t, d.AbandonMessage(within(t, time.Minute), m, nil))
			m = take(t, d, 1)[0]
			require.Equal(t, uint32(2), m.DeliveryCount)
			time.Sleep(time.Minute)
		}
		time.Sleep(24 * time.Hour)
		require.Equal(t, 1, w.counts().DeadLettered)
		m = take(t, d, 1)[0]
		require.Empty(t, *m.DeadLetterReason)
		err := d.DeadLetterMessage(within(t, 3*time.Second), m, nil)
		require.ErrorContains(t, err, "cannot be dead-lettered again")
		require.NoError(t, d.CompleteMessage(within(t, 3*time.Second), &azservicebus.ReceivedMessage{LockToken: m.LockToken}, nil))
		require.Zero(t, w.counts())
	})
}

func TestDeadLetterReasonIsBoundedAndPropertiesToModifyWin(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		long := make([]byte, 4097)
		for i := range long {
			long[i] = 'x'
		}
		byToken := func() *azservicebus.ReceivedMessage { return &azservicebus.ReceivedMessage{LockToken: m.LockToken} }
		err := r.DeadLetterMessage(within(t, 2*time.Second), byToken(), &azservicebus.DeadLetterOptions{ErrorDescription: text(string(long))})
		require.Error(t, err)
		require.Equal(t, 1, w.counts().Locked)
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), byToken(), &azservicebus.DeadLetterOptions{
			Reason: text("a"), ErrorDescription: text(string(long[:4096])), PropertiesToModify: map[string]any{"DeadLetterReason": "b", "n": int64(1)},
		}))
		all, err := w.Messages(dlq)
		require.NoError(t, err)
		require.Equal(t, "b", all[0].DeadLetterReason)
		require.Len(t, all[0].DeadLetterErrorDescription, 4096)
		require.Len(t, all[0].Message.ApplicationProperties, 3)
	})
}

func TestSeveralLocksAreRenewedTogetherOrNotAtAll(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"), message("m2", "{}"))
		r := w.receiver()
		ms := take(t, r, 2)
		tokens := []goamqp.UUID{goamqp.UUID(ms[0].LockToken), goamqp.UUID(ms[1].LockToken)}
		c := w.raw()
		renew := func() int32 {
			status, _ := c.call("orders/$management", map[string]any{"operation": "com.microsoft:renew-lock"}, map[string]any{"lock-tokens": tokens})
			return status
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, int32(200), renew())
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), ms[0], nil))
		time.Sleep(30 * time.Second)
		require.Equal(t, int32(410), renew())
		all, err := w.Messages("orders")
		require.NoError(t, err)
		require.Equal(t, 30*time.Second, time.Until(all[0].LockedUntil), "the other lock was not renewed either")
	})
}
