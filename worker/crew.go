package worker

import (
	"slices"
	"sync"
	"time"
)

// crewRest is how long a goroutine of a crew may have had nothing to do before it ends.
const crewRest = 30 * time.Second

// A crew runs functions in goroutines that it keeps for the next ones. A call of a store goes deep, and a new goroutine
// has to grow its stack each time. It is safe for concurrent use. A nil *crew starts a goroutine for each function.
type crew struct {
	mu     sync.Mutex
	idle   []chan func() // the one that worked last is last
	closed bool
	// spare is the fewest that were idle at a time since the crew was last trimmed.
	spare   int
	trimmed time.Time
}

// do runs f in a goroutine of its own, now.
func (c *crew) do(f func()) {
	if c == nil {
		go f()
		return
	}
	c.mu.Lock()
	var hand chan func()
	if last := len(c.idle) - 1; last >= 0 {
		hand, c.idle = c.idle[last], c.idle[:last]
	}
	c.spare = min(c.spare, len(c.idle))
	c.mu.Unlock()
	if hand != nil {
		hand <- f
		return
	}
	hand = make(chan func(), 1)
	hand <- f
	go c.serve(hand)
}

func (c *crew) serve(hand chan func()) {
	for f := range hand {
		f()
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return
		}
		c.idle = append(c.idle, hand)
		c.trimLocked()
		c.mu.Unlock()
	}
}

// trimLocked ends those that have had nothing to do for a while, if it is time.
func (c *crew) trimLocked() {
	now := time.Now()
	if now.Sub(c.trimmed) < crewRest {
		return
	}
	for _, hand := range c.idle[:c.spare] {
		close(hand)
	}
	c.idle = slices.Delete(c.idle, 0, c.spare)
	c.spare, c.trimmed = len(c.idle), now
}

// close ends the goroutines that are idle, and each other when its function has returned.
func (c *crew) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, hand := range c.idle {
		close(hand)
	}
	c.idle = nil
}
