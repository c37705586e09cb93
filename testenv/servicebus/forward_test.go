package servicebus_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// forwarding returns options with the queue orders, a queue for dead letters, and what f adds.
func forwarding(f func(c *servicebus.Config)) servicebus.Options {
	o := events(nil)
	o.Config.Queues = append(o.Config.Queues, servicebus.Queue{Name: "dead"})
	f(&o.Config)
	return o
}

func TestSubscriptionForwardsToAQueue(t *testing.T) {
	bubble(t, forwarding(func(c *servicebus.Config) { c.Topics[0].Subscriptions[0].ForwardTo = "Orders" }), func(t *testing.T, w *env) {
		w.send(message("m0", "{}"))
		w.publish(message("m1", "{}"))
		require.Zero(t, w.countsOf(billing).Total())
		require.Equal(t, 1, w.countsOf(audit).Active)
		ms := take(t, w.receiver(), 2)
		require.Equal(t, []string{"m0", "m1"}, idsOf(ms))
		require.Equal(t, []int64{2, 1}, []int64{*ms[1].SequenceNumber, *ms[1].EnqueuedSequenceNumber}, "a number of its own, and the first one")
		_, err := w.subscriber("billing", nil).ReceiveMessages(within(t, time.Minute), 1, nil)
		require.ErrorContains(t, err, "Cannot create a message receiver on an entity with auto-forwarding enabled")
		require.Contains(t, w.ops(), history.Forward)
	})
}

func TestDeadLettersAreForwarded(t *testing.T) {
	bubble(t, forwarding(func(c *servicebus.Config) { c.Queues[0].ForwardDeadLetteredMessagesTo = "dead" }), func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		require.NoError(t, r.AbandonMessage(within(t, time.Minute), take(t, r, 1)[0], nil))
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), take(t, r, 1)[0], &azservicebus.DeadLetterOptions{Reason: text("bad")}))
		require.Zero(t, w.counts().Total())
		d, err := w.client.NewReceiverForQueue("dead", nil)
		require.NoError(t, err)
		m := take(t, d, 1)[0]
		require.Equal(t, []string{"m1", "bad", "orders"}, []string{m.MessageID, *m.DeadLetterReason, *m.DeadLetterSource})
		require.Equal(t, uint32(1), m.DeliveryCount, "it is a message of its own there")
	})
}

func TestMessageIsForwardedFourTimesAtMost(t *testing.T) {
	bubble(t, forwarding(func(c *servicebus.Config) {
		c.Queues[0].ForwardTo, c.Queues[1].ForwardTo = "dead", "orders"
	}), func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		m := take(t, w.deadLetterReceiver(), 1)[0]
		require.Equal(t, "MaxTransferHopCountExceeded", *m.DeadLetterReason)
		require.Equal(t, 4, w.history.Count(func(e history.Event) bool { return e.Op == history.Forward }))
	})
}

func TestMessageWaitsForATargetThatCannotTakeIt(t *testing.T) {
	bubble(t, forwarding(func(c *servicebus.Config) { c.Queues[0].ForwardTo = "dead" }), func(t *testing.T, w *env) {
		require.NoError(t, w.SetStatus("dead", servicebus.SendDisabled))
		w.send(message("m1", "{}"), message("m2", "{}"))
		time.Sleep(time.Minute)
		require.Equal(t, 2, w.counts().Active)
		require.NoError(t, w.SetStatus("dead", servicebus.Active))
		time.Sleep(10 * time.Second)
		require.Zero(t, w.counts().Total())
		require.Equal(t, 2, w.countsOf("dead").Active)
	})
}

func TestMessageThatWaitsToBeForwardedExpires(t *testing.T) {
	bubble(t, forwarding(func(c *servicebus.Config) {
		c.Queues[0].ForwardTo, c.Queues[0].DefaultMessageTimeToLive = "dead", 30*time.Second
	}), func(t *testing.T, w *env) {
		require.NoError(t, w.SetStatus("dead", servicebus.Disabled))
		w.send(message("m1", "{}"))
		time.Sleep(time.Minute)
		require.Zero(t, w.counts().Total())
	})
}
