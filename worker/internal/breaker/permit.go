package breaker

import (
	"context"
	"errors"
	"time"
)

// ErrNoPermit is returned when a commit may not start and must not wait any longer.
var ErrNoPermit = errors.New("worker: the store cannot be used, and the message is not held any longer")

// A Permit allows one commit of a message. It must be returned by [Breaker.Report].
type Permit struct {
	epoch   int
	message int64
}

// TryAcquire returns a permit for the commit of a message if it may start at once.
func (b *Breaker) TryAcquire(message int64) (Permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.permitsLocked(b.blame.is(message)) {
		return Permit{}, false
	}
	return b.grantLocked(message), true
}

// Acquire waits until the commit of a message may start. It returns [ErrNoPermit] when ctx ends or stop is closed before.
func (b *Breaker) Acquire(ctx context.Context, stop <-chan struct{}, message int64) (Permit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	suspect := b.blame.is(message)
	if suspect && b.state == Trial {
		b.broadcastLocked() // it is about to wait, which makes room for another message to be tried first
	}
	for !b.permitsLocked(suspect) {
		if !b.waitLocked(ctx, stop, suspect) {
			return Permit{}, ErrNoPermit
		}
	}
	return b.grantLocked(message), nil
}

// waitLocked waits for a change, without the lock, and reports false when there is none to wait for any more.
func (b *Breaker) waitLocked(ctx context.Context, stop <-chan struct{}, suspect bool) bool {
	select {
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	default:
	}
	changed := b.changed
	b.countWaitingLocked(suspect, 1)
	b.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	case <-stop:
	}
	b.mu.Lock()
	b.countWaitingLocked(suspect, -1)
	return true
}

func (b *Breaker) countWaitingLocked(suspect bool, n int) {
	b.waiting += n
	if suspect {
		b.blame.waiting += n
	}
}

func (b *Breaker) grantLocked(message int64) Permit {
	b.active++
	return Permit{epoch: b.epoch, message: message}
}

func (b *Breaker) permitsLocked(suspect bool) bool {
	switch b.state {
	case Closed:
		return true
	case Trial:
		return b.active == 0 && (!suspect || b.suspectsTurn)
	case Ramp:
		return b.active < b.limit
	}
	return false
}

// Report gives a permit back, tells what the store answered, and returns who is to blame when a write failed.
func (b *Breaker) Report(p Permit, r Report) Blame {
	b.mu.Lock()
	b.heard = time.Now()
	switch r.Answer {
	case Answered, Wrote:
		b.blame.cleared(p.message, r.Answer == Wrote)
	case Refused:
		if !b.blame.ownRefusal(p.message) {
			r.Answer = Unavailable
		}
	}
	var change Change
	if p.epoch == b.epoch {
		b.active--
		change = b.countLocked(p, r)
		if b.state != Closed {
			b.broadcastLocked()
		}
	}
	blamed := b.blamedLocked(p, r)
	b.mu.Unlock()
	b.notify(change)
	return blamed
}

func (b *Breaker) blamedLocked(p Permit, r Report) Blame {
	switch {
	case r.Answer == Refused:
		return Message
	case !r.failed():
		return Nobody
	case b.blame.own(p.message, b.heard):
		return Message
	}
	return Store
}
