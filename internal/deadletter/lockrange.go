package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The sizes of a sweep.
const (
	// Between fewest and most letters are asked for at a time: the more, the longer none is met that is wanted.
	fewestLocks = 25
	mostLocks   = 400
	// renewBatch locks are renewed or given back in one call.
	renewBatch = 100
	// idleWait is how long the broker may take to hand out another letter before it is taken to have none.
	idleWait = 2 * time.Second
	// releaseTime bounds the giving back at the end, also after the caller has given up.
	releaseTime = 30 * time.Second
)

// DefaultLockLimit is how many letters a sweep keeps locked that it was not sent for. Each costs some hundred bytes here,
// and a renewal every half lock.
const DefaultLockLimit = 50_000

// ErrSweepLimit is returned when more letters lie in front than a sweep may keep locked.
var ErrSweepLimit = errors.New("deadletter: too many other dead letters lie in front")

// A LockRange locks chosen letters, although the broker hands out only those at the front. It is used by one goroutine, except
// that letters may be completed by many.
type LockRange struct {
	broker Broker
	lock   time.Duration
	limit  int
	// met are wanted letters that Next has not returned yet. It belongs to the goroutine that calls Next.
	met []*DeadLetter
	// batch is how many letters are asked for next. It belongs to the same goroutine.
	batch int

	mu sync.Mutex
	// locks has every letter that is locked here, by sequence number; wanted those that are still to be met. Both are
	// guarded by mu.
	locks  map[int64]held
	wanted map[int64]bool
	others int

	renewing sync.WaitGroup
	stop     context.CancelFunc
}

type held struct {
	token LockToken
	until time.Time // by the clock here: when the lock may end if it is not renewed
}

// NewLockRange starts a sweep for the letters with these sequence numbers. Keep at most limit others locked; zero means
// DefaultLockLimit. End must be called.
func (r *Reviewer) NewLockRange(ctx context.Context, sequences []int64, limit int) *LockRange {
	if limit <= 0 {
		limit = DefaultLockLimit
	}
	s := &LockRange{
		broker: r.broker, lock: r.settings.lock(), limit: limit, batch: fewestLocks,
		locks: map[int64]held{}, wanted: make(map[int64]bool, len(sequences)),
	}
	for _, n := range sequences {
		s.wanted[n] = true
	}
	// The renewer outlives ctx: what is locked stays locked until End gives it back.
	renewCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.renewing.Go(func() { s.renew(renewCtx) })
	return s
}

// Next locks on until it has met up to most wanted letters, and returns them. It returns fewer when the broker has no more
// to give now: what is still wanted then is gone, or locked by somebody else. See [LockRange.Missing]. Letters that came along
// wait for the next call.
func (s *LockRange) Next(ctx context.Context, most int) ([]*DeadLetter, error) {
	var failed error
	for len(s.met) < most && s.left() > 0 && failed == nil {
		if failed = ctx.Err(); failed != nil {
			break
		}
		letters, err := s.broker.Lock(ctx, min(max(most-len(s.met), s.batch), mostLocks), idleWait)
		if failed = err; len(letters) == 0 {
			break
		}
		met := len(s.met)
		s.meet(letters, time.Now())
		s.batch = min(2*s.batch, mostLocks)
		if len(s.met) > met {
			s.batch = fewestLocks
		}
		if n := s.kept(); n > s.limit {
			failed = fmt.Errorf("%w: %d are locked already and the limit is %d. Raise the limit, or deal with those in front first", ErrSweepLimit, n, s.limit)
		}
	}
	n := min(most, len(s.met))
	found := slices.Clone(s.met[:n])
	s.met = slices.Delete(s.met, 0, n)
	return found, failed
}

// meet notes the locks of letters, and puts those that were wanted by.
func (s *LockRange) meet(letters []*DeadLetter, received time.Time) {
	for _, l := range letters {
		if s.take(l, received) {
			s.met = append(s.met, l)
		}
	}
}

// take notes a lock, and reports whether the letter was wanted.
func (s *LockRange) take(l *DeadLetter, received time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, again := s.locks[l.Sequence]
	s.locks[l.Sequence] = held{token: l.Lock, until: received.Add(s.lock)}
	if !s.wanted[l.Sequence] {
		if !again {
			s.others++
		}
		return false
	}
	delete(s.wanted, l.Sequence)
	return true
}

