package cosmosstore

import (
	"context"
	"slices"
	"time"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// handleChange acts on a batch that was refused because of one of its changes. The record of the message comes before the
// changes in the batch, so it is known not to exist. End tells that the commit is over.
func (k *committer) handleChange(ctx context.Context, index int) (o worker.Outcome, end bool, err error) {
	c, class := k.plan.changes[index], k.last.class
	switch {
	case class == absent && c.Kind == worker.ChangeDelete && c.ETag == "":
		k.plan.changes = slices.Delete(slices.Clone(k.plan.changes), index, index+1) // it is gone already
		return worker.Outcome{Created: true}, k.plan.operations() == 0, nil
	case class == absent && c.Kind == worker.ChangePatch:
		return worker.Outcome{}, true, storable.TargetMissing(c.ID)
	case c.version == nil:
		return worker.Outcome{}, true, k.movedError(c)
	case c.Kind == worker.ChangeUpsert:
		return worker.Outcome{}, false, nil // somebody was faster: resolveVersion looks again
	}
	f, err := k.lookup().one(ctx, c.ID)
	switch {
	case err != nil:
		return worker.Outcome{}, true, err
	case f.document == nil:
		return worker.Outcome{}, true, storable.TargetMissing(c.ID)
	case reached(f.document, c.version):
		o, err = k.commitStale(ctx)
		return o, true, err
	}
	return worker.Outcome{}, true, k.movedError(c) // the handler's own condition is not fulfilled
}

func (k *committer) movedError(c plannedChange) error {
	return &worker.StateMovedError{Document: c.ID, Cause: &answerError{op: k.last.op, answer: k.last.answer}}
}

// reached reports whether a document has a version already, or a newer one.
func reached(d document, v *worker.Version) bool {
	stored, ok := versionOf(d, v.Path)
	return ok && stored >= float64(v.Value)
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
		switch {
		case err != nil:
			return false, err
		case f.document == nil:
			c.create, c.ETag = true, ""
		case reached(f.document, c.version):
			return true, nil
		default:
			c.create, c.ETag = false, stringOf(f.document["_etag"])
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
	c.Documents, c.Changes, c.Version, c.Outcome = nil, nil, nil, nil
	p, err := k.sess.layout.compose(c, time.Now())
	if err != nil {
		return worker.Outcome{}, err
	}
	k.plan, k.last = p, written{}
	o, err := k.run(ctx)
	o.Stale, o.Created = o.Created, false
	return o, err
}
