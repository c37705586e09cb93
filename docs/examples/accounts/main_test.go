package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

// send sends so many debits of an account.
func send(env *apptest.Env, prefix string, debits int, amount int64) {
	var messages []*azservicebus.Message
	for n := range debits {
		id := fmt.Sprint(prefix, n)
		messages = append(messages, &azservicebus.Message{MessageID: &id, Body: fmt.Appendf(nil, `{"amount":%d}`, amount),
			ApplicationProperties: map[string]any{"accountId": "acc-1"}})
	}
	env.SendMessages(messages...)
}

func TestTwoHundredDebitsOfOneAccountByEightWorkersComeOutExactly(t *testing.T) {
	t.Parallel()
	const debits, amount, spare = 200, 7, 5
	env := apptest.Start(t, nil, "WORKER_PARTITION=property:accountId")
	env.Put(fmt.Sprintf(`{"id":"acc-1","pk":"acc-1","balance":%d,"debits":0}`, debits*amount+spare))
	var runs atomic.Int64
	counted := program(worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
		runs.Add(1)
		return debit(ctx, m)
	}))
	send(env, "d", debits, amount)
	workers := make([]*apptest.Worker, 8)
	for i := range workers {
		workers[i] = env.Work(counted)
	}
	env.WaitUntilSettled(5 * time.Minute)
	fmt.Printf("%d debits of one account by %d workers took %d runs of the handler\n", debits, len(workers), runs.Load())
	require.GreaterOrEqual(t, runs.Load(), int64(debits))
	require.Empty(t, env.DeadLetters(), "nobody is dead-lettered for losing a race")
	committed := 0
	for _, w := range workers[1:] {
		counts := w.Stop()
		committed += counts["created"] + counts["own_write"]
	}
	var a account
	env.Document("acc-1", &a)
	require.Equal(t, account{Balance: spare, Debits: debits}, a)
	require.Equal(t, debits, env.Services.History.Count(func(e history.Event) bool { return e.Op == history.ExecuteBatch && e.Effect }))

	send(env, "too-much", 1, amount)
	env.WaitUntilSettled(time.Minute)
	counts := workers[0].Stop()
	require.Equal(t, debits, committed+counts["created"]+counts["own_write"], "each debit is committed once")
	require.Equal(t, 1, counts["rejected"]+counts["dead_lettered"])
	require.Len(t, env.DeadLetters(), 1)
	require.Equal(t, "InsufficientFunds", env.DeadLetters()[0].Reason)
	env.Document("acc-1", &a)
	require.EqualValues(t, spare, a.Balance)
}
