package cosmosstore

import (
	"context"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// maxTries bounds the writes of one commit. With full jitter the pauses between them take less than a second on average.
const maxTries = 6

// Commit creates every document of c, or none, as [worker.Store] demands. One document is one create; several are one
// transactional batch whose first operation creates the guard. A write whose outcome is unknown is repeated as it is, with
// its nonce, so that its own document is recognised.
func (s *Store) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	ctx, t := withTally(ctx)
	o, err := s.commit(ctx, t, c)
	o.Calls, o.Charge = t.sum()
	return o, err
}

func (s *Store) commit(ctx context.Context, t *tally, c worker.Commit) (worker.Outcome, error) {
	sess, err := s.session(ctx)
	if err != nil {
		return worker.Outcome{}, err
	}
	if err := s.checkRegions(); err != nil {
		return worker.Outcome{}, err
	}
	p, err := sess.layout.compose(c, time.Now())
	if err != nil {
		return worker.Outcome{}, err
	}
	k := &committer{store: s, sess: sess, tally: t, plan: p, documentID: c.DocumentID}
	for try := 1; try <= maxTries; try++ {
		if try > 1 && !k.last.found() && !pause(ctx, backoff(try-1)) {
			break
		}
		k.last = s.write(ctx, sess, p)
		if o, end, err := k.step(ctx); end {
			return o, err
		}
		if k.last.over {
			break
		}
	}
	return worker.Outcome{}, k.giveUp(ctx)
}

// found reports whether the write was refused because a document stands there.
func (w written) found() bool { return w.class == exists }

// committer carries one commit from write to write. It belongs to one goroutine.
type committer struct {
	store      *Store
	sess       *session
	tally      *tally
	plan       plan
	documentID string
	last       written
	conflicts  int
}

// step acts on the last write. End tells that the commit is over.
func (k *committer) step(ctx context.Context) (o worker.Outcome, end bool, err error) {
	w := k.last
	if w.op == opBatchCreate {
		k.tally.known() // the batch was rolled back, and its reply says so
	}
	switch w.class {
	case done:
		return worker.Outcome{Created: true}, true, nil
	case exists:
		if w.index >= k.plan.guards {
			return worker.Outcome{Blocking: k.plan.docs[w.index].name}, true, nil
		}
		k.conflicts++
		r, err := k.readConflict(ctx)
		return worker.Outcome{Existing: r}, r != nil || err != nil, err
	case senseless:
		k.store.report(ctx, w.op, w.answer, k.documentID)
		r, err := k.readBack(ctx)
		return worker.Outcome{Existing: r}, r != nil || err != nil, err
	case unclear, contended:
		return worker.Outcome{}, false, nil
	case refused:
		return worker.Outcome{}, true, k.refused(ctx, w.op, w.answer, reason.NeverStorable)
	}
	if w.class == misconfigured {
		k.store.forget(k.sess)
	}
	if w.class != unavailable {
		k.store.report(ctx, w.op, w.answer, k.documentID)
	}
	return worker.Outcome{}, true, storeError(w.op, w.class, w.answer, k.tally.ambiguous())
}

// refused tells a refusal of this message from one of the whole store, by asking for something else.
func (k *committer) refused(ctx context.Context, op operation, a answer, word string) error {
	k.store.report(ctx, op, a, k.documentID)
	if err := k.store.probe(ctx, k.sess); err != nil {
		return err
	}
	return &worker.UncertainError{Reason: word, Cause: &answerError{op: op, answer: a},
		Detail: fmt.Sprintf("the store refuses the %s of this message (%v), while it answers others", op, a)}
}

// giveUp is the error of a commit whose tries or whose time are used up.
func (k *committer) giveUp(ctx context.Context) error {
	w := k.last
	switch {
	case w.class == exists && ctx.Err() == nil:
		return k.unread()
	case w.class == senseless && ctx.Err() == nil:
		if err := k.store.probe(ctx, k.sess); err != nil {
			return err
		}
		return &worker.UncertainError{Reason: reason.NeverStorable, Cause: &answerError{op: w.op, answer: w.answer},
			Detail: fmt.Sprintf("the store answered the %s of %d documents without sense (%v) %d times, and they are not there",
				w.op, len(k.plan.docs), w.answer, maxTries)}
	}
	a := w.answer
	if a.failure == timedOut {
		a = timedOutAfter(k.tally.lastAnswer())
	}
	return outOfTime(ctx, storeError(w.op, w.class, a, k.tally.ambiguous()))
}
