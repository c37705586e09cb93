package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

const oneTopic = `{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Topics":[{"Name":"order-events","Subscriptions":[{"Name":"billing"},{"Name":"shipping"}]}]}]}}`

// subscriber stores what it receives, and fails on the word poison.
func subscriber() app.Program {
	return app.Program{Name: "subscriber", Types: []string{"event"}, Handler: worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		if strings.Contains(string(m.Body), "poison") {
			return worker.Effects{}, worker.Reject("Poison", context.Canceled)
		}
		return worker.Create(worker.Document{Type: "event", Content: m.Body}), nil
	})}
}

func newTopic(t *testing.T) *apptest.Env {
	t.Helper()
	return apptest.Start(t, func(o *testenv.Options) {
		o.Config, o.Queue = strings.NewReader(oneTopic), "order-events/Subscriptions/billing"
	})
}

func TestTwoConsumersOfATopicBothProcessAMessage(t *testing.T) {
	t.Parallel()
	env := newTopic(t)
	require.Contains(t, env.Run(subscriber(), "check"), "order-events/Subscriptions/billing")
	billing, shipping := env.Work(subscriber()), env.Work(subscriber(), "--subscription", "shipping")
	for range 3 {
		env.Send("e-1", `{"n":1}`)
	}
	waitDrained := func(path string) {
		require.Eventually(t, func() bool {
			c, err := env.Services.Broker.Counts(path)
			return err == nil && c.Active+c.Locked == 0
		}, time.Minute, 20*time.Millisecond, path)
	}
	waitDrained("order-events/Subscriptions/billing")
	waitDrained("order-events/Subscriptions/shipping")
	one, other := billing.Stop(), shipping.Stop()
	require.Equal(t, []int{1, 2, 1, 2}, []int{one["created"], one["duplicate"], other["created"], other["duplicate"]}, "each once, in one container")
	require.Len(t, env.Services.Stored(), 2)
	require.Contains(t, env.Run(subscriber(), "get", "e-1"), "~for.billing.e-1", "the subscription is the consumer")
	require.Contains(t, env.Run(subscriber(), "get", "e-1", "--subscription", "shipping"), "~for.shipping.e-1")
}

func TestTheDeadLettersOfASubscriptionAreReviewed(t *testing.T) {
	t.Parallel()
	env := newTopic(t)
	w := env.Work(subscriber())
	env.Send("e-1", `{"poison":1}`)
	env.WaitUntilSettled(time.Minute)
	w.Stop()
	list := env.Run(subscriber(), "deadletter", "list")
	require.Contains(t, list, "never-applied")
	require.Contains(t, list, "Poison")
	show := env.Run(subscriber(), "deadletter", "show", "1")
	require.Contains(t, show, "It would reach every subscription of the topic order-events and not this one alone")
	code, _, stderr := env.Command(subscriber(), "", "deadletter", "resubmit", "1", "--reason", "test")
	require.Equal(t, 1, code, stderr)
	healed := subscriber()
	healed.Handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		return worker.Create(worker.Document{Type: "event", Content: m.Body}), nil
	})
	require.Contains(t, env.Run(healed, "deadletter", "reprocess", "1", "--reason", "healed"), "reprocess")
	require.Contains(t, env.Run(healed, "get", "e-1"), "~for.billing.e-1")
	require.Contains(t, env.Run(healed, "deadletter", "log"), "order-events/Subscriptions/billing")
	require.Contains(t, env.Run(healed, "deadletter", "list"), "no dead letters")
}

func TestMessagesForASubscriptionAreSentToItsTopic(t *testing.T) {
	t.Parallel()
	env := newTopic(t)
	code, stdout, stderr := env.Command(subscriber(), `{"message_id":"e-1","body":{"n":1}}`, "send")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "sent to order-events")
	for _, name := range []string{"billing", "shipping"} {
		c, err := env.Services.Broker.Counts("order-events/Subscriptions/" + name)
		require.NoError(t, err)
		require.Equal(t, 1, c.Active, name)
	}
}
