package bench_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
)

// slots is the concurrency at which the wanted figures are meant.
const slots = 64

// ideal is slots/latency in messages per second: every slot always waits for the delivery, the create or the settle of its
// message, and for nothing else. It is what as many bare loops with one slot each come to at best. A consumer that settles
// outside of its slots can be faster.
func ideal() float64 {
	return slots / (brokerLatency + storeLatency + brokerLatency).Seconds()
}

// collectorPercent is the pace of the garbage collector at which all of them run: that which the program sets for itself.
const collectorPercent = 400

// setCollector sets that pace, and returns what sets the old one again.
func setCollector() (reset func()) {
	before := debug.SetGCPercent(collectorPercent)
	return func() { debug.SetGCPercent(before) }
}

// BenchmarkThroughput lets the worker, the bare loop with as many slots, and the bare loop with one slot work off the same
// messages with latency, and prints the ratios. [BenchmarkEffects] has those without latency.
func BenchmarkThroughput(b *testing.B) {
	defer setCollector()()
	const messages, one = 20_000, 100
	// Some times each and the best one, taking turns, since other programs disturb.
	var ours, loop run
	for range 3 {
		ours = ours.better(measure(b, messages, func(s *env) func() { return s.worker(slots) }))
		loop = loop.better(measure(b, messages, func(s *env) func() { return s.loop(slots) }))
	}
	sequential := measure(b, one, func(s *env) func() { return s.loop(1) })
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.rate, "worker-msg/s")
	b.ReportMetric(loop.rate, "loop-msg/s")
	b.ReportMetric(sequential.rate, "sequential-msg/s")
	b.ReportMetric(ours.rate/loop.rate, "worker/loop")
	b.ReportMetric(ours.rate/sequential.rate, "worker/sequential")
	b.ReportMetric(ours.rate/ideal(), "worker/ideal")
}

// run is what was measured: messages per second, and microseconds of processor time per message, both sides of the wire.
type run struct{ rate, cpu float64 }

func (r run) better(other run) run {
	if other.rate > r.rate {
		return other
	}
	return r
}

// measure measures a consumer from its start until the queue is empty.
func measure(b *testing.B, messages int, start func(*env) func()) run {
	b.Helper()
	s := newSocketEnv(b, true, history.NewBounded(100))
	s.fill(messages)
	runtime.GC() // of what earlier runs left behind
	began, used := time.Now(), cpuTime()
	stop := start(s)
	s.waitEmpty()
	elapsed, spent := time.Since(began), cpuTime()-used
	stop()
	require.Len(b, s.Stored(), messages)
	require.NoError(b, s.Close())
	return run{rate: float64(messages) / elapsed.Seconds(), cpu: spent.Seconds() * 1e6 / float64(messages)}
}

// waitEmpty waits in real time until nothing is on the queue. It fails when that takes minutes.
func (s *env) waitEmpty() {
	s.tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(5 * time.Minute); s.left() > 0; <-tick.C {
		require.True(s.tb, time.Now().Before(limit), "the queue is not empty after five minutes")
	}
}
