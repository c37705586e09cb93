package main

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m, program()) }

const entities = `{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[{"Name":"orders"},{"Name":"stock"},{"Name":"answers"}],
	"Topics":[{"Name":"order-events","Subscriptions":[{"Name":"audit"}]}]}]}}`

const audit = "order-events/Subscriptions/audit"

// newShop is an environment with the destinations. What a killed worker has locked comes back after five seconds.
func newShop(t *testing.T) *apptest.Env {
	t.Helper()
	return apptest.Start(t, func(o *testenv.Options) {
		o.Config, o.Queue = strings.NewReader(entities), "orders"
		o.Adjust = func(q *servicebus.Queue) { q.LockDuration = 5 * time.Second }
	}, "WORKER_DESTINATIONS=order-events,stock,answers", "WORKER_OUTBOX_EVERY=1s", "WORKER_OUTBOX_AFTER=10s")
}

// arrived returns the ids that are at an entity, each once.
func arrived(t *testing.T, env *apptest.Env, entity string) []string {
	t.Helper()
	all, err := env.Services.Broker.Messages(entity)
	require.NoError(t, err)
	var ids []string
	for _, m := range all {
		if len(ids) == 0 || ids[len(ids)-1] != m.Key {
			ids = append(ids, m.Key)
		}
	}
	return ids
}

func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 20*time.Millisecond)
}

func TestAnOrderIsAnnouncedAndStockReserved(t *testing.T) {
	t.Parallel()
	env := newShop(t)
	env.Run(program(), "check")
	w := env.Work(program())
	env.Send("o-1", `{"sku":"chair","quantity":4}`)
	env.Send("o-1", `{"sku":"chair","quantity":4}`)
	env.WaitUntilSettled(time.Minute)
	w.Stop()
	require.Equal(t, []string{"o-1~part.accepted"}, arrived(t, env, audit))
	require.Equal(t, []string{"o-1~part.reserve"}, arrived(t, env, "stock"))
	require.Contains(t, env.Run(program(), "outbox", "list"), "Nothing waits")
}

func TestARequestIsAnswered(t *testing.T) {
	t.Parallel()
	env := newShop(t)
	env.Work(program())
	id, to := "o-1", "answers"
	for range 2 {
		env.SendMessages(&azservicebus.Message{MessageID: &id, ReplyTo: &to, Body: []byte(`{"sku":"chair","quantity":4}`)})
	}
	waitFor(t, func() bool {
		all, err := env.Services.Broker.Messages("answers")
		return err == nil && len(all) == 2
	})
	require.Equal(t, []string{"o-1~part.reply"}, arrived(t, env, "answers"), "the same answer")
	require.Contains(t, env.Run(program(), "outbox", "show", "o-1"), "kept to answer a repeated request")
}

func TestAWorkerThatIsKilledSendsEverything(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]func(kill func()) *fault.Rule{
		"after the commit": func(kill func()) *fault.Rule { return fault.On(history.ExecuteBatch).After(fault.Call(kill)) },
		"before the second send": func(kill func()) *fault.Rule {
			return fault.On(history.Send).Entity("stock").Before(fault.Action{Kind: fault.Drop, Do: kill})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newShop(t)
			doomed := env.Spawn()
			env.Services.Faults.Add(rule(doomed.Kill))
			env.Send("o-1", `{"sku":"chair","quantity":4}`)
			<-doomed.Done()
			env.Work(program())
			env.WaitUntilSettled(time.Minute)
			require.Equal(t, []string{"o-1~part.accepted"}, arrived(t, env, audit))
			require.Equal(t, []string{"o-1~part.reserve"}, arrived(t, env, "stock"))
		})
	}
}

func TestAPersonSeesWhatWaitsAndSendsIt(t *testing.T) {
	t.Parallel()
	env := newShop(t)
	require.NoError(t, env.Services.Broker.SetStatus("stock", servicebus.Disabled))
	w := env.Work(program())
	env.Send("o-1", `{"sku":"chair","quantity":4}`)
	env.WaitUntilSettled(time.Minute)
	w.Stop()
	require.Empty(t, env.DeadLetters())
	require.Regexp(t, `o-1 +o-1 +2 +order-events, stock`, env.Run(program(), "outbox", "list"))
	require.Contains(t, env.Run(program(), "outbox", "list", "-o", "json"), `"to": "stock"`)
	require.Contains(t, env.Run(program(), "outbox", "show", "o-1"), `quantity`)
	require.Contains(t, env.Run(program(), "outbox", "send"), "Nothing was done: 1 would be sent")
	require.NoError(t, env.Services.Broker.SetStatus("stock", servicebus.Active))
	require.Contains(t, env.Run(program(), "outbox", "send", "--execute", "--reason", "ticket 4711"), "1 sent")
	require.Equal(t, []string{"o-1~part.reserve"}, arrived(t, env, "stock"))
	require.Contains(t, env.Run(program(), "outbox", "list"), "Nothing waits")
	require.Regexp(t, `send-outbox.*ticket 4711`, env.Run(program(), "deadletter", "log"))
}
