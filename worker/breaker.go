package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/orderworker/orderworker/worker/reason"
)

// breakerState is one of the states of a [breaker].
type breakerState int

const (
	// breakerStarting: the store has not been asked yet. Nothing is received.
	breakerStarting breakerState = iota
	// breakerClosed: the store works, and nothing is limited.
	breakerClosed
	// breakerOpen: nothing is received and nothing committed until the store says that it is ready.
	breakerOpen
	// breakerTrial: the store says that it is ready, and one commit may prove it. A process begins so, too: while it has
	// committed nothing, one message is in process at a time, so that a stop abandons no more.
	breakerTrial
	// breakerRamp: a commit has proved it, and the number of messages in process grows with each success.
	breakerRamp
)

func (s breakerState) String() string {
	return [...]string{"starting", "closed", "open", "trial", "ramp"}[s]
}

// A breaker stops the work when the store cannot be used, and lets it start again little by little. Only results that say
// so of the store as a whole count: a message that cannot be stored proves that the store answers. It is safe for
// concurrent use.
type breaker struct {
	config   BreakerConfig
	capacity int
	// notify is called after every change, without the lock held.
	notify func(breakerChange)

	mu       sync.Mutex
	state    breakerState
	epoch    int           // grows each time the breaker opens: results of older permits say nothing
	failures int           // consecutive unavailable results while closed
	probes   int           // since the breaker opened
	hint     time.Time     // the store asked not to be asked before
	limit    int           // of the ramp
	active   int           // permits of this epoch in use
	waiting  int           // commits that wait for a permit
	cause    error         // the last one
	fatal    bool          // the cause needs a person
	since    time.Time     // when it opened
	heard    time.Time     // when a commit or a probe last told of the store
	changed  chan struct{} // closed at the next change
	blame    blame
	// proven tells that a commit of this process was answered. Before, one message is in process at a time.
	proven bool
	// unwritten counts messages that were through without the store while it was not proven. They make room for as many more.
	unwritten int
	// suspectsTurn lets a suspect try in this trial, since nobody else came.
	suspectsTurn bool
}

// A breakerChange tells that the breaker opened, or closed after some time.
type breakerChange struct {
	opened, closed bool
	misconfigured  bool
	cause          error
	lasted         time.Duration
}

func newBreaker(c BreakerConfig, capacity int, notify func(breakerChange)) *breaker {
	return &breaker{
		config: c, capacity: capacity, notify: notify, changed: make(chan struct{}),
		blame: blame{seen: map[int64]*failures{}},
	}
}

// A permit allows one commit. It must be returned by [breaker.report].
type permit struct {
	epoch    int
	sequence int64
}

// errNoPermit is returned when a commit may not start and must not wait any longer.
var errNoPermit = errors.New("worker: the store cannot be used, and the message is not held any longer")

// tryAcquire returns a permit for the commit of a message if it may start at once.
func (b *breaker) tryAcquire(sequence int64) (permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.permitsLocked(b.blame.is(sequence)) {
		return permit{}, false
	}
	b.active++
	return permit{epoch: b.epoch, sequence: sequence}, true
}

// acquire waits until the commit of a message may start. It returns errNoPermit when ctx ends or stop is closed before.
func (b *breaker) acquire(ctx context.Context, stop <-chan struct{}, sequence int64) (permit, error) {
	b.mu.Lock()
	suspect := b.blame.is(sequence)
	if suspect && b.state == breakerTrial {
		b.broadcastLocked() // it is about to wait, which makes room for another message to be tried first
	}
	for !b.permitsLocked(suspect) {
		if ctx.Err() != nil || closed(stop) {
			b.mu.Unlock()
			return permit{}, errNoPermit
		}
		changed := b.changed
		b.waitLocked(suspect, 1)
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		case <-stop:
		}
		b.mu.Lock()
		b.waitLocked(suspect, -1)
	}
	b.active++
	p := permit{epoch: b.epoch, sequence: sequence}
	b.mu.Unlock()
	return p, nil
}

// waitLocked counts one more or one fewer that waits for a permit.
func (b *breaker) waitLocked(suspect bool, n int) {
	b.waiting += n
	if suspect {
		b.blame.waiting += n
	}
}

func (b *breaker) permitsLocked(suspect bool) bool {
	switch b.state {
	case breakerClosed:
		return true
	case breakerTrial:
		return b.active == 0 && (!suspect || b.suspectsTurn)
	case breakerRamp:
		return b.active < b.limit
	}
	return false
}

