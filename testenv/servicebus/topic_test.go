package servicebus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

const (
	billing = "events/Subscriptions/billing"
	audit   = "events/Subscriptions/audit"
)

// events returns options with the topic events and its subscriptions billing and audit, which f has changed.
func events(f func(t *servicebus.Topic, billing, audit *servicebus.Subscription)) servicebus.Options {
	topic := servicebus.Topic{Name: "events", Subscriptions: []servicebus.Subscription{
		{Queue: servicebus.Queue{Name: "billing"}}, {Queue: servicebus.Queue{Name: "audit"}},
	}}
	if f != nil {
		f(&topic, &topic.Subscriptions[0], &topic.Subscriptions[1])
	}
	return servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{orders()}, Topics: []servicebus.Topic{topic}}}
}

// publish sends messages to the topic events.
func (w *env) publish(ms ...*azservicebus.Message) {
	w.t.Helper()
	s, err := w.client.NewSender("events", nil)
	require.NoError(w.t, err)
	for _, m := range ms {
		require.NoError(w.t, s.SendMessage(within(w.t, time.Minute), m, nil))
	}
	require.NoError(w.t, s.Close(within(w.t, time.Minute)))
}

// subscriber receives from a subscription of the topic events.
func (w *env) subscriber(name string, o *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	w.t.Helper()
	r, err := w.client.NewReceiverForSubscription("events", name, o)
	require.NoError(w.t, err)
	return r
}

func (w *env) countsOf(path string) servicebus.Counts {
	w.t.Helper()
	c, err := w.Counts(path)
	require.NoError(w.t, err)
	return c
}

func TestEverySubscriptionGetsACopyOfItsOwn(t *testing.T) {
	bubble(t, events(func(_ *servicebus.Topic, b, a *servicebus.Subscription) {
		b.LockDuration, b.MaxDeliveryCount = 10*time.Second, 2
	}), func(t *testing.T, w *env) {
		first := w.subscriber("audit", nil)
		w.publish(message("m1", "{}"), message("m2", "{}"))
		got := take(t, first, 2)
		require.Equal(t, []string{"m1", "m2"}, []string{got[0].MessageID, got[1].MessageID}, "in the order of publishing")
		require.NoError(t, first.CompleteMessage(within(t, time.Minute), got[0], nil))
		require.Equal(t, servicebus.Counts{Active: 2, Bytes: w.countsOf(billing).Bytes}, w.countsOf(billing), "the other copy is untouched")

		second := w.subscriber("billing", nil)
		copies := take(t, second, 2)
		require.NotEqual(t, got[1].LockToken, copies[1].LockToken)
		require.Equal(t, got[1].LockedUntil.Add(-50*time.Second).Unix(), copies[1].LockedUntil.Unix(), "each lock has its own duration")
		for _, m := range copies {
			require.NoError(t, second.AbandonMessage(within(t, time.Minute), m, nil))
		}
		copies = take(t, second, 2)
		require.Equal(t, uint32(2), copies[0].DeliveryCount)
		require.NoError(t, second.AbandonMessage(within(t, time.Minute), copies[0], nil))
		require.Equal(t, 1, w.countsOf(billing).DeadLettered)
		require.Equal(t, 0, w.countsOf(audit).DeadLettered)

		dead := take(t, w.subscriber("billing", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}), 1)[0]
		require.Equal(t, "m1", dead.MessageID)
		require.Equal(t, "MaxDeliveryCountExceeded", *dead.DeadLetterReason)
		require.Equal(t, billing, *dead.DeadLetterSource)
		require.Equal(t, uint32(1), got[1].DeliveryCount)
		require.NoError(t, first.CompleteMessage(within(t, time.Minute), got[1], nil))
		require.Zero(t, w.countsOf(audit))
	})
}

func TestCopyHasASequenceNumberOfItsSubscription(t *testing.T) {
	bubble(t, events(nil), func(t *testing.T, w *env) {
		w.publish(message("m1", "{}"))
		r := w.subscriber("billing", nil)
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), take(t, r, 1)[0], nil))
		_, err := w.Send("events", servicebus.Message{Properties: &servicebus.Properties{MessageID: "m2"}})
		require.NoError(t, err)
		m := take(t, r, 1)[0]
		require.Equal(t, int64(2), *m.SequenceNumber)
		require.Equal(t, "m2", m.MessageID)
		ms, err := w.Messages(audit)
		require.NoError(t, err)
		require.Len(t, ms, 2)
	})
}

