package worker

import (
	"sync"
	"time"
)

// A lock is the lock of one delivery, as this process may rely on it: by elapsed monotonic time since the call that got
// or renewed it, never by the broker's clock alone. It is safe for concurrent use.
type lock struct {
	token    [16]byte
	duration time.Duration

	mu    sync.Mutex
	until time.Time // by the monotonic clock
	gone  bool      // the broker said so
}

// newLock returns the lock of a message received now. The broker's word is believed when it says that less remains than
// the configured duration: the message may have waited in a buffer on the way, or the queue may have a shorter lock. A
// clock that is ahead makes it seem so too; that costs one renewal for each message and nothing else.
func newLock(token [16]byte, duration time.Duration, lockedUntil *time.Time) *lock {
	now := time.Now()
	l := &lock{token: token, duration: duration, until: now.Add(duration)}
	if lockedUntil != nil {
		if left := wallUntil(*lockedUntil, now); left < duration {
			l.until = now.Add(max(left, 0))
		}
	}
	return l
}

// wallUntil is the time from now to the broker's t. Now has a monotonic reading that t lacks, so it is by the wall clock.
func wallUntil(t, now time.Time) time.Duration { return t.Sub(now.Round(0)) }

// left returns how much longer the lock lasts, 0 when it has ended.
func (l *lock) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return 0
	}
	return max(time.Until(l.until), 0)
}

// renewed takes note of a renewal that was asked for at start. Of what the broker states only a shorter lock is believed,
// and at most down to a quarter, for it has just been renewed and a wrong clock must not make it renewed without end.
func (l *lock) renewed(start time.Time, lockedUntil *time.Time) {
	d := l.duration
	if lockedUntil != nil {
		d = min(d, max(wallUntil(*lockedUntil, start), d/4))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := start.Add(d); until.After(l.until) {
		l.until = until
	}
}

// lose takes note that the broker no longer knows the lock.
func (l *lock) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
}
