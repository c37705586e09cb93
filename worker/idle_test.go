package worker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func TestAWorkerWithoutWorkNoticesThatItsStoreIsDown(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		cause worker.Cause
	}{
		{"it cannot be reached", &worker.UnavailableError{Cause: errors.New("connection refused")}, worker.CauseUnavailable},
		{"it may not be used any more", &worker.MisconfiguredError{Cause: errors.New("forbidden"), Fix: "Give the identity its role."}, worker.CauseMisconfigured},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				w := e.start(worker.Config{})
				e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
				time.Sleep(10 * time.Minute)
				require.Equal(e, 200, ready(w, "/readyz"))
				e.store.Down(tt.err)
				e.await(time.Minute, "not ready", func() bool { return ready(w, "/readyz") == 503 })
				time.Sleep(time.Hour)
				require.Equal(e, []string{"store"}, parts(w.Health()))
				require.Len(e, e.logs.lines("not_ready"), 1, "one line for one incident")
				opened := e.logs.lines("breaker_opened")
				require.Len(e, opened, 1)
				require.Equal(e, tt.cause.String(), opened[0]["cause"])
				e.store.Up()
				e.await(2*time.Minute, "ready again", func() bool { return w.Health().Ready })
				e.end(w)
			})
		})
	}
}

func TestAWorkerWithoutWorkAsksItsStoreSeldomAndForgivesOneFailure(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.store.OnReady(func(n int) error {
			if n%5 == 0 {
				return &worker.UnavailableError{Cause: errors.New("a reset connection")}
			}
			return nil
		})
		w := e.start(worker.Config{})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		before := e.store.Probes()
		time.Sleep(time.Hour)
		require.InDelta(e, 140, e.store.Probes()-before, 60, "every 20 to 40 seconds, and once more after a failure")
		require.Zero(e, e.count(worker.EventBreakerOpened))
		require.Equal(e, 200, ready(w, "/readyz"))
		e.end(w)
	})
}

func TestAWorkerWithWorkDoesNotAskItsStoreBesides(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		w := e.start(worker.Config{})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		before := e.store.Probes()
		for range 60 {
			e.sendOrders(time.Now().Format("150405-"), 1)
			time.Sleep(10 * time.Second)
		}
		require.Equal(e, before, e.store.Probes(), "its commits tell")
		e.end(w)
	})
}
