package worker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// stateReader reads documents of a message's partition for its handler, and counts what that takes. It is safe for
// concurrent use.
type stateReader struct {
	store     Store
	partition string
	timeout   time.Duration

	mu     sync.Mutex
	reads  int
	calls  int
	charge float64
}

// Read implements [admission.StateReader].
func (s *stateReader) Read(ctx context.Context, id string) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	state, err := s.store.Read(ctx, s.partition, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	s.calls += state.Calls
	s.charge += state.Charge
	return state, err
}

// account adds what was read to a result.
func (s *stateReader) account(r Result) Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.readState = r.readState || s.reads > 0
	r.Calls += s.calls
	r.Charge += s.charge
	return r
}

// isStoreError reports whether a handler returns what a read of the store told it.
func isStoreError(err error) bool {
	_, unavailable := errors.AsType[*UnavailableError](err)
	_, misconfigured := errors.AsType[*MisconfiguredError](err)
	return unavailable || misconfigured
}
