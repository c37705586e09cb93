package servicebus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// with returns options with one queue that f has changed.
func with(f func(q *servicebus.Queue)) servicebus.Options {
	q := orders()
	f(&q)
	return servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{q}}}
}

func TestMessageExpires(t *testing.T) {
	for name, keep := range map[string]bool{"and is dropped": false, "and is dead-lettered": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, with(func(q *servicebus.Queue) { q.DeadLetteringOnMessageExpiration = keep }), func(t *testing.T, w *env) {
				short, long := message("short", "{}"), message("long", "{}")
				life, tooLong := 10*time.Second, 48*time.Hour
				short.TimeToLive, long.TimeToLive = &life, &tooLong
				w.send(short, long, message("none", "{}"))
				time.Sleep(10*time.Second - time.Millisecond)
				require.Equal(t, 3, w.counts().Active)
				time.Sleep(time.Millisecond)
				require.Equal(t, 2, w.counts().Active, "nobody receives, and yet it expires")
				m := take(t, w.receiver(), 1)[0]
				require.Equal(t, time.Hour, *m.TimeToLive, "the queue's time to live bounds the message's")
				require.Equal(t, *m.ExpiresAt, m.EnqueuedTime.Add(time.Hour))
				time.Sleep(2 * time.Hour)
				require.Zero(t, w.counts().Active+w.counts().Locked)
				if !keep {
					require.Zero(t, w.counts().Total())
					require.Contains(t, w.ops(), history.Expired)
					return
				}
				require.Equal(t, 3, w.counts().DeadLettered)
				d := take(t, w.deadLetterReceiver(), 1)[0]
				require.Equal(t, "TTLExpiredException", *d.DeadLetterReason)
				require.Equal(t, "The message expired and was dead lettered.", *d.DeadLetterErrorDescription)
			})
		})
	}
}

func TestLockedMessageExpiresOnlyWhenItsLockEnds(t *testing.T) {
	bubble(t, with(func(q *servicebus.Queue) { q.DefaultMessageTimeToLive = 30 * time.Second }), func(t *testing.T, w *env) {
		w.send(message("m1", "{}"), message("m2", "{}"))
		r := w.receiver()
		ms := take(t, r, 2)
		time.Sleep(45 * time.Second)
		require.Equal(t, 2, w.counts().Locked)
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), ms[0], nil))
		require.NoError(t, r.AbandonMessage(within(t, time.Minute), ms[1], nil))
		require.Zero(t, w.counts().Total())
		require.Equal(t, history.Expired, w.ops()[len(w.ops())-1])
	})
}

func TestQueueWithoutTimeToLiveKeepsMessagesForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, with(func(q *servicebus.Queue) { q.DefaultMessageTimeToLive = servicebus.Forever }))
		_, err := w.Send("orders", amqp.Message{Properties: &amqp.Properties{MessageID: "m1"}})
		require.NoError(t, err)
		time.Sleep(1000 * 24 * time.Hour)
		w.client = w.dial()
		require.Zero(t, *take(t, w.receiver(), 1)[0].TimeToLive)
	})
}

func TestDuplicateIsDroppedWithinTheWindow(t *testing.T) {
	o := with(func(q *servicebus.Queue) {
		q.RequiresDuplicateDetection = true
		q.DuplicateDetectionHistoryTimeWindow = 10 * time.Minute
		q.DefaultMessageTimeToLive = servicebus.Forever
	})
	bubble(t, o, func(t *testing.T, w *env) {
		w.send(message("m1", "1"), message("m2", "2"))
		r := w.receiver()
		for _, m := range take(t, r, 2) {
			require.NoError(t, r.CompleteMessage(within(t, time.Minute), m, nil))
		}
		time.Sleep(10*time.Minute - time.Second)
		w.send(message("m1", "again"), message("M1", "another id"), &azservicebus.Message{Body: []byte("no id")}, &azservicebus.Message{Body: []byte("no id")})
		require.Equal(t, 3, w.counts().Active, "a message without id is never a duplicate")
		time.Sleep(time.Second)
		w.send(message("m1", "forgotten"))
		require.Equal(t, 4, w.counts().Active)
		dropped := w.history.Count(func(e history.Event) bool { return e.Op == history.DropDuplicate && e.Key == "m1" })
		require.Equal(t, 1, dropped)
	})
}

