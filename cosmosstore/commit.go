package cosmosstore

import (
	"context"
	"errors"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker"
)

// maxTries bounds the writes of one commit. With full jitter the pauses between them take less than a second on average.
const maxTries = 6

// conflictPause is the pause before a create is tried again that was refused by a document which cannot be found. One that has
// expired may be gone by then.
const conflictPause = 400 * time.Millisecond

// Commit creates every document of c, or none, as [worker.Store] demands. One document is one create; several are one
// transactional batch whose first operation creates the inbox record. A write whose outcome is unknown is repeated as it is, with
// its nonce, so that its own document is recognised.
func (s *Store) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	ctx, t := withStats(ctx)
	o, err := s.commit(ctx, t, c)
	o.Calls, o.Charge = t.sum()
	return o, err
}

func (s *Store) commit(ctx context.Context, t *requestStats, c worker.Commit) (worker.Outcome, error) {
	sess, err := s.writable(ctx)
	if err != nil {
		return worker.Outcome{}, err
	}
	if err := s.checkRegions(); err != nil {
		return worker.Outcome{}, err
	}
	s.checkLifetime(ctx, c.Documents)
	k := &committer{store: s, sess: sess, stats: t, documentID: c.DocumentID, commit: c, compose: layout.compose}
	return k.run(ctx)
}

// committer carries one commit from write to write. It belongs to one goroutine.
type committer struct {
	store      *Store
	sess       *session
	stats      *requestStats
	plan       plan
	documentID string
	commit     worker.Commit
	// compose makes the plan of the commit.
	compose func(layout, worker.Commit, time.Time) (plan, error)
	// claims tells that the commit is to be claimed and not to be made.
	claims    bool
	last      written
	conflicts int
}

// run makes the plan and writes it, and again as long as that may help.
func (k *committer) run(ctx context.Context) (worker.Outcome, error) {
	if err := k.makePlan(); err != nil {
		return worker.Outcome{}, err
	}
	for try := 1; try <= maxTries; try++ {
		if try > 1 && !backoff.Sleep(ctx, k.pauseAfter(try-1)) {
			break
		}
		if stale, err := k.resolveVersion(ctx); err != nil {
			return worker.Outcome{}, err
		} else if stale {
			return k.commitStale(ctx)
		}
		k.last = k.store.write(ctx, k.sess, k.plan)
		if o, end, err := k.step(ctx); end {
			return o, err
		}
		if k.last.over {
			break
		}
	}
	return worker.Outcome{}, k.giveUp(ctx)
}

func (k *committer) makePlan() (err error) {
	k.plan, err = k.compose(k.sess.layout, k.commit, time.Now())
	if m, ok := errors.AsType[*worker.MisconfiguredError](err); ok {
		k.sess.unfit.Store(m)
	}
	return err
}

// pauseAfter is the pause after a write that is worth another try.
func (k *committer) pauseAfter(try int) time.Duration {
	if k.last.class == exists && k.last.op != opBatchChange {
		return conflictPause
	}
	return writeBackoff().Wait(try - 1)
}

// step acts on the last write. End tells that the commit is over; otherwise the write is worth another try.
func (k *committer) step(ctx context.Context) (o worker.Outcome, end bool, err error) {
	w := k.last
	if w.op.inBatch() {
		k.stats.known() // the batch was rolled back, and its reply says so
	}
	if w.ofChange() {
		return k.handleChange(ctx)
	}
	switch w.class {
	case done:
		return k.done(), true, nil
	case exists:
		o, err = k.handleConflict(ctx)
		return o, ends(o) || err != nil, err
	case ambiguous, contended:
		return worker.Outcome{}, false, nil
	}
	if w.class != unavailable {
		k.store.report(ctx, w.op, w.answer, k.documentID)
	}
	blamesMessage := w.class == refused || w.class == tooLarge || w.class == partitionFull
	if w.class == unexpected || k.stats.ambiguous() && blamesMessage {
		// The answer says nothing, or an earlier one was lost: the documents may be there.
		if o, err := k.readBack(ctx); ends(o) || err != nil || w.class == unexpected {
			return o, ends(o) || err != nil, err
		}
	}
	return worker.Outcome{}, true, k.fail(ctx)
}

// ends reports whether an outcome is one.
func ends(o worker.Outcome) bool { return o.Existing != nil || o.Blocking != "" || o.Claim != nil }

// readBack looks whether the record exists. Finding nothing is no error.
func (k *committer) readBack(ctx context.Context) (worker.Outcome, error) {
	r, err := k.lookup().record(ctx, k.plan.recordIDs())
	if err != nil {
		return worker.Outcome{}, err
	}
	o, _, err := k.resolveClaim(r)
	return o, err
}

// lookup reads what belongs to the message of the commit, as new as the last reply.
func (k *committer) lookup() lookup {
	return lookup{store: k.store, sess: k.sess, partition: k.plan.partition, documentID: k.documentID,
		token: k.last.session, ambiguous: k.stats.ambiguous()}
}
