// Package breaker is the circuit breaker before the store. It stops the work while the store cannot be used, lets it start again
// little by little, and decides whether message or store is to blame for a write that fails.
package breaker

import (
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
)

// MaxHint bounds the wait that a store may ask for.
const MaxHint = 5 * time.Minute

// Config says how a [Breaker] works.
type Config struct {
	// Failures is the number of consecutive unavailable answers that open the breaker.
	Failures int
	// Backoff is the wait before each probe while the breaker is open.
	Backoff backoff.Policy
	// Capacity is the number of messages that may be in process while nothing is limited.
	Capacity int
	// Proven begins closed, instead of asking first and working on one message until it is committed.
	Proven bool
	// Wake is called, with a lock held, whenever the room for messages may have changed. It may be nil.
	Wake func()
	// Notify is told of every change, without a lock held.
	Notify func(Change)
}

// A Breaker stops the work when the store cannot be used, and lets it start again little by little. Only answers that say so of
// the store as a whole count: a message that cannot be stored proves that the store answers. It is safe for concurrent use.
type Breaker struct {
	config Config

	mu       sync.Mutex
	state    State
	epoch    int           // grows each time the breaker opens: reports of older permits say nothing
	failures int           // consecutive unavailable answers while closed
	probes   int           // since the breaker opened
	hint     time.Time     // the store asked not to be asked before
	limit    int           // of the ramp
	active   int           // permits of this epoch in use
	waiting  int           // commits that wait for a permit
	cause    error         // the last one
	fatal    bool          // the cause needs a person
	since    time.Time     // when the incident began; zero without one
	heard    time.Time     // when a commit or a probe last told of the store
	changed  chan struct{} // closed at the next change
	blame    blame
	// proven tells that a commit of this process was answered. Before, one message is in process at a time.
	proven bool
	// unwritten counts the calls of WithoutStore while it was not proven.
	unwritten int
	// suspectsTurn lets a suspect try in this trial, since nobody else came.
	suspectsTurn bool
}

// New returns a breaker that is [Starting].
func New(c Config) *Breaker {
	b := &Breaker{config: c, changed: make(chan struct{}), blame: blame{seen: map[int64]*failures{}}, proven: c.Proven}
	if c.Proven {
		b.state = Closed
	}
	return b
}

// Watch returns the state and a channel that is closed at the next change of it.
func (b *Breaker) Watch() (State, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.changed
}

// Waiting returns how many commits wait for a permit.
func (b *Breaker) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

// Room returns how many more messages may be in process when inProcess are. Suspects take no room from others, up to twice the
// capacity.
func (b *Breaker) Room(inProcess int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := 0
	switch b.state {
	case Closed:
		limit = b.config.Capacity + b.blame.present
	case Trial:
		limit = 1 + b.unwritten + b.blame.waiting
	case Ramp:
		limit = min(b.limit, b.config.Capacity) + b.blame.present
	default:
		return 0
	}
	return min(limit, 2*b.config.Capacity) - inProcess
}

// RoomBesideWaiting is Room where messages that wait for a permit are not among inProcess. While there is one that may try next, no
// other is needed to try.
func (b *Breaker) RoomBesideWaiting(inProcess int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.state == Closed:
		return b.config.Capacity - inProcess
	case b.state == Trial && b.waiting == b.blame.waiting:
		return 1 - inProcess
	case b.state == Ramp:
		return min(b.limit, b.config.Capacity) - inProcess
	}
	return 0
}

// Entered tells that a delivery of a message is in process, by its sequence number.
func (b *Breaker) Entered(message int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blame.place(message, true)
}

// Left tells that it no longer is.
func (b *Breaker) Left(message int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blame.place(message, false)
}

// Suspected reports whether a message is a suspect: it waits by itself and lets others try first.
func (b *Breaker) Suspected(message int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blame.is(message)
}

// WithoutStore tells that a message is through, or waits for something else, without the store having been asked. It proves nothing
// and shall not keep others from doing so: there is room for one more.
func (b *Breaker) WithoutStore() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.proven && b.unwritten < b.config.Capacity-1 {
		b.unwritten++
		b.broadcastLocked()
	}
}

// broadcastLocked wakes everyone who waits for a change.
func (b *Breaker) broadcastLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
	if b.config.Wake != nil {
		b.config.Wake()
	}
}

func (b *Breaker) notify(c Change) {
	if c.Opened || c.Closed {
		b.config.Notify(c)
	}
}