// Left returns how many wanted letters Next has not returned yet.
func (s *LockRange) Left() int { return len(s.met) + s.left() }

// left returns how many wanted letters were not met yet.
func (s *LockRange) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wanted)
}

func (s *LockRange) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.others
}

// Missing returns the wanted letters that were not met, in order.
func (s *LockRange) Missing() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int64, 0, len(s.wanted))
	for n := range s.wanted {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Forget stops looking for a letter.
func (s *LockRange) Forget(sequence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, sequence)
}

// Complete removes a letter that was met. See [Broker.Complete].
func (s *LockRange) Complete(ctx context.Context, l *DeadLetter) error {
	s.mu.Lock()
	h, ok := s.locks[l.Sequence]
	s.mu.Unlock()
	if !ok {
		return ErrLockLost
	}
	// The newest token: the letter may have been lost and met again.
	err := s.broker.Complete(ctx, h.token)
	if err == nil {
		s.drop(l.Sequence)
	}
	return err
}

func (s *LockRange) drop(sequence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locks, sequence)
}

// renew extends every lock half way through its life, until the context ends.
func (s *LockRange) renew(ctx context.Context) {
	for {
		timer := time.NewTimer(s.lock / 4)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		for _, batch := range s.due(time.Now()) {
			s.extend(ctx, batch)
		}
	}
}

type due struct {
	sequence int64
	token    LockToken
}

// due returns the locks that have less than half their life left, in batches.
func (s *LockRange) due(now time.Time) [][]due {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batches [][]due
	for n, h := range s.locks {
		if h.until.Sub(now) > s.lock/2 {
			continue
		}
		if len(batches) == 0 || len(batches[len(batches)-1]) == renewBatch {
			batches = append(batches, make([]due, 0, renewBatch))
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], due{n, h.token})
	}
	return batches
}

// extend renews a batch. When one lock of it is lost the broker may refuse all of them, so each is tried alone. A failure
// for another cause is tried again at the next round, which comes before the locks end.
func (s *LockRange) extend(ctx context.Context, batch []due) {
	ctx, cancel := context.WithTimeout(ctx, s.lock/4)
	defer cancel()
	started := time.Now()
	err := s.broker.Renew(ctx, tokens(batch))
	switch {
	case err == nil:
		s.extended(batch, started.Add(s.lock))
	case errors.Is(err, ErrLockLost) && len(batch) > 1:
		for i := range batch {
			s.extend(ctx, batch[i:i+1])
		}
	case errors.Is(err, ErrLockLost):
		// The letter comes again, and is met again.
		s.lose(batch[0])
	}
}

func tokens(batch []due) []LockToken {
	out := make([]LockToken, len(batch))
	for i, d := range batch {
		out[i] = d.token
	}
	return out
}

func (s *LockRange) extended(batch []due, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range batch {
		if h, ok := s.locks[d.sequence]; ok && h.token == d.token {
			s.locks[d.sequence] = held{token: d.token, until: until}
		}
	}
}

func (s *LockRange) lose(d due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.locks[d.sequence]; ok && h.token == d.token {
		delete(s.locks, d.sequence)
	}
}

// End gives back every letter that is still locked, also when ctx has ended, and waits for the renewals. What cannot be
// given back comes free when its lock ends.
func (s *LockRange) End(ctx context.Context) error {
	s.stop()
	s.renewing.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	// First no new letters, or those given back would come in again.
	errs := []error{s.broker.Unlock(ctx)}
	s.mu.Lock()
	all := make([]LockToken, 0, len(s.locks))
	for _, h := range s.locks {
		all = append(all, h.token)
	}
	clear(s.locks)
	s.mu.Unlock()
	for batch := range slices.Chunk(all, renewBatch) {
		errs = append(errs, s.release(ctx, batch))
	}
	return errors.Join(errs...)
}

// release gives a batch back. When one lock of it is lost the broker may refuse all of them, so each is tried alone.
func (s *LockRange) release(ctx context.Context, batch []LockToken) error {
	err := s.broker.Release(ctx, batch)
	switch {
	case !errors.Is(err, ErrLockLost):
		return err
	case len(batch) == 1:
		return nil
	}
	var errs []error
	for i := range batch {
		errs = append(errs, s.release(ctx, batch[i:i+1]))
	}
	return errors.Join(errs...)
}