func TestDuplicateDetectionSeesScheduledMessagesAndWholeBatches(t *testing.T) {
	bubble(t, with(func(q *servicebus.Queue) { q.RequiresDuplicateDetection = true }), func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		ctx := within(t, time.Minute)
		_, err = s.ScheduleMessages(ctx, []*azservicebus.Message{message("m1", "1")}, time.Now().Add(time.Minute), nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(ctx, message("m1", "1"), nil))
		batch, err := s.NewMessageBatch(ctx, nil)
		require.NoError(t, err)
		for _, id := range []string{"m1", "m2", "m2"} {
			require.NoError(t, batch.AddMessage(message(id, id), nil))
		}
		require.NoError(t, s.SendMessageBatch(ctx, batch, nil))
		got := w.counts()
		require.Equal(t, []int{1, 1}, []int{got.Scheduled, got.Active})
	})
}

func TestScheduledMessageArrivesAtItsTime(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		at := time.Now().Add(30 * time.Minute)
		m := message("m1", "{}")
		m.ScheduledEnqueueTime = &at
		w.send(m, message("m2", "{}"))
		require.Equal(t, []int{1, 1}, []int{w.counts().Scheduled, w.counts().Active})
		r := w.receiver()
		require.Equal(t, "m2", take(t, r, 1)[0].MessageID)
		peeked, err := receiverOf(t, w.client, nil).PeekMessages(within(t, time.Minute), 10, nil)
		require.NoError(t, err)
		require.Equal(t, azservicebus.MessageStateScheduled, peeked[0].State)
		time.Sleep(30*time.Minute - time.Second)
		require.Equal(t, 1, w.counts().Scheduled)
		time.Sleep(time.Second)
		require.Zero(t, w.counts().Scheduled)
		got := take(t, r, 2)
		require.Equal(t, "m2", got[0].MessageID, "its lock has ended meanwhile")
		require.Equal(t, "m1", got[1].MessageID, "it is enqueued behind")
		require.Equal(t, at.UTC(), got[1].ScheduledEnqueueTime.UTC())
		require.Equal(t, at.UTC(), got[1].EnqueuedTime.UTC())
		require.Greater(t, *got[1].SequenceNumber, *got[0].SequenceNumber)
		require.Equal(t, int64(1), *got[1].EnqueuedSequenceNumber)
		require.Equal(t, got[1].EnqueuedTime.Add(time.Hour), *got[1].ExpiresAt, "its life begins when it is enqueued")
	})
}

func TestScheduledMessageIsCancelled(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		ctx := within(t, time.Hour)
		in := func(d time.Duration, ids ...string) []int64 {
			var ms []*azservicebus.Message
			for _, id := range ids {
				ms = append(ms, message(id, "{}"))
			}
			seqs, err := s.ScheduleMessages(ctx, ms, time.Now().Add(d), nil)
			require.NoError(t, err)
			require.Len(t, seqs, len(ids))
			return seqs
		}
		seqs := in(time.Minute, "m1", "m2", "m3")
		require.NoError(t, s.CancelScheduledMessages(ctx, seqs[:2], nil))
		requireCode(t, azservicebus.CodeNotFound, s.CancelScheduledMessages(ctx, []int64{seqs[2], seqs[0]}, nil))
		require.Equal(t, 1, w.counts().Scheduled, "all or none")
		in(-time.Second, "now")
		require.Equal(t, 1, w.counts().Active)
		time.Sleep(time.Minute)
		requireCode(t, azservicebus.CodeNotFound, s.CancelScheduledMessages(ctx, seqs[2:], nil))
		require.Equal(t, 2, w.counts().Active)
		require.Equal(t, 2, w.history.Count(func(e history.Event) bool { return e.Op == history.CancelScheduled && e.Effect }))
	})
}

