package main

import (
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

// newShop is an environment with order 913 in it. What a killed worker has locked comes back after five seconds.
func newShop(t *testing.T) *apptest.Env {
	t.Helper()
	env := apptest.Start(t, func(o *testenv.Options) {
		o.Adjust = func(q *servicebus.Queue) { q.RequiresDuplicateDetection, q.LockDuration = false, 5*time.Second }
	}, "WORKER_PARTITION=property:orderId")
	env.Put(`{"id":"913","pk":"913","status":"NEW","paid":0,"history":[]}`)
	return env
}

// send sends copies of M42.
func send(env *apptest.Env, copies int) {
	id := "M42"
	for range copies {
		env.SendMessages(&azservicebus.Message{MessageID: &id, Body: []byte(`{"paymentId":"P7","amount":4000}`),
			ApplicationProperties: map[string]any{"orderId": "913"}})
	}
}

type order struct {
	Status  string
	Paid    int
	History []string
}

// requirePaidOnce looks at the stored order, and at the history of the environment: in it one batch has an effect.
func requirePaidOnce(t *testing.T, env *apptest.Env) {
	t.Helper()
	var o order
	env.Document("913", &o)
	require.Equal(t, order{"PAID", 4000, []string{"P7 captured"}}, o)
	require.Empty(t, env.DeadLetters())
	require.Len(t, env.Services.Stored(), 2, "the order and one inbox record")
	require.Equal(t, 1, env.Services.History.Count(func(e history.Event) bool { return e.Op == history.ExecuteBatch && e.Effect }))
}

func TestFiftyCopiesAtTwoWorkersPayAnOrderOnce(t *testing.T) {
	t.Parallel()
	env := newShop(t)
	env.Run(program(), "check")
	send(env, 50)
	one, other := env.Work(program()), env.Work(program())
	env.WaitUntilSettled(time.Minute)
	counts, more := one.Stop(), other.Stop()
	requirePaidOnce(t, env)
	require.Equal(t, 50, env.Services.History.Count(func(e history.Event) bool { return e.Op == history.Complete && e.Effect }))
	require.Equal(t, 1, counts["created"]+more["created"]+counts["own_write"]+more["own_write"])
	require.Equal(t, 49, counts["duplicate"]+more["duplicate"])
	require.Regexp(t, `outcome +{"status":"PAID"}`, env.Run(program(), "get", "M42", "--partition-value", "913"), "it is kept in the record")
}

func TestAWorkerThatIsKilledPaysAnOrderOnce(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]func(kill func()) *fault.Rule{
		"before the batch": func(kill func()) *fault.Rule {
			return fault.On(history.ExecuteBatch).Before(fault.Action{Kind: fault.Drop, Do: kill})
		},
		"after the batch": func(kill func()) *fault.Rule { return fault.On(history.ExecuteBatch).After(fault.Call(kill)) },
		"before the complete": func(kill func()) *fault.Rule {
			return fault.On(history.Complete).Before(fault.Action{Kind: fault.Drop, Do: kill})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newShop(t)
			doomed := env.Spawn()
			env.Services.Faults.Add(rule(doomed.Kill))
			send(env, 1)
			<-doomed.Done()
			env.Work(program())
			env.WaitUntilSettled(time.Minute)
			requirePaidOnce(t, env)
		})
	}
}