// report gives a permit back and tells what the store answered, as the cause of the result. It returns the result, with
// another cause when the failure is known to be the message's own.
func (b *breaker) report(p permit, r Result) Result {
	b.mu.Lock()
	var change breakerChange
	b.heard = time.Now()
	if r.Cause == CauseCommitted || r.Cause == CauseConflict || r.Cause == CauseUnstorable || r.Cause == CauseStateMoved {
		b.blame.cleared(p.sequence)
	}
	if r.Judgement == Created || r.Judgement == Own {
		b.blame.taken()
	}
	r = b.refusedLocked(p, r)
	if p.epoch == b.epoch {
		b.active--
		change = b.countLocked(p, r)
		if b.state != breakerClosed {
			b.broadcastLocked()
		}
		r = b.ownLocked(p, r)
	}
	b.mu.Unlock()
	b.tell(change)
	return r
}

// refusedLocked blames the store for a refusal, until it is known to be the message's own.
func (b *breaker) refusedLocked(p permit, r Result) Result {
	if r.Cause != CauseUncertain || !r.refused || b.blame.refusal(p.sequence) {
		return r
	}
	r.Cause, r.Reason = CauseUnavailable, ""
	r.Err = fmt.Errorf("the store refuses the write of this message while it answers probes, and has taken no other since: %w", r.Err)
	return r
}

// ownLocked turns a failure that is blamed on the store into one of the message's own, when that is known.
func (b *breaker) ownLocked(p permit, r Result) Result {
	unavailable := r.Cause == CauseUnavailable || r.Cause == CauseMisconfigured
	if !unavailable || !b.blame.own(p.sequence, b.heard) {
		return r
	}
	r.Cause, r.Reason, r.RetryAfter = CauseUncertain, reason.NeverStorable, 0
	r.Detail = "The store commits other messages, and has refused this one for a long time with an answer that does not say why: " + r.Err.Error()
	return r
}

func (b *breaker) countLocked(p permit, r Result) breakerChange {
	switch r.Cause {
	case CauseUnavailable, CauseMisconfigured:
		calm := b.state == breakerClosed || b.state == breakerTrial && !b.incidentLocked()
		if b.blame.failed(p.sequence, b.state == breakerTrial && !calm, b.heard) && b.state != breakerTrial {
			return breakerChange{} // others are committed meanwhile
		}
		b.failures++
		fatal := r.Cause == CauseMisconfigured
		if fatal || !calm || b.failures >= b.config.Failures {
			return b.openLocked(r.Err, fatal, r.RetryAfter)
		}
		b.cause = r.Err
	case CauseCommitted, CauseConflict, CauseUnstorable, CauseStateMoved:
		b.failures = 0
		return b.provedLocked()
	}
	return breakerChange{}
}

// provedLocked records an answer of a store that works.
func (b *breaker) provedLocked() breakerChange {
	b.proven, b.unwritten = true, 0
	switch b.state {
	case breakerTrial:
		return b.rampLocked()
	case breakerRamp:
		if b.limit++; b.limit >= b.capacity {
			b.closeLocked()
		}
	}
	return breakerChange{}
}

func (b *breaker) closeLocked() {
	b.state, b.probes, b.cause = breakerClosed, 0, nil
	b.broadcastLocked()
}

// withoutStore tells that a message is through without the store having been asked, which proves nothing of it.
func (b *breaker) withoutStore() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.proven && b.unwritten < b.capacity-1 {
		b.unwritten++
	}
}

func (b *breaker) rampLocked() breakerChange {
	change := b.overLocked()
	b.state, b.limit = breakerRamp, 1
	b.broadcastLocked()
	return change
}

// incidentLocked reports whether the breaker opened and has not been told to be closed since.
func (b *breaker) incidentLocked() bool { return !b.since.IsZero() }

// overLocked ends the incident.
func (b *breaker) overLocked() breakerChange {
	if !b.incidentLocked() {
		return breakerChange{}
	}
	change := breakerChange{closed: true, misconfigured: b.fatal, cause: b.cause, lasted: time.Since(b.since)}
	b.since, b.fatal = time.Time{}, false
	return change
}

