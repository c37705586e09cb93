package bench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
)

// slots is the concurrency at which the wanted figures are meant.
const slots = 64

// ideal is the rate, in messages per second, at which every slot is always waiting for the delivery, the create or the settle
// of its message, and for nothing else. A consumer that receives or settles outside of its slots can be faster.
func ideal() float64 {
	return slots / (brokerLatency + storeLatency + brokerLatency).Seconds()
}

// BenchmarkThroughput lets the worker, the bare loop with as many slots, and the bare loop with one slot work off the same
// messages, without latency and with it, and prints the ratios.
func BenchmarkThroughput(b *testing.B) {
	for _, latency := range []struct {
		name                string
		slow                bool
		messages, one, warm int
	}{
		{"none", false, 20_000, 4_000, 500},
		{fmt.Sprintf("%v broker, %v store", brokerLatency, storeLatency), true, 20_000, 100, 200},
	} {
		b.Run("latency "+latency.name, func(b *testing.B) {
			// Twice each and the better one, taking turns, since other programs disturb.
			var ours, loop float64
			for range 2 {
				ours = max(ours, rate(b, latency.slow, latency.messages, func(s *stage) func() { return s.worker(slots) }))
				loop = max(loop, rate(b, latency.slow, latency.messages, func(s *stage) func() { return s.loop(slots) }))
			}
			one := rate(b, latency.slow, latency.one, func(s *stage) func() { return s.loop(1) })
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours, "worker-msg/s")
			b.ReportMetric(loop, "loop-msg/s")
			b.ReportMetric(one, "sequential-msg/s")
			b.ReportMetric(ours/loop, "worker/loop")
			b.ReportMetric(ours/one, "worker/sequential")
			if latency.slow {
				b.ReportMetric(ours/ideal(), "worker/ideal")
			}
		})
	}
}

// rate measures how many messages per second a consumer works off, from its start on.
func rate(b *testing.B, slow bool, messages int, start func(*stage) func()) float64 {
	b.Helper()
	s := newStage(b, slow, history.NewBounded(100))
	s.fill(messages)
	began := time.Now()
	stop := start(s)
	s.waitEmpty()
	elapsed := time.Since(began)
	stop()
	require.Len(b, s.Stored(), messages)
	require.NoError(b, s.Close())
	return float64(messages) / elapsed.Seconds()
}

// waitEmpty waits in real time until nothing is on the queue. It fails when that takes minutes.
func (s *stage) waitEmpty() {
	s.tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(5 * time.Minute); s.left() > 0; <-tick.C {
		require.True(s.tb, time.Now().Before(limit), "the queue is not empty after five minutes")
	}
}
