package receiver

import (
	"fmt"
	"sync"
	"time"
)

const (
	// maxTransit bounds how long what is asked for at once may take to arrive, whatever the lock. Replies to renewals and
	// settlements wait behind it, and those calls have [OneTry].
	maxTransit = 2 * time.Second
	// minRate is the rate, in bytes a second, below which an old lock is taken for a clock that is ahead, not for a thin line.
	minRate = 4000
	// slowMemory is how long a line that was too thin for large messages is not tried again because small ones arrive fresh.
	slowMemory = time.Minute
	// relearnLock is how long a lock that was seen to be shorter than configured is remembered.
	relearnLock = 10 * time.Minute
	// maxArrivals bounds the arrivals that are remembered.
	maxArrivals = 64
)

// An intake limits how many messages are asked for at once, so that they arrive with time left on their locks. The broker locks
// all of them when they are asked for, and they arrive one after the other: with n messages of a size over a bandwidth, the last
// lock is n*size/bandwidth old on arrival. An old lock lowers the limit to what fits at once; locks that all arrive fresh double
// it until it is lifted. It does no I/O, and is safe for concurrent use.
type intake struct {
	lock time.Duration
	most int // the number of slots

	mu       sync.Mutex
	limit    int // 0 while nothing is limited
	arrivals []arrival
	// full is how much of a lock a message has at most when it is sent. It is less than configured when the lock of the queue
	// is shorter, or our clock is ahead.
	full    time.Duration
	learned time.Time
	// slow is when a lock last arrived old, and slowSize what the messages were like then, in bytes.
	slow     time.Time
	slowSize int
	// inTime counts messages that arrived fresh since the limit changed.
	inTime int
	// alone tells that one message by itself fills the line.
	alone   bool
	last    time.Time // when messages last arrived
	lowered time.Time
	told    bool
}

// An arrival is what one receive call brought.
type arrival struct {
	at          time.Time
	count, size int // messages, and their bytes together
}

// A batch is what a receive call brought, and what is still to come.
type batch struct {
	arrival
	left  time.Duration // of the lock that is nearest to its end, by the broker's clock
	asked time.Time     // when it was asked for at the earliest
	out   int           // messages asked for that have not come
}

// A thinness says what a batch showed of the line.
type thinness struct {
	// withdraw tells that some of what is still to come would arrive with a dead lock, or nearly so.
	withdraw bool
	// news tells that an incident begins; the rest describes it.
	news  bool
	left  time.Duration
	lock  time.Duration
	size  int     // of one message, in bytes
	rate  float64 // bytes a second
	limit int
}

func newIntake(lock time.Duration, most int) *intake {
	return &intake{lock: lock, most: most, full: lock}
}

// arrived counts a batch.
func (i *intake) arrived(b batch) thinness {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.learnLocked(b)
	i.last = b.at
	i.arrivals = append(i.arrivals, b.arrival)
	if len(i.arrivals) > maxArrivals {
		i.arrivals = i.arrivals[1:]
	}
	age := max(i.full-b.left, 0)
	size, rate := i.rateLocked(b.at, age)
	fresh := min(i.full/8, maxTransit/2)
	i.alone = false
	switch {
	case age > min(i.full/4, maxTransit) && rate >= minRate:
		return i.oldLocked(b, age, size, rate)
	case age <= fresh && i.limit > 0 && (b.size >= i.slowSize/2 || b.at.Sub(i.slow) > slowMemory):
		// The first of those that were asked for together is always fresh; all of them must be.
		if i.inTime += b.count; i.inTime >= 2*i.limit-1 {
			i.raiseLocked()
		}
	}
	return thinness{}
}

// learnLocked lowers full to what is possible: a message was not sent before it was asked for.
func (i *intake) learnLocked(b batch) {
	if b.at.Sub(i.learned) > relearnLock {
		i.full, i.learned = i.lock, b.at
	}
	if possible := b.left + b.at.Sub(b.asked); possible < i.full {
		i.full, i.learned = max(possible, time.Second), b.at
	}
}

// rateLocked returns the mean size of the messages that arrived while a lock became that old, in bytes, and their bytes a second.
func (i *intake) rateLocked(now time.Time, age time.Duration) (size int, rate float64) {
	count, total, since := 0, 0, now.Add(-age)
	for n := len(i.arrivals) - 1; n >= 0 && (i.arrivals[n].at.After(since) || count == 0); n-- {
		count, total = count+i.arrivals[n].count, total+i.arrivals[n].size
	}
	return total / max(count, 1), float64(total) / max(age, time.Millisecond).Seconds()
}

// oldLocked lowers the limit to what arrives in time.
func (i *intake) oldLocked(b batch, age time.Duration, size int, rate float64) thinness {
	fits := int(rate * min(i.full/8, maxTransit/2).Seconds() / float64(max(size, 1)))
	now := i.limit
	if now == 0 {
		now = i.most
	}
	i.alone = b.count+b.out <= 1
	i.limit, i.inTime, i.slow, i.slowSize, i.lowered = max(min(fits, now/2), 1), 0, b.at, size, b.at
	last := age + time.Duration(float64(b.out*size)/rate*float64(time.Second))
	t := thinness{
		withdraw: b.out > 0 && last > i.full*3/4, news: !i.told,
		left: b.left, lock: i.lock, size: size, rate: rate, limit: i.limit,
	}
	i.told = true
	return t
}

func (i *intake) raiseLocked() {
	i.inTime = 0
	if i.limit *= 2; i.limit >= i.most {
		i.limit, i.told = 0, false
	}
}

// lost counts a lock that was lost before its first renewal, of a message that was received at that time: it was dead on arrival,
// and our clock is behind. It halves the limit once for what was asked for together.
func (i *intake) lost(received, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if received.Before(i.lowered) {
		return
	}
	if i.limit == 0 {
		i.limit = i.most
	}
	i.limit, i.inTime, i.lowered, i.slow = max(i.limit/2, 1), 0, now, now
}

// room bounds how many of n messages may be asked for when inFlight are in process. While one message by itself fills the line, the
// next is not asked for before that one is settled, or has been in process for half a lock: its renewals would wait behind the
// next message. Wait is how long to wait then.
func (i *intake) room(n, inFlight int, now time.Time) (most int, wait time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.limit == 0 {
		return n, 0
	}
	if wait := i.last.Add(i.full / 2).Sub(now); i.alone && inFlight > 0 && wait > 0 {
		return 0, wait
	}
	return min(n, i.limit), 0
}

// thin reports whether the line is known to be thin, so that nothing large is to be asked for that is not needed.
func (i *intake) thin() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.limit > 0
}

func (t thinness) String() string {
	return fmt.Sprintf("a lock of %v arrives with %v left: messages of %d bytes come at %.0f bytes a second. %d are asked for at once. "+
		"Use a longer lock duration, a lower concurrency, smaller messages or a wider line", t.lock, t.left.Round(time.Millisecond), t.size, t.rate, t.limit)
}
