package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker/app"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

// carrier is a program with a carrier that counts its calls.
func carrier() (p app.Program, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	return program(func(context.Context, string) error { calls.Add(1); return nil }), calls
}

func send(env *apptest.Env, id, kind string) {
	env.SendMessages(&azservicebus.Message{MessageID: &id, Body: fmt.Appendf(nil, `{"id":%q}`, id), ApplicationProperties: map[string]any{"type": kind}})
}

func TestOfFiveTypesTwoAreStoredAndTheOthersAreIgnoredAndCounted(t *testing.T) {
	t.Parallel()
	env := apptest.Start(t, nil)
	p, calls := carrier()
	worker := env.Work(p)
	for i, kind := range []string{"OrderPlaced", "OrderRefunded", "OrderShipped", "CustomerMoved", "PriceChanged"} {
		for n := range 2 {
			send(env, fmt.Sprintf("%d-%d", i, n), kind)
		}
	}
	env.WaitUntilSettled(time.Minute)
	counts := worker.Stop()
	require.Equal(t, 4, counts["created"])
	require.Equal(t, 6, counts["ignored"])
	require.EqualValues(t, 2, calls.Load())
	require.Empty(t, env.DeadLetters())
	require.ElementsMatch(t, []string{"0-0", "0-1", "1-0", "1-1"}, env.Services.Stored(), "nothing is stored of what is ignored")
	require.Equal(t, 10, env.Services.History.Count(func(e history.Event) bool { return e.Op == history.Complete && e.Effect }), "all are completed")
	for _, e := range env.Services.History.Events() {
		require.False(t, strings.HasPrefix(e.Op, "cosmosdb.") && strings.HasPrefix(e.Key, "2-"), "the store is asked nothing about what is ignored: %+v", e)
	}
}

func TestARedeliveredOrderThatIsStoredDoesNotCallTheCarrierAgain(t *testing.T) {
	t.Parallel()
	env := apptest.Start(t, func(o *testenv.Options) {
		o.Adjust = func(q *servicebus.Queue) { q.RequiresDuplicateDetection, q.LockDuration = false, 5*time.Second }
	})
	env.Services.Faults.Add(fault.On(history.Complete).Before(fault.Reject("com.microsoft:message-lock-lost")))
	p, calls := carrier()
	worker := env.Work(p)
	send(env, "o-1", "OrderPlaced")
	env.WaitUntilSettled(time.Minute)
	counts := worker.Stop()
	require.EqualValues(t, 1, calls.Load(), "calls of the carrier")
	require.Equal(t, 1, counts["created"])
	require.Equal(t, 1, counts["redelivered"])
	require.Equal(t, 1, env.Services.History.Count(func(e history.Event) bool { return e.Op == history.CreateDocument && e.Key == "o-1" }), "the handler was not run again")
}
