package worker

import "sync"

// A crew runs functions in goroutines that it keeps for the next ones. A call of a store goes deep, and a new goroutine
// has to grow its stack each time. It is safe for concurrent use. A nil *crew starts a goroutine for each function.
type crew struct {
	mu     sync.Mutex
	idle   []chan func() // guarded by mu
	closed bool          // guarded by mu
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
		c.mu.Unlock()
	}
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
