package cosmosstore

import (
	"context"
	"slices"
	"time"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// maxConflicts is how often a create is refused and its document not found before the commit gives up.
const maxConflicts = 2

// handleConflict acts on a write that was refused because a document of the message exists. Every path to "already committed"
// goes through it. Neither an outcome nor an error means that nothing was found, so that the write is worth another try.
func (k *committer) handleConflict(ctx context.Context) (worker.Outcome, error) {
	k.conflicts++
	ids, i := k.plan.recordIDs(), k.last.index
	if i < k.plan.records {
		// The document that refused the write comes first. When it cannot be read, as when it has expired, another one decides.
		ids = slices.Concat(ids[i:], ids[:i])
	}
	r, err := k.lookup().record(ctx, ids)
	if err != nil {
		return worker.Outcome{}, err
	}
	if o, retry, err := k.resolveClaim(r); ends(o) || retry || err != nil {
		return o, err
	}
	if part := k.plan.docs[i]; i >= k.plan.records {
		// The record should not exist then, but the batch may be an earlier try's, and a unique key refuses a document that does not exist.
		f, err := k.lookup().one(ctx, part.id)
		if err != nil {
			return worker.Outcome{}, err
		}
		if f.document != nil {
			k.store.writes.answered()
			return worker.Outcome{Blocking: part.name}, nil
		}
	}
	if k.conflicts >= maxConflicts {
		return worker.Outcome{}, k.unread(ctx)
	}
	return worker.Outcome{}, nil
}

// handleChange acts on a batch that was refused because of one of its changes. The record of the message comes before the
// changes in the batch, so it is known not to exist. End tells that the commit is over.
func (k *committer) handleChange(ctx context.Context) (o worker.Outcome, end bool, err error) {
	c, class := k.change(), k.last.class
	switch {
	case c.ID == inboxRecordID(k.documentID):
		return k.handleLostClaim(ctx)
	case class == absent && c.Kind == worker.ChangeDelete && c.ETag == "": // it is gone already
		index := k.last.index - len(k.plan.docs)
		k.plan.changes = slices.Delete(slices.Clone(k.plan.changes), index, index+1)
		return worker.Outcome{Created: true}, k.plan.operations() == 0, nil
	case class == absent && c.Kind == worker.ChangePatch:
		return worker.Outcome{}, true, storable.TargetMissing(c.ID)
	case c.version == nil:
		return worker.Outcome{}, true, k.movedError()
	case c.Kind == worker.ChangeUpsert:
		return worker.Outcome{}, false, nil // another writer was faster: resolveVersion looks again
	}
	f, err := k.lookup().one(ctx, c.ID)
	if err != nil {
		return worker.Outcome{}, true, err
	}
	if f.document == nil {
		return worker.Outcome{}, true, storable.TargetMissing(c.ID)
	}
	stale, err := storable.Reached(f.body, *c.version)
	switch {
	case err != nil:
		return worker.Outcome{}, true, err
	case stale:
		o, err = k.commitStale(ctx)
		return o, true, err
	}
	return worker.Outcome{}, true, k.movedError() // the handler's own condition is not fulfilled
}

// change is the change that decided the last write.
func (k *committer) change() plannedChange { return k.plan.changes[k.last.index-len(k.plan.docs)] }

func (k *committer) movedError() error {
	return &worker.StateMovedError{Document: k.change().ID, Cause: &answerError{op: k.last.op, answer: k.last.answer}}
}

// resolveVersion decides for each upsert with a version what it is: a create, a replace of just the older document that was
// read, or nothing since the message is stale. An upsert itself has no condition.
func (k *committer) resolveVersion(ctx context.Context) (stale bool, err error) {
	for i := range k.plan.changes {
		c := &k.plan.changes[i]
		if c.version == nil || c.Kind != worker.ChangeUpsert {
			continue
		}
		f, err := k.lookup().one(ctx, c.ID)
		if err != nil {
			return false, err
		}
		c.create, c.ETag = f.document == nil, f.etag()
		if stale, err := storable.Reached(f.body, *c.version); stale || err != nil {
			return stale, err
		}
	}
	return false, nil
}

// commitStale commits the record alone, if there is one.
func (k *committer) commitStale(ctx context.Context) (worker.Outcome, error) {
	if k.commit.WithoutRecord {
		return worker.Outcome{Stale: true}, nil
	}
	c := k.commit
	c.Documents, c.Changes, c.Messages, c.Version, c.Outcome = nil, nil, nil, nil, nil
	k.commit, k.last = c, written{}
	k.compose = func(l layout, c worker.Commit, at time.Time) (plan, error) {
		return l.recordPlan(c, at, stateStale), nil
	}
	o, err := k.run(ctx)
	o.Stale, o.Created = o.Created, false
	return o, err
}
