package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func TestMessagesAreStoredAndCompleted(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.sendOrders("o-", 100)
		w := e.start(worker.Config{})
		e.await(time.Minute, "drained", e.drained)
		require.Equal(e, 100, e.mem.Len())
		require.Equal(e, 1, e.maxDeliveries())
		require.Equal(e, 100, e.count(worker.EventCreated))
		require.LessOrEqual(e, e.ops(history.Release), 5, "no message is taken that has no slot, but for those that meet the moment between two calls")
		require.True(e, w.Health().Ready)
		e.end(w)
		require.Equal(e, 100, e.count(worker.EventFinished))
		require.Zero(e, e.broker.Connections())
	})
}