// openLocked opens the breaker, or keeps it open with another cause.
func (b *breaker) openLocked(cause error, fatal bool, after time.Duration) breakerChange {
	fresh := !b.incidentLocked()
	if b.state == breakerClosed || b.state == breakerStarting {
		b.probes = 0
	}
	b.cause = cause
	b.state, b.failures, b.active = breakerOpen, 0, 0
	b.epoch++
	if after > 0 {
		b.hint = time.Now().Add(min(after, maxHint))
	}
	worse := fatal && !b.fatal
	b.fatal = fatal
	if fresh {
		b.since = time.Now()
	}
	b.broadcastLocked()
	if !fresh && !worse {
		return breakerChange{}
	}
	return breakerChange{opened: true, misconfigured: fatal, cause: cause}
}

// maxHint bounds the wait that a store may ask for.
const maxHint = 5 * time.Minute

// probeWait returns how long to wait before the store is asked again, and counts the probe.
func (b *breaker) probeWait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := time.Duration(0)
	if b.state != breakerStarting {
		wait = b.config.backoff().Wait(b.probes)
		b.probes++
	}
	return max(wait, time.Until(b.hint))
}

// probed tells what the store said of itself.
func (b *breaker) probed(r Result) {
	b.mu.Lock()
	var change breakerChange
	b.heard = time.Now()
	switch {
	case b.state != breakerOpen && b.state != breakerStarting:
	case r.Cause != 0:
		change = b.openLocked(r.Err, r.Cause == CauseMisconfigured, r.RetryAfter)
	default:
		if b.state == breakerStarting { // its first commit proves the store, but it is ready for it
			change = breakerChange{closed: true}
		}
		b.state, b.suspectsTurn = breakerTrial, false
		b.broadcastLocked()
	}
	b.mu.Unlock()
	b.tell(change)
}

// heardSince reports whether a commit or a probe has told of the store since t.
func (b *breaker) heardSince(t time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard.After(t)
}

// checked tells what a store said that was asked out of turn, from begun on. What a commit told meanwhile counts for more.
func (b *breaker) checked(r Result, begun time.Time) {
	b.mu.Lock()
	var change breakerChange
	working := b.state == breakerClosed || b.state == breakerRamp || b.state == breakerTrial && !b.incidentLocked()
	switch {
	case working && r.Cause != 0 && !b.heard.After(begun):
		change = b.openLocked(r.Err, r.Cause == CauseMisconfigured, r.RetryAfter)
	case r.Cause == 0 && b.state == breakerRamp && b.active == 0:
		b.closeLocked() // nothing came for long enough to be asked
	}
	b.heard = time.Now()
	b.mu.Unlock()
	b.tell(change)
}

// trialWait is how long a trial waits for a message to try.
const trialWait = 10 * time.Second

// onTrial reports whether a commit is to prove that an incident is over.
func (b *breaker) onTrial() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == breakerTrial && b.incidentLocked()
}

// unproven ends a trial for which there was nothing to try: the store's own word must do then. When only suspects wait, it is
// their turn.
func (b *breaker) unproven(inProcess int) {
	b.mu.Lock()
	var change breakerChange
	switch {
	case b.state != breakerTrial || b.active > 0:
	case inProcess == 0 && !b.proven:
		change = b.overLocked() // ready, and the first commit is still to come
	case inProcess == 0:
		change = b.rampLocked()
	case b.waiting > 0 && b.waiting == b.blame.waiting && !b.suspectsTurn:
		b.suspectsTurn = true
		b.broadcastLocked()
	}
	b.mu.Unlock()
	b.tell(change)
}

// room returns how many more messages may be in process when inProcess are. Suspects take no room from others, up to twice
// the capacity.
func (b *breaker) room(inProcess int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := 2*b.capacity - inProcess
	switch b.state {
	case breakerClosed:
		return min(b.capacity+b.blame.present-inProcess, most)
	case breakerTrial:
		return min(1+b.unwritten+b.blame.waiting-inProcess, most)
	case breakerRamp:
		return min(min(b.limit, b.capacity)+b.blame.present-inProcess, most)
	}
	return 0
}

// entered and left tell that a delivery of a message is in process, and no longer is.
func (b *breaker) entered(sequence int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blame.enter(sequence)
}

func (b *breaker) left(sequence int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blame.leave(sequence)
}

// suspected reports whether a message is a suspect.
func (b *breaker) suspected(sequence int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blame.is(sequence)
}

// watch returns the state and a channel that is closed at the next change of it.
func (b *breaker) watch() (breakerState, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.changed
}

// broadcastLocked wakes everyone who waits for a change.
func (b *breaker) broadcastLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *breaker) tell(c breakerChange) {
	if c.opened || c.closed {
		b.notify(c)
	}
}

// held returns how many commits wait for a permit.
func (b *breaker) held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}