func TestLifeOfACopyIsTheShortestOfMessageTopicAndSubscription(t *testing.T) {
	for name, tt := range map[string]struct {
		message, topic, subscription, want time.Duration
	}{
		"the message's":      {10 * time.Second, time.Minute, time.Hour, 10 * time.Second},
		"the topic's":        {time.Hour, time.Minute, 2 * time.Hour, time.Minute},
		"the subscription's": {time.Hour, time.Hour, 30 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, events(func(topic *servicebus.Topic, b, _ *servicebus.Subscription) {
				topic.DefaultMessageTimeToLive, b.DefaultMessageTimeToLive, b.DeadLetteringOnMessageExpiration = tt.topic, tt.subscription, true
			}), func(t *testing.T, w *env) {
				m := message("m1", "{}")
				m.TimeToLive = &tt.message
				w.publish(m)
				time.Sleep(tt.want - time.Millisecond)
				require.Equal(t, 1, w.countsOf(billing).Active)
				time.Sleep(time.Millisecond)
				require.Equal(t, 1, w.countsOf(billing).DeadLettered)
			})
		})
	}
}

func TestScheduledMessageIsPublishedWhenItsTimeComes(t *testing.T) {
	bubble(t, events(nil), func(t *testing.T, w *env) {
		s, err := w.client.NewSender("events", nil)
		require.NoError(t, err)
		seqs, err := s.ScheduleMessages(within(t, time.Minute), []*azservicebus.Message{message("m1", "{}"), message("m2", "{}")}, time.Now().Add(time.Minute), nil)
		require.NoError(t, err)
		require.NoError(t, s.CancelScheduledMessages(within(t, time.Minute), seqs[:1], nil))
		require.Equal(t, 1, w.countsOf("events").Scheduled)
		require.Zero(t, w.countsOf(billing).Total())
		time.Sleep(time.Minute)
		require.Zero(t, w.countsOf("events").Total())
		for _, name := range []string{"billing", "audit"} {
			m := take(t, w.subscriber(name, nil), 1)[0]
			require.Equal(t, "m2", m.MessageID)
			require.Equal(t, seqs[1], *m.EnqueuedSequenceNumber, "the number that the topic gave it")
		}
	})
}

func TestTopicDropsADuplicateForAllSubscriptions(t *testing.T) {
	bubble(t, events(func(topic *servicebus.Topic, _, _ *servicebus.Subscription) { topic.RequiresDuplicateDetection = true }), func(t *testing.T, w *env) {
		w.publish(message("m1", "{}"), message("m1", "{}"))
		require.Equal(t, 1, w.countsOf(billing).Active)
		require.Equal(t, 1, w.countsOf(audit).Active)
	})
}

func TestTopicIsFullWhenItsSubscriptionsAreTogether(t *testing.T) {
	bubble(t, events(func(topic *servicebus.Topic, _, _ *servicebus.Subscription) { topic.MaxSize = 1500 }), func(t *testing.T, w *env) {
		s, err := w.client.NewSender("events", nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m1", string(make([]byte, 600))), nil))
		err = s.SendMessage(within(t, time.Minute), message("m2", string(make([]byte, 600))), nil)
		var e *goamqp.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, goamqp.ErrCondResourceLimitExceeded, e.Condition)
		require.Contains(t, e.Description, "Topic: 'EVENTS'")
	})
}

