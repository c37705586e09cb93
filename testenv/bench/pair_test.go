package bench_test

import (
	"context"
	"runtime"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
)

// pair is the worker and the loop that are compared, each on an environment of its own, in one process. They take turns in
// slices of a fraction of a second, so that whatever else the machine does disturbs both alike, and both stay warm.
type pair struct {
	b    *testing.B
	side [2]*side
}

// side is one of the two.
type side struct {
	*env
	entity bool
	sent   int
	stop   func()
}

const (
	pairs      = 21 // of slices, the first of which is to warm up
	perSlice   = 1_000
	ofWorker   = 0
	ofLoop     = 1
	labelledAs = "side" // of the profile: go tool pprof -tagfocus side=worker
)

func newPair(b *testing.B, entity bool, startWorker, startLoop func(*env) func()) *pair {
	b.Helper()
	p := &pair{b: b}
	for i, start := range []func(*env) func(){startWorker, startLoop} {
		s := &side{env: newSocketEnv(b, false, history.NewBounded(100)), entity: entity}
		pprof.Do(context.Background(), pprof.Labels(labelledAs, []string{"worker", "loop"}[i]), func(context.Context) { s.stop = start(s.env) })
		p.side[i] = s
	}
	return p
}

// close stops both and looks whether they did the work.
func (p *pair) close() {
	p.b.Helper()
	for _, s := range p.side {
		s.stop()
		require.NoError(p.b, s.Close())
	}
}

// slice lets one side work off some messages.
func (s *side) slice() run {
	s.prepare(s.sent, perSlice, s.entity)
	runtime.GC() // of what the slices before left behind
	began, used := time.Now(), cpuTime()
	s.sendEntities(s.sent, perSlice)
	s.waitEmpty()
	s.sent += perSlice
	return run{rate: perSlice / time.Since(began).Seconds(), cpu: (cpuTime() - used).Seconds() * 1e6 / perSlice}
}

// compare lets the sides take turns, the first one changing, and returns the median of each and of the ratios of the pairs.
func (p *pair) compare() (worker, loop, ratio run) {
	var runs [2][]run
	var ratios []run
	for n := range pairs {
		var r [2]run
		for i := range 2 {
			i = (i + n) % 2
			r[i] = p.side[i].slice()
		}
		if n == 0 {
			continue
		}
		for i := range 2 {
			runs[i] = append(runs[i], r[i])
		}
		ratios = append(ratios, run{rate: r[ofWorker].rate / r[ofLoop].rate, cpu: r[ofLoop].cpu / r[ofWorker].cpu})
	}
	return median(runs[ofWorker]), median(runs[ofLoop]), median(ratios)
}

// median is the median of the rates and that of the processor times.
func median(runs []run) run {
	of := func(value func(run) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, value(r))
		}
		slices.Sort(all)
		return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	}
	return run{rate: of(func(r run) float64 { return r.rate }), cpu: of(func(r run) float64 { return r.cpu })}
}

// BenchmarkEffects lets the worker and a loop written by hand, which makes the same requests, take turns with messages of
// each kind, without latency, and prints the median of the ratios. Processor time is that of both sides of the wire.
func BenchmarkEffects(b *testing.B) {
	defer setCollector()()
	for _, e := range effects {
		b.Run(e.name, func(b *testing.B) {
			p := newPair(b, e.entity, func(s *env) func() { return s.effectsWorker(slots, e.entity, e.claim, e.handler) }, func(s *env) func() { return s.loopOf(slots, e.byHand) })
			worker, loop, ratio := p.compare()
			p.close()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(e.ops)-1), "roundtrips/message")
			b.ReportMetric(worker.rate, "worker-msg/s")
			b.ReportMetric(loop.rate, "loop-msg/s")
			b.ReportMetric(ratio.rate, "worker/loop")
			b.ReportMetric(worker.cpu, "worker-cpu-us/msg")
			b.ReportMetric(loop.cpu, "loop-cpu-us/msg")
			b.ReportMetric(ratio.cpu, "loop-cpu/worker-cpu")
		})
	}
}
