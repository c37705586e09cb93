package cosmosstore

import (
	"context"
	"reflect"
	"time"
)

// containerMaxAge is how old the store's knowledge of its container may be, and renewPause how long it waits before it reads
// the container once more after that has failed.
const (
	containerMaxAge = 5 * time.Minute
	renewPause      = time.Minute
)

// renewal is the reading of the container for a store that is in use without a pause, so that nobody asks whether it is ready.
type renewal struct {
	cancel context.CancelFunc // nil when none is going on
	after  time.Time          // none begins before, since the last one failed
}

// writable is the session for a write. It has the container read again, beside the write, when the session is getting old:
// a time to live that somebody switched on would take away the orders that are made meanwhile.
func (s *Store) writable(ctx context.Context) (*session, error) {
	sess, err := s.session(ctx)
	if err == nil && time.Since(sess.readAt) > containerMaxAge {
		s.renewBeside(ctx, sess)
	}
	return sess, err
}

// renewBeside begins to renew a session in a goroutine of its own, unless that is going on. A failure changes nothing, except
// when the container does not fit any more: then the next call fails.
func (s *Store) renewBeside(ctx context.Context, old *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.current != old || s.renewal.cancel != nil || time.Now().Before(s.renewal.after) {
		return
	}
	ctx, cancel := context.WithTimeout(withoutCall(ctx), s.opts.ConnectTimeout)
	s.renewal.cancel = cancel
	s.openers.Go(func() {
		defer cancel()
		_, err := s.renew(ctx, old)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.renewal.cancel = nil
		if err != nil {
			s.renewal.after = time.Now().Add(renewPause)
		}
	})
}

// renew reads the container again for a session that is getting old. The client stays.
func (s *Store) renew(ctx context.Context, old *session) (*session, error) {
	l, err := s.readLayout(ctx, old)
	if err != nil {
		if incurable(err) {
			s.forget(old)
		}
		return nil, err
	}
	sess := &session{client: old.client, container: old.container, layout: l, readAt: time.Now()}
	if reflect.DeepEqual(l, old.layout) {
		sess.unfit.Store(old.unfit.Load())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == old {
		s.current = sess
	}
	return sess, nil
}
