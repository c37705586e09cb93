package deadletter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
)

// The sizes of the work on locks.
const (
	// Between fewest and most messages are asked for at a time: the more, the longer none is met that is wanted.
	fewestLocks = 25
	mostLocks   = 400
	// renewBatch locks are renewed in one call.
	renewBatch = 100
	// idleWait is how long the broker may take to hand out another message before it is taken to have none.
	idleWait = 2 * time.Second
	// releaseTime bounds the releasing at the end, also after the caller has given up.
	releaseTime = 30 * time.Second
)

// DefaultLockLimit is how many messages are kept locked that were not asked for. Each costs some hundred bytes here, and a
// renewal every half lock.
const DefaultLockLimit = 50_000

// ErrLockLimit is returned when more messages lie in front than may be kept locked.
var ErrLockLimit = errors.New("deadletter: too many other dead letters lie in front")

// A lockRange locks chosen messages, although the broker hands out only those at the front. It is used by one goroutine, except
// that messages may be completed by many.
type lockRange struct {
	broker Broker
	lock   time.Duration
	limit  int
	// met are wanted messages that next has not returned yet. It belongs to the goroutine that calls next.
	met []int64
	// deferred are the wanted messages that somebody has deferred, and batch is how many others are asked for next. Both belong to
	// the same goroutine.
	deferred []int64
	batch    int

	mu sync.Mutex
	// locks has everything that is locked here, by sequence number, and what did not say its number below zero; wanted has those
	// that are still to be met. Both are guarded by mu.
	locks    map[int64]held
	wanted   map[int64]bool
	others   int
	nameless int64

	renewing sync.WaitGroup
	stop     context.CancelFunc
}

type held struct {
	token LockToken
	until time.Time // by the clock here: when the lock may end if it is not renewed
}

// lockRange starts to lock the messages with these sequence numbers; the value says whether each is deferred. It keeps at most limit
// others locked; zero means DefaultLockLimit. end must be called.
func (r *Reviewer) lockRange(ctx context.Context, wanted map[int64]bool, limit int) *lockRange {
	if limit <= 0 {
		limit = DefaultLockLimit
	}
	s := &lockRange{
		broker: r.broker, lock: r.settings.lock(), limit: limit, batch: fewestLocks,
		locks: map[int64]held{}, wanted: make(map[int64]bool, len(wanted)),
	}
	for n, deferred := range wanted {
		if s.wanted[n] = true; deferred {
			s.deferred = append(s.deferred, n)
		}
	}
	// The renewer outlives ctx: what is locked stays locked until end releases it.
	renewCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.renewing.Go(func() { s.renew(renewCtx) })
	return s
}

// next locks on until it has met up to most wanted messages, and returns their numbers. It returns fewer when the broker has no
// more to give now: what is still wanted then is gone, or locked by somebody else; see missing. Messages that came along wait
// for the next call.
func (s *lockRange) next(ctx context.Context, most int) ([]int64, error) {
	failed := s.lockDeferred(ctx, most)
	for len(s.met) < most && s.queued() > 0 && failed == nil {
		if failed = ctx.Err(); failed != nil {
			break
		}
		locked, err := s.broker.Lock(ctx, min(max(most-len(s.met), s.batch), mostLocks), idleWait)
		if failed = err; len(locked) == 0 {
			break
		}
		met := len(s.met)
		for _, l := range locked {
			s.take(l, time.Now())
		}
		s.batch = min(2*s.batch, mostLocks)
		if len(s.met) > met {
			s.batch = fewestLocks
		}
		if n := s.kept(); n > s.limit {
			failed = fmt.Errorf("%w: %d are locked already and the limit is %d. Raise the limit, or deal with those in front first", ErrLockLimit, n, s.limit)
		}
	}
	n := min(most, len(s.met))
	found := slices.Clone(s.met[:n])
	s.met = slices.Delete(s.met, 0, n)
	return found, failed
}

