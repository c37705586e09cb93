package cosmosstore

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Open checks the options, reporting all faults at once, and tries to reach the container within ctx.
//
// It fails only for what no waiting can fix: wrong options, an account that takes writes in several regions, a container
// that does not fit. A store that cannot be reached yet, or may not be used yet, is returned nevertheless: it connects with
// the first call that succeeds, and [Store.Ready] tells. Call [Store.Close] at the end.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Store{opts: o, writes: writeHealth{doubted: opCreate}, requests: &requestPolicy{timeout: o.RequestTimeout}, log: o.Logger, sends: o.Transport}
	if o.Key != "" {
		key, err := azcosmos.NewKeyCredential(string(o.Key))
		if err != nil {
			return nil, fmt.Errorf("cosmosstore: %w", err)
		}
		s.key = key
	}
	s.warnRetention(ctx, o.inboxRecordWarnings())
	if s.sends == nil {
		s.http = newHTTPClient(o.RootCAs)
		s.sends = s.http
	}
	s.sends = replyBound{s.sends}
	if _, err := s.session(ctx); incurable(err) {
		_ = s.Close() // nothing is open
		return nil, err
	}
	return s, nil
}

// Ready reports whether the store can be used: with one read of a document that never exists, before the first write and after
// one that failed also with one write that is always refused, and now and then by reading whether account and container still
// fit.
func (s *Store) Ready(ctx context.Context) error {
	sess, err := s.session(ctx)
	if err != nil {
		return err
	}
	if sess.unfit.Load() != nil || time.Since(sess.readAt) > containerMaxAge {
		if sess, err = s.renew(ctx, sess); err != nil {
			return err
		}
	}
	if unfit := sess.unfit.Load(); unfit != nil {
		return unfit // as long as the container is the same
	}
	if err := s.probe(ctx, sess); err != nil {
		return err
	}
	if err := s.checkRegions(); err != nil {
		return err
	}
	if op := s.writes.inDoubt(); op != "" {
		return s.probeWrite(ctx, sess, op)
	}
	return nil
}
