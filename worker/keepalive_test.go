package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func TestASilentConnectionOfAnIdleWorkerShowsWithinTwentySeconds(t *testing.T) {
	for _, mute := range []servicebus.Mute{servicebus.MuteAll, servicebus.MuteFrames} {
		for _, idle := range []time.Duration{time.Second, 31 * time.Second, 10 * time.Minute} {
			t.Run(fmt.Sprint(mute, " after ", idle), func(t *testing.T) {
				bubble(t, servicebus.Queue{}, func(e *env) {
					w := e.start(worker.Config{})
					e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
					time.Sleep(idle)
					e.broker.SetMute(mute)
					e.await(20*time.Second, "not ready", func() bool { return !w.Health().Ready })
					require.Equal(e, []string{"broker"}, parts(w.Health()))
					time.Sleep(5 * time.Minute)
					require.False(e, w.Health().Ready)
					require.Len(e, e.logs.lines("not_ready"), 1, "one line for one incident")
					e.broker.SetMute(servicebus.Speaking)
					e.await(time.Minute, "ready again", func() bool { return w.Health().Ready })
					e.end(w)
				})
			})
		}
	}
}

func TestAnIdleWorkerLooksAtItsQueueSeldom(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		w := e.start(worker.Config{})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		before := len(e.history.Events())
		time.Sleep(time.Hour)
		require.LessOrEqual(e, len(e.history.Events())-before, 6*60+120, "six looks a minute, and what refreshes tokens")
		require.Zero(e, e.count(worker.EventReceiverReplaced))
		e.end(w)
	})
}
