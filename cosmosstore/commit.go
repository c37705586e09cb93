package cosmosstore

import (
	"context"
	"errors"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// maxTries bounds the writes of one commit. With full jitter the pauses between them take less than a second on average.
const maxTries = 6

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
	p, err := sess.layout.compose(c, time.Now())
	if m, ok := errors.AsType[*worker.MisconfiguredError](err); ok {
		sess.unfit.Store(m)
	}
	if err != nil {
		return worker.Outcome{}, err
	}
	if len(c.Documents) > 0 && s.opts.Lifetime.outlives(c.Documents[0].TTL) {
		s.shortLived.Do(func() { s.warnRetention(ctx, documentRetentionWarnings(s.opts, c.Documents[0])) })
	}
	k := &committer{store: s, sess: sess, stats: t, plan: p, documentID: c.DocumentID, commit: c}
	return k.run(ctx)
}

// run writes the plan, and again as long as that may help.
func (k *committer) run(ctx context.Context) (worker.Outcome, error) {
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

// pauseAfter is the pause after a write that is worth another try.
func (k *committer) pauseAfter(try int) time.Duration {
	if k.last.class == exists && k.last.op != opBatchChange {
		return conflictPause
	}
	return writeBackoff().Wait(try - 1)
}

// committer carries one commit from write to write. It belongs to one goroutine.
type committer struct {
	store      *Store
	sess       *session
	stats      *requestStats
	plan       plan
	documentID string
	commit     worker.Commit
	last       written
	conflicts  int
}

// step acts on the last write. End tells that the commit is over.
func (k *committer) step(ctx context.Context) (o worker.Outcome, end bool, err error) {
	w := k.last
	if w.op == opBatchCreate || w.op == opBatchChange {
		k.stats.known() // the batch was rolled back, and its reply says so
	}
	if w.op == opBatchChange && (w.class == exists || w.class == moved || w.class == absent) {
		return k.handleChange(ctx, w.index-len(k.plan.docs))
	}
	switch w.class {
	case done:
		return worker.Outcome{Created: true}, true, nil
	case exists:
		return k.handleConflict(ctx)
	case ambiguous, contended:
		return worker.Outcome{}, false, nil
	}
	if w.class != unavailable {
		k.store.report(ctx, w.op, w.answer, k.documentID)
	}
	if w.class == unexpected || k.stats.ambiguous() && blamesMessage(w.class) {
		// The answer says nothing, or an earlier one was lost: the documents may be there.
		if r, err := k.readBack(ctx); r != nil || err != nil || w.class == unexpected {
			return worker.Outcome{Existing: r}, r != nil || err != nil, err
		}
	}
	return worker.Outcome{}, true, k.fail(ctx)
}

// blamesMessage reports whether a class of answer speaks against one message and not against the store.
func blamesMessage(c class) bool { return c == refused || c == tooLarge || c == partitionFull }

// fail is the error for a last write that no other try will change.
func (k *committer) fail(ctx context.Context) error {
	w := k.last
	if w.op == opBatchChange && w.class == refused {
		// The service took the batch and names the operation: it is about this document, and says nothing of the store.
		k.store.standing.answered()
		return uncertain(reason.InvalidEffects, &answerError{op: w.op, answer: w.answer}, "The store refuses the %s of document %q (%v): as a rule a path, "+
			"a value or a condition that does not fit the document as it is stored. Fix the handler or the document, and reprocess this message.%s",
			k.plan.changes[w.index-len(k.plan.docs)].Kind, k.plan.changes[w.index-len(k.plan.docs)].ID, w.answer, lostAnswer(k.stats.ambiguous()))
	}
	doubtful := w.class == refused || w.class == tooLarge && !k.plan.large()
	if !doubtful {
		if w.class == misconfigured {
			k.store.forget(k.sess)
		}
		return k.mayBeStored(storeError(w.op, w.class, w.answer, k.stats.ambiguous()))
	}
	ambiguous := k.stats.ambiguous()
	if err := k.storesFault(ctx); err != nil {
		return err
	}
	cause, maybe := &answerError{op: w.op, answer: w.answer}, lostAnswer(ambiguous)
	if w.class == tooLarge {
		return uncertain(reason.TooLarge, cause, "The store refuses the %s of this message as too large (%v), although it has %d bytes and the "+
			"store takes %d. Find what limits requests between the worker and the store, and reprocess this message.%s", w.op, w.answer, k.plan.size(), storable.MaxBytes, maybe)
	}
	return uncertain(reason.NeverStorable, cause, "The store refuses the %s of this message (%v), while it answers others. Look the status "+
		"up in the documentation of Cosmos DB; when its cause is gone, reprocess this message.%s", w.op, w.answer, maybe)
}

// mayBeStored adds to an error that blames the message what a lost answer leaves open.
func (k *committer) mayBeStored(err error) error {
	if u, ok := errors.AsType[*worker.UnstorableError](err); ok {
		u.Detail += lostAnswer(k.stats.ambiguous())
	}
	return err
}

// lostAnswer is a sentence for a commit with a write whose answer was lost, or nothing.
func lostAnswer(ambiguous bool) string {
	if !ambiguous {
		return ""
	}
	return " The answer to an earlier try of it was lost, and nothing was found afterwards: look once more whether the order is stored."
}

// giveUp is the error of a commit whose tries or whose time are used up.
func (k *committer) giveUp(ctx context.Context) error {
	w := k.last
	switch {
	case w.op == opBatchChange && (w.class == exists || w.class == moved || w.class == absent) && ctx.Err() == nil:
		return k.movedError(k.plan.changes[w.index-len(k.plan.docs)])
	case w.class == exists && ctx.Err() == nil:
		return k.unread(ctx)
	case w.class == unexpected && ctx.Err() == nil:
		if err := k.storesFault(ctx); err != nil {
			return err
		}
		return uncertain(reason.NeverStorable, &answerError{op: w.op, answer: w.answer},
			"The store gave an unexpected response to the %s of %d documents (%v) %d times, and they are not stored. Find what answers in its place, "+
				"such as a proxy, and reprocess this message.", w.op, len(k.plan.docs), w.answer, maxTries)
	}
	a := w.answer
	if a.failure == timedOut {
		a = timedOutAfter(k.stats.lastAnswer())
	}
	return outOfTime(ctx, storeError(w.op, w.class, a, k.stats.ambiguous()))
}