// lockDeferred locks wanted messages that somebody has deferred: the broker hands them out by their numbers, and in no other way.
// When it gives none and no others are wanted, it waits for a while.
func (s *lockRange) lockDeferred(ctx context.Context, most int) error {
	var left []int64
	for i, n := range s.deferred {
		if len(s.met) >= most {
			left = append(left, s.deferred[i:]...)
			break
		}
		l, err := s.broker.LockDeferred(ctx, n)
		switch {
		case errors.Is(err, ErrLockLost): // it is gone, or somebody else holds it
			left = append(left, n)
		case err != nil:
			return err
		default:
			s.take(l, time.Now())
		}
	}
	s.deferred = left
	if len(s.met) == 0 && len(left) > 0 && s.queued() == 0 {
		backoff.Sleep(ctx, idleWait)
	}
	return ctx.Err()
}

// take notes a lock.
func (s *lockRange) take(l LockedMessage, received time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := l.Sequence
	if n == 0 {
		s.nameless--
		n = s.nameless
	}
	_, again := s.locks[n]
	s.locks[n] = held{token: l.Lock, until: received.Add(s.lock)}
	if _, wanted := s.wanted[n]; wanted {
		delete(s.wanted, n)
		s.met = append(s.met, n)
	} else if !again {
		s.others++
	}
}

// open returns how many wanted messages next has not returned yet.
func (s *lockRange) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.met) + len(s.wanted)
}

// queued returns how many wanted messages were not met yet and are not deferred.
func (s *lockRange) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wanted) - len(s.deferred)
}

func (s *lockRange) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.others
}

// missing returns the wanted messages that were not met, in order.
func (s *lockRange) missing() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.wanted))
}

// forget stops looking for a message.
func (s *lockRange) forget(sequence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, sequence)
	s.deferred = slices.DeleteFunc(s.deferred, func(n int64) bool { return n == sequence })
}

// complete removes a message that was met. See [Broker.Complete].
func (s *lockRange) complete(ctx context.Context, sequence int64) error {
	s.mu.Lock()
	h, ok := s.locks[sequence]
	s.mu.Unlock()
	if !ok {
		return ErrLockLost
	}
	// The newest token: the lock may have been lost and the message met again.
	err := s.broker.Complete(ctx, h.token)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.locks, sequence)
	}
	return err
}

// renew extends every lock half way through its life, until the context ends.
func (s *lockRange) renew(ctx context.Context) {
	for backoff.Sleep(ctx, s.lock/4) {
		for batch := range slices.Chunk(s.due(time.Now()), renewBatch) {
			s.extend(ctx, batch)
		}
	}
}

type due struct {
	sequence int64
	token    LockToken
}

// due returns the locks that have less than half their life left.
func (s *lockRange) due(now time.Time) []due {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []due
	for n, h := range s.locks {
		if h.until.Sub(now) <= s.lock/2 {
			out = append(out, due{n, h.token})
		}
	}
	return out
}

// extend renews a batch. When one lock of it is lost the broker may refuse all of them, so each is tried alone; the message of a
// lost lock comes again, and is met again. A failure for another cause is tried again at the next round, which comes before the
// locks end.
func (s *lockRange) extend(ctx context.Context, batch []due) {
	ctx, cancel := context.WithTimeout(ctx, s.lock/4)
	defer cancel()
	tokens := make([]LockToken, len(batch))
	for i, d := range batch {
		tokens[i] = d.token
	}
	until := time.Now().Add(s.lock)
	err := s.broker.Renew(ctx, tokens)
	if errors.Is(err, ErrLockLost) && len(batch) > 1 {
		for i := range batch {
			s.extend(ctx, batch[i:i+1])
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range batch {
		switch h, kept := s.locks[d.sequence]; {
		case !kept || h.token != d.token: // it was completed meanwhile, or met again
		case err == nil:
			s.locks[d.sequence] = held{token: d.token, until: until}
		case errors.Is(err, ErrLockLost):
			delete(s.locks, d.sequence)
		}
	}
}

// end releases everything that is still locked, also when ctx has ended, and waits for the renewals. What cannot be released
// comes free when its lock ends.
func (s *lockRange) end(ctx context.Context) error {
	s.stop()
	s.renewing.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	// First no new messages, or those released would come in again.
	err := s.broker.Unlock(ctx)
	s.mu.Lock()
	all := make([]LockToken, 0, len(s.locks))
	for _, h := range s.locks {
		all = append(all, h.token)
	}
	clear(s.locks)
	s.mu.Unlock()
	return errors.Join(err, s.broker.Release(ctx, all))
}
