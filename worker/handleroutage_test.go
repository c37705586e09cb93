package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// provider is what a handler calls: a system that may be away.
type provider struct {
	mu    sync.Mutex
	away  bool
	slow  bool // it does not answer, instead of failing
	calls []time.Time
	bad   func(id string) bool
}

func (p *provider) set(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Handle implements [worker.Handler].
func (p *provider) Handle(ctx context.Context, m worker.Message) (worker.Effects, error) {
	p.mu.Lock()
	p.calls = append(p.calls, time.Now())
	away, slow := p.away, p.slow
	p.mu.Unlock()
	switch {
	case away && slow:
		<-ctx.Done()
		return worker.Effects{}, ctx.Err()
	case away:
		return worker.Effects{}, errors.New("payment provider: 503")
	case p.bad != nil && p.bad(m.MessageID):
		return worker.Effects{}, errors.New("no tax rate for this customer")
	}
	return order(ctx, m)
}

func patient(c worker.Config) worker.Config {
	c.Retry.Spread = 2 * time.Hour
	return c
}

func TestAnHourWithoutWhatTheHandlerCallsDeadLettersNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		slow    bool
		workers int
		fresh   bool
	}{
		{"it fails", false, 1, false}, {"it does not answer", true, 1, false}, {"two replicas", false, 2, false}, {"from the start on", false, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if underRace {
				t.Skip("an hour with a thousand messages makes more timers than the race detector takes")
			}
			bubble(t, servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}, func(e *env) {
				p := &provider{slow: tt.slow, away: tt.fresh}
				e.handler = p
				var all []*running
				for range tt.workers {
					w := e.start(patient(worker.Config{}))
					if !tt.fresh {
						e.sendOrders(fmt.Sprintf("first-%d-", len(all)), 40)
						e.await(5*time.Minute, "proven", e.drained)
					}
					all = append(all, w)
				}
				stored := e.mem.Len()
				p.set(true)
				e.sendOrders("o-", 1000)
				time.Sleep(time.Hour)
				require.Equal(e, stored, e.mem.Len())
				for _, w := range all {
					require.Equal(e, []string{"handler"}, parts(w.Health()), "not ready, for this alone")
					require.Equal(e, 200, ready(w, "/livez"))
				}
				require.Empty(e, e.deadLetters())
				require.Len(e, e.logs.lines("handler_outage"), tt.workers, "one line for one incident")
				require.LessOrEqual(e, e.maxDeliveries(), 5)
				require.Less(e, e.counts().Locked, 300*tt.workers, "no more is received than one message for each try")
				before := p.count()
				time.Sleep(10 * time.Minute)
				require.Less(e, p.count()-before, 60*tt.workers, "one at a time tries, with growing waits")
				p.set(false)
				e.await(20*time.Minute, "drained", e.drained)
				require.Equal(e, stored+1000, e.mem.Len())
				require.Empty(e, e.deadLetters())
				require.Len(e, e.logs.lines("handler_recovered"), tt.workers)
				for _, w := range all {
					e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
					e.end(w)
				}
			})
		})
	}
}

func TestPoisonAmongGoodMessagesEndsInItsOwnTime(t *testing.T) {
	bubble(t, servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}, func(e *env) {
		e.handler = &provider{bad: func(id string) bool { return id == "poison" }}
		w := e.startProven(patient(worker.Config{}))
		e.send("poison", `{"n":1}`)
		for i := range 130 {
			e.sendOrders(fmt.Sprintf("o-%d-", i), 3)
			time.Sleep(time.Minute)
			if i == 90 {
				require.Empty(e, e.deadLetters(), "not before its time")
			}
		}
		e.await(time.Minute, "drained", e.drained)
		require.Len(e, e.deadLetters(), 1)
		require.Equal(e, "HandlerError", e.deadLetters()[0].DeadLetterReason)
		require.Contains(e, e.deadLetters()[0].DeadLetterErrorDescription, "no tax rate")
		require.Equal(e, 391-1, e.mem.Len())
		require.Empty(e, e.logs.lines("handler_outage"))
		require.True(e, w.Health().Ready)
		e.end(w)
	})
}

