package worker

import (
	"sync"
	"time"

	"github.com/orderworker/orderworker/worker/internal/receiver"
)

// A lock is the lock of one delivery, as this process may rely on it: by elapsed monotonic time since the call that got
// or renewed it, never by the broker's clock alone. It is safe for concurrent use.
type lock struct {
	token    [16]byte
	duration time.Duration

	mu    sync.Mutex
	until time.Time     // by the monotonic clock
	span  time.Duration // how long the lock lasts when renewed, as far as is known
	gone  bool          // the broker said so
	again bool          // it was renewed
}

// shortestLock is the shortest lock duration that Service Bus can be configured with.
const shortestLock = 5 * time.Second

// newLock returns the lock of a message received now. The broker's word is believed when it says that less remains than
// the configured duration: the message may have waited in a buffer on the way, or the queue may have a shorter lock. A
// clock that is ahead makes it seem so too; that costs one renewal for each message and nothing else.
func newLock(token [16]byte, duration time.Duration, lockedUntil *time.Time) *lock {
	now, left := time.Now(), duration
	if lockedUntil != nil {
		left = min(left, max(receiver.WallUntil(*lockedUntil, now), 0))
	}
	return &lock{token: token, duration: duration, until: now.Add(left), span: max(left, min(duration, shortestLock))}
}

// left returns how much longer the lock lasts, 0 when it has ended.
func (l *lock) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return 0
	}
	return max(time.Until(l.until), 0)
}

// renewed records a renewal that was asked for at start. Of what the broker states only a shorter lock is believed,
// and none that is shorter than a lock can be: it has just been renewed, and a clock that is ahead must not make it
// renewed without end.
func (l *lock) renewed(start time.Time, lockedUntil *time.Time) {
	span := l.duration
	if lockedUntil != nil {
		span = min(span, max(receiver.WallUntil(*lockedUntil, start), shortestLock))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.span, l.again = span, true
	if until := start.Add(span); until.After(l.until) {
		l.until = until
	}
}

// untilRenewal returns how long to wait before the lock is renewed: until half of it has passed.
func (l *lock) untilRenewal() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Until(l.until)-l.span/2, 0)
}

// covers reports whether the lock lasts long enough to start a call of at most d. Renewal goes on during the call, so
// half of a short lock is enough.
func (l *lock) covers(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.gone && time.Until(l.until) >= min(d, l.span/2)
}

// fresh reports whether enough of the lock is left to begin work without asking the broker first.
func (l *lock) fresh() bool { return l.left() >= min(l.duration/4, shortestLock) }

// wasRenewed reports whether the lock was ever renewed.
func (l *lock) wasRenewed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again
}

// lose records that the broker no longer knows the lock.
func (l *lock) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
}
