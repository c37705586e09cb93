package deadletter

import (
	"context"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
)

// Pace says how fast many messages are dealt with, and when to stop.
type Pace struct {
	// Rate is how many messages are begun in a second. Zero is no bound.
	Rate float64
	// Canary are the sizes of the first groups. A group is begun when the one before is done; the size grows only while
	// every message came out as it should, and starts again at the first when one did not. The last size is used for the
	// rest. Defaults to 1, 5, 20, 100.
	Canary []int
	// Concurrency is how many messages of a group are dealt with at a time. Defaults to 8.
	Concurrency int
	// MaxFailures stops everything when so many messages did not come out as they should. Defaults to 10.
	MaxFailures int
}

func (p Pace) withDefaults() Pace {
	if len(p.Canary) == 0 {
		p.Canary = []int{1, 5, 20, 100}
	}
	if p.Concurrency <= 0 {
		p.Concurrency = 8
	}
	if p.MaxFailures <= 0 {
		p.MaxFailures = 10
	}
	return p
}

// An Application is a plan, or a few messages, to be dealt with.
type Application struct {
	Command Command
	Steps   []PlanStep
	Pace    Pace
	// Outcome is called for every message when its outcome is known, and Progress with it and at every pause, both from one
	// goroutine at a time. Either may be nil.
	Outcome  func(Outcome)
	Progress func(Summary)
}

// A Summary says what an application came to, or how far it is.
type Summary struct {
	// Steps are all, and Counts those with an outcome.
	Steps  int
	Counts map[Result]int
	// Stopped says why it ended before its end, and Paused why nothing is begun now; empty when it did not, and when something is.
	Stopped, Paused string
}

// Settled returns how many steps have an outcome.
func (s Summary) Settled() int {
	n := 0
	for _, c := range s.Counts {
		n += c
	}
	return n
}

// Failed returns how many messages did not come out as they should.
func (s Summary) Failed() int {
	return s.Counts[Broken] + s.Counts[Uncertain] + s.Counts[Rejected] + s.Counts[NotSeen]
}

// pacer spaces what is begun. It is safe for concurrent use.
type pacer struct {
	rate float64 // a second; zero is no bound

	mu   sync.Mutex
	next time.Time // guarded by mu
}

// wait returns when the next message may be begun, and reports whether it may: false means that ctx has ended.
func (p *pacer) wait(ctx context.Context) bool {
	if p.rate <= 0 {
		return ctx.Err() == nil
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	at := p.next
	p.next = at.Add(time.Duration(float64(time.Second) / p.rate))
	p.mu.Unlock()
	return backoff.Sleep(ctx, at.Sub(now))
}