func TestWhatCannotBeDoneWithTopicsAndSubscriptions(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(t *testing.T, w *env) error
		want goamqp.ErrCond
	}{
		"send to a subscription": {func(t *testing.T, w *env) error {
			s, err := w.client.NewSender(billing, nil)
			require.NoError(t, err)
			return s.SendMessage(within(t, time.Minute), message("m1", ""), nil)
		}, goamqp.ErrCondNotAllowed},
		"receive from a topic": {func(t *testing.T, w *env) error {
			r, err := w.client.NewReceiverForQueue("events", nil)
			require.NoError(t, err)
			_, err = r.ReceiveMessages(within(t, time.Minute), 1, nil)
			return err
		}, goamqp.ErrCondNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, events(nil), func(t *testing.T, w *env) {
				var e *goamqp.Error
				require.ErrorAs(t, tt.do(t, w), &e)
				require.Equal(t, tt.want, e.Condition)
				require.Empty(t, w.Refusals(), "the service refuses it as well")
			})
		})
	}
	bubble(t, events(nil), func(t *testing.T, w *env) {
		for _, missing := range [][2]string{{"events", "nobody"}, {"nowhere", "billing"}} {
			r, err := w.client.NewReceiverForSubscription(missing[0], missing[1], nil)
			require.NoError(t, err)
			_, err = r.ReceiveMessages(within(t, time.Minute), 1, nil)
			requireCode(t, azservicebus.CodeNotFound, err)
		}
		_, err := w.Counts("events/$DeadLetterQueue")
		require.Error(t, err, "only subscriptions have dead letters")
		_, err = w.Send(billing, servicebus.Message{})
		require.ErrorContains(t, err, "Cannot send to the subscription")
	})
}

// TestStatusAndRightsOfOneSubscription holds that the controls of a queue are those of a subscription.
func TestStatusAndRightsOfOneSubscription(t *testing.T) {
	bubble(t, events(nil), func(t *testing.T, w *env) {
		w.publish(message("m1", "{}"))
		require.NoError(t, w.SetStatus(billing, servicebus.ReceiveDisabled))
		_, err := w.subscriber("billing", nil).ReceiveMessages(within(t, time.Minute), 1, nil)
		require.ErrorContains(t, err, "com.microsoft:entity-disabled")
		w.publish(message("m2", "{}"))
		require.NoError(t, w.SetStatus(billing, servicebus.Active))
		require.Len(t, take(t, w.subscriber("billing", nil), 2), 2, "it kept its copies meanwhile")

		require.NoError(t, w.SetRights(audit, servicebus.Send))
		_, err = w.subscriber("audit", nil).ReceiveMessages(within(t, time.Minute), 1, nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
	})
}

// TestFaultStrikesOneSubscription holds that faults and history tell copies of one MessageId apart by their path.
func TestFaultStrikesOneSubscription(t *testing.T) {
	o := events(nil)
	o.Faults = fault.Script(fault.On(history.Complete).Key("m1").Entity(billing).Before(fault.Reject("com.microsoft:message-lock-lost")))
	bubble(t, o, func(t *testing.T, w *env) {
		w.publish(message("m1", "{}"))
		for name, code := range map[string]azservicebus.Code{"audit": "", "billing": azservicebus.CodeLockLost} {
			r := w.subscriber(name, nil)
			err := r.CompleteMessage(within(t, time.Minute), take(t, r, 1)[0], nil)
			if code == "" {
				require.NoError(t, err)
				continue
			}
			requireCode(t, code, err)
		}
		of := func(path string) (ops []string) {
			for _, e := range w.history.Events() {
				if e.Entity == path && e.Effect && e.Key == "m1" {
					ops = append(ops, fmt.Sprint(e.Op, " ", e.Sequence))
				}
			}
			return ops
		}
		require.Equal(t, []string{"servicebus.publish 1"}, of("events"))
		require.Equal(t, []string{"servicebus.send 1", "servicebus.lock 1", "servicebus.complete 1"}, of(audit))
		require.Equal(t, []string{"servicebus.send 1", "servicebus.lock 1"}, of(billing))
	})
}

func TestPeekAndDeferInASubscription(t *testing.T) {
	bubble(t, events(nil), func(t *testing.T, w *env) {
		w.publish(message("m1", "{}"))
		r := w.subscriber("billing", nil)
		m := take(t, r, 1)[0]
		require.NoError(t, r.DeferMessage(within(t, time.Minute), m, nil))
		peeked, err := r.PeekMessages(within(t, time.Minute), 1, nil)
		require.NoError(t, err)
		require.Equal(t, azservicebus.MessageStateDeferred, peeked[0].State)
		again, err := r.ReceiveDeferredMessages(within(t, time.Minute), []int64{*m.SequenceNumber}, nil)
		require.NoError(t, err)
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), again[0], nil))
		require.Equal(t, 1, w.countsOf(billing).DeadLettered)
		require.Equal(t, 1, w.countsOf(billing+"/$DeadLetterQueue").Active)
		require.Equal(t, 1, w.countsOf("EVENTS/subscriptions/Audit").Active, "paths do not depend on case")
	})
}
