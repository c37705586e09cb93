package supervise

import (
	"slices"
	"sync"
	"time"
)

// poolRest is how long a goroutine of a pool may have had nothing to do before it ends.
const poolRest = 30 * time.Second

// A Pool runs functions in goroutines that it keeps for the next ones. A call of a store goes deep, and a new goroutine
// has to grow its stack each time. It is safe for concurrent use. A nil *Pool starts a goroutine for each function.
type Pool struct {
	mu     sync.Mutex
	idle   []chan func() // the one that worked last is last
	closed bool
	// spare is the fewest that were idle at a time since the pool was last trimmed.
	spare   int
	trimmed time.Time
}

// Go runs f in a goroutine of its own, now.
func (p *Pool) Go(f func()) {
	if p == nil {
		go f()
		return
	}
	p.mu.Lock()
	var hand chan func()
	if last := len(p.idle) - 1; last >= 0 {
		hand, p.idle = p.idle[last], p.idle[:last]
	}
	p.spare = min(p.spare, len(p.idle))
	p.mu.Unlock()
	if hand != nil {
		hand <- f
		return
	}
	hand = make(chan func(), 1)
	hand <- f
	go p.serve(hand)
}

func (p *Pool) serve(hand chan func()) {
	for f := range hand {
		f()
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return
		}
		p.idle = append(p.idle, hand)
		p.trimLocked()
		p.mu.Unlock()
	}
}

// trimLocked ends those that have had nothing to do for a while, if it is time.
func (p *Pool) trimLocked() {
	now := time.Now()
	if now.Sub(p.trimmed) < poolRest {
		return
	}
	for _, hand := range p.idle[:p.spare] {
		close(hand)
	}
	p.idle = slices.Delete(p.idle, 0, p.spare)
	p.spare, p.trimmed = len(p.idle), now
}

// Close ends the goroutines that are idle, and each other when its function has returned.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, hand := range p.idle {
		close(hand)
	}
	p.idle = nil
}