func TestDeferredMessageIsReceivedByItsNumberOnly(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "1"), message("m2", "2"))
		r := w.receiver()
		ms := take(t, r, 2)
		ctx := within(t, time.Hour)
		for _, m := range ms {
			require.NoError(t, r.DeferMessage(ctx, m, nil))
		}
		seqs := []int64{*ms[0].SequenceNumber, *ms[1].SequenceNumber}
		require.Equal(t, 2, w.counts().Deferred)
		_, err := r.ReceiveMessages(within(t, time.Second), 1, nil)
		require.Error(t, err, "deferred messages are not delivered")

		got, err := r.ReceiveDeferredMessages(ctx, seqs, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2"}, []string{string(got[0].Body), string(got[1].Body)})
		require.Equal(t, azservicebus.MessageStateDeferred, got[0].State)
		require.Equal(t, uint32(2), got[0].DeliveryCount, "the delivery that ended in a defer counts")
		_, err = r.ReceiveDeferredMessages(ctx, seqs[:1], nil)
		requireCode(t, azservicebus.CodeNotFound, err)
		require.NoError(t, r.RenewMessageLock(ctx, got[0], nil))
		require.NoError(t, r.CompleteMessage(ctx, got[0], nil))
		require.NoError(t, r.AbandonMessage(ctx, got[1], nil))
		require.Equal(t, 1, w.counts().Deferred, "an abandoned one stays deferred")
		got, err = r.ReceiveDeferredMessages(ctx, seqs[1:], nil)
		require.NoError(t, err)
		require.Equal(t, uint32(3), got[0].DeliveryCount)
		time.Sleep(time.Minute)
		require.Equal(t, 1, w.counts().Deferred)
		got, err = r.ReceiveDeferredMessages(ctx, seqs[1:], nil)
		require.NoError(t, err)
		require.Equal(t, uint32(4), got[0].DeliveryCount)
		require.NoError(t, r.DeadLetterMessage(ctx, got[0], nil))
		require.Equal(t, 1, w.counts().DeadLettered)
		_, err = r.ReceiveDeferredMessages(ctx, []int64{99}, nil)
		requireCode(t, azservicebus.CodeNotFound, err)
	})
}

func TestDeferredMessageIsReceivedAndDeleted(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "1"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		require.NoError(t, r.DeferMessage(within(t, time.Minute), m, nil))
		d := receiverOf(t, w.client, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
		got, err := d.ReceiveDeferredMessages(within(t, time.Minute), []int64{*m.SequenceNumber}, nil)
		require.NoError(t, err)
		require.Equal(t, "m1", got[0].MessageID)
		require.Zero(t, w.counts())
	})
}

func TestReceiveAndDeleteTakesMessagesAtOnce(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "1"), message("m2", "2"))
		r := receiverOf(t, w.client, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
		ms := take(t, r, 2)
		require.Zero(t, w.counts())
		require.Nil(t, ms[0].LockedUntil)
		require.Equal(t, []string{history.Send, history.Send, history.Take, history.Take}, w.ops())
		require.Error(t, r.CompleteMessage(within(t, time.Minute), ms[0], nil))
	})
}

func TestPeekShowsEveryStateAndTouchesNothing(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		at := time.Now().Add(time.Hour)
		late := message("scheduled", "3")
		late.ScheduledEnqueueTime = &at
		w.send(message("locked", "1"), message("deferred", "2"), late, message("active", "4"))
		r := w.receiver()
		ms := take(t, r, 2)
		require.NoError(t, r.DeferMessage(within(t, time.Minute), ms[1], nil))
		before := w.counts()
		p := w.receiver()
		first, err := p.PeekMessages(within(t, time.Minute), 2, nil)
		require.NoError(t, err)
		second, err := p.PeekMessages(within(t, time.Minute), 10, nil)
		require.NoError(t, err)
		var seen []string
		for _, m := range append(first, second...) {
			seen = append(seen, m.MessageID)
			require.Zero(t, m.LockToken)
		}
		require.Equal(t, []string{"locked", "deferred", "scheduled", "active"}, seen)
		require.Equal(t, azservicebus.MessageStateDeferred, first[1].State)
		none, err := p.PeekMessages(within(t, time.Minute), 10, nil)
		require.NoError(t, err)
		require.Empty(t, none)
		from := *ms[1].SequenceNumber
		again, err := p.PeekMessages(within(t, time.Minute), 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
		require.NoError(t, err)
		require.Equal(t, "deferred", again[0].MessageID)
		synctest.Wait()
		require.Equal(t, before, w.counts())
	})
}
