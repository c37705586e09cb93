package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func TestAnObserverThatPanicsCostsNoMessage(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.sendOrders("o-", 20)
		w := e.start(worker.Config{Observer: worker.ObserverFunc(func(event worker.Event) { panic("no metrics of " + string(event.Kind)) })})
		e.await(time.Minute, "drained", e.drained)
		require.Equal(e, 20, e.mem.Len())
		require.Equal(e, 1, e.maxDeliveries())
		e.end(w)
		lines := e.logs.lines("panicked")
		require.Len(e, lines, 1, "it is told once")
		require.Contains(e, lines[0]["detail"], "The observer of this program panicked")
		require.Contains(e, lines[0]["error"], "no metrics of")
		require.Contains(e, lines[0]["stack"], "contained_test.go")
	})
}
