package workertest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/workertest"
)

// TestAContainerThatCannotHoldAMessageDeadLettersNothing gives a worker that does not name its types a container that cannot hold
// the documents of a message. The message waits on its queue until a person has changed the container or the worker.
func TestAContainerThatCannotHoldAMessageDeadLettersNothing(t *testing.T) {
	for _, path := range []string{"/id", "/payment", "/ledgerEntry/id"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := workertest.Start(t, func(o *testenv.Options) { o.PartitionKey = path })
				env.Work(worker.Config{}, worker.HandlerFunc(payment))
				env.Send("pay-1", `{"amount":40,"currency":"EUR"}`)
				time.Sleep(50 * time.Minute) // its time to live in the queue is an hour
				require.Empty(t, env.DeadLetters())
				require.Empty(t, env.Services.Stored())
				waiting, err := env.Services.Broker.Messages(env.Services.Queue.Name)
				require.NoError(t, err)
				require.Len(t, waiting, 1)
				require.Less(t, waiting[0].DeliveryCount, 3)
			})
		})
	}
}