func TestFiftyPoisonMessagesHoldUpNobody(t *testing.T) {
	bubble(t, servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}, func(e *env) {
		e.handler = &provider{bad: func(id string) bool { return strings.HasPrefix(id, "bad") }}
		w := e.startProven(patient(worker.Config{}))
		for i := range 50 {
			e.sendOrders(fmt.Sprintf("bad-%d-", i), 1)
			e.sendOrders(fmt.Sprintf("good-%d-", i), 1)
		}
		e.await(2*time.Minute, "the good ones", func() bool { return e.mem.Len() == 50 })
		e.sendOrders("later-", 20)
		e.await(time.Minute, "those that came later", func() bool { return e.mem.Len() == 70 })
		for i := 0; !e.drained(); i++ { // one customer's data is bad, and the others go on
			e.sendOrders(fmt.Sprintf("more-%d-", i), 2)
			time.Sleep(time.Minute)
			require.Less(e, i, 240)
		}
		require.Len(e, e.deadLetters(), 50)
		for _, d := range e.deadLetters() {
			require.Equal(e, "HandlerError", d.DeadLetterReason)
		}
		e.end(w)
	})
}

func TestBadMessagesAtTheHeadOfTheQueueDoNotStopTheGoodOnesBehindThem(t *testing.T) {
	for _, n := range []int{20, 50, 150} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if underRace && n > 50 {
				t.Skip("hours with many messages make more timers than the race detector takes")
			}
			bubble(t, servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}, func(e *env) {
				e.handler = &provider{bad: func(id string) bool { return strings.HasPrefix(id, "bad") }}
				w := e.startProven(patient(worker.Config{}))
				e.sendOrders("bad-", n)
				e.sendOrders("good-", 50)
				e.await(3*time.Hour, "the good ones", func() bool { return e.mem.Len() == 50 })
				e.end(w)
			})
		})
	}
}

func TestRejectionsAndPanicsAreNoOutage(t *testing.T) {
	for name, h := range map[string]worker.HandlerFunc{
		"rejections": func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.Reject("Never", errors.New("never"))
		},
		"panics": func(context.Context, worker.Message) (worker.Effects, error) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				e.handler = h
				w := e.start(worker.Config{Retry: worker.RetryConfig{Spread: time.Second}})
				e.sendOrders("o-", 40)
				e.await(time.Hour, "drained", e.drained)
				require.Len(e, e.deadLetters(), 40)
				require.Empty(e, e.logs.lines("handler_outage"))
				e.end(w)
			})
		})
	}
}

func TestOneMessageThatFailsAloneIsNoOutage(t *testing.T) {
	bubble(t, servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}, func(e *env) {
		e.handler = &provider{away: true}
		w := e.start(patient(worker.Config{}))
		e.sendOrders("o-", 9)
		e.await(3*time.Hour, "dead-lettered", func() bool { return len(e.deadLetters()) == 9 })
		require.Empty(e, e.logs.lines("handler_outage"))
		require.True(e, w.Health().Ready)
		e.end(w)
	})
}

func TestDeliveriesOfAFailingMessageAreSpread(t *testing.T) {
	bubble(t, servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}, func(e *env) {
		p := &provider{away: true}
		e.handler = p
		w := e.start(patient(worker.Config{}))
		start := time.Now()
		e.send("1", `{}`)
		e.await(3*time.Hour, "dead-lettered", func() bool { return len(e.deadLetters()) == 1 })
		require.InDelta(e, 2*time.Hour, time.Since(start), float64(5*time.Minute))
		require.Equal(e, 40, p.count(), "four tries in each of ten deliveries")
		p.mu.Lock()
		defer p.mu.Unlock()
		var waits []time.Duration
		for i := 4; i < 40; i += 4 {
			waits = append(waits, p.calls[i].Sub(p.calls[i-1]).Round(time.Second))
		}
		require.True(e, slices.IsSorted(waits), "%v", waits)
		require.InDelta(e, time.Hour, waits[8], float64(time.Minute))
		e.end(w)
	})
}

func TestAStopDuringAnOutageGivesBackLittle(t *testing.T) {
	bubble(t, servicebus.Queue{DefaultMessageTimeToLive: servicebus.Forever}, func(e *env) {
		p := &provider{away: true}
		e.handler = p
		e.sendOrders("o-", 200)
		for range 4 {
			w := e.start(patient(worker.Config{}))
			time.Sleep(2 * time.Minute)
			e.end(w)
		}
		require.Empty(e, e.deadLetters())
		touched := 0
		for _, n := range e.deliveries() {
			if n > 0 {
				touched++
			}
		}
		require.Less(e, touched, 60)
		p.set(false)
		w := e.start(patient(worker.Config{}))
		e.await(time.Hour, "drained", e.drained)
		require.Equal(e, 200, e.mem.Len())
		e.end(w)
	})
}
