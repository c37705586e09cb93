package cosmosstore

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// conflictWaits are the pauses between the reads of a document that refused a create and that no replica shows. A replica
// catches up within milliseconds; an expired document is gone when the create is tried once more.
var conflictWaits = [...]time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond}

// maxConflicts is how often a create is refused and its document not found before the commit gives up.
const maxConflicts = 2

// readConflict reads the document that refused the last create. It returns neither a record nor an error when nothing was
// found and the create is worth another try: it is what every path to "already committed" goes through.
func (k *committer) readConflict(ctx context.Context) (*worker.Record, error) {
	id := k.plan.docs[k.last.index].id
	r, err := k.lookFor(ctx, id, conflictWaits[:])
	if r == nil && err == nil && k.conflicts >= maxConflicts {
		return nil, k.unread()
	}
	return r, err
}

// unread is the error for a create that is refused although nothing is found to compare with.
func (k *committer) unread() error {
	w := k.last
	return &worker.UncertainError{Reason: reason.ConflictUnread, Cause: &answerError{op: w.op, answer: w.answer},
		Detail: "the store refused to create document " + k.plan.docs[w.index].id + " because it exists, and finds no such document: " +
			"a unique key of the container is taken, the document has just expired, or a replica lags behind"}
}

// readBack looks whether the guard exists after an answer that says nothing. Finding nothing is no error.
func (k *committer) readBack(ctx context.Context) (*worker.Record, error) {
	return k.lookFor(ctx, k.plan.docs[0].id, conflictWaits[:1])
}

// lookFor reads a document that carries a request, again after each of waits while it is not found.
func (k *committer) lookFor(ctx context.Context, id string, waits []time.Duration) (*worker.Record, error) {
	token := k.last.session
	for i := 0; ; i++ {
		g := k.store.read(ctx, k.sess, k.plan.partition, id, token)
		switch g.class {
		case done:
			if r, err := parseRecord(id, g.body); err == nil {
				return k.complete(ctx, r, g.session)
			}
			k.store.report(ctx, opRead, answer{text: errNotTheDocument.Error()}, k.documentID)
		case lagging:
			token = "" // what a read without a token finds is true too
		case absent, senseless:
		case refused:
			return nil, k.refused(ctx, opRead, g.answer, reason.ConflictUnread)
		default:
			if g.class == misconfigured {
				k.store.forget(k.sess)
			}
			return nil, outOfTime(ctx, storeError(opRead, g.class, g.answer, k.tally.ambiguous()))
		}
		if i == len(waits) {
			return nil, nil
		}
		if !pause(ctx, waits[i]/2+rand.N(waits[i])) {
			return nil, outOfTime(ctx, storeError(opRead, unavailable, answer{failure: timedOut, text: "no answer in time"}, k.tally.ambiguous()))
		}
	}
}

// complete adds to a record what its judgement needs: the content that a marker has not, and, where the batch may not have
// been atomic, the parts that are missing.
func (k *committer) complete(ctx context.Context, r stored, token string) (*worker.Record, error) {
	f := finder{store: k.store, sess: k.sess, documentID: k.documentID, token: token}
	if err := f.addContent(ctx, &r); err != nil {
		return nil, err
	}
	if k.last.doubt {
		if err := f.addMissing(ctx, &r); err != nil {
			return nil, err
		}
	}
	r.DocumentID = k.documentID
	return &r.Record, nil
}

// finder reads what belongs to one message.
type finder struct {
	store      *Store
	sess       *session
	documentID string
	token      string
}

// addContent takes type and content from the handler's first document when the record is that of a marker. Without that
// document the record stays as it is: whoever may delete documents may have deleted it.
func (f finder) addContent(ctx context.Context, r *stored) error {
	if !f.sess.layout.markers || r.DocumentID != markerID(f.documentID) {
		return nil
	}
	g := f.store.read(ctx, f.sess, f.documentID, f.documentID, f.token)
	switch g.class {
	case done, absent, lagging, senseless, refused:
	default:
		return storeError(opRead, g.class, g.answer, false)
	}
	if first, err := parseRecord(f.documentID, g.body); err == nil {
		r.Type, r.Content = first.Type, first.Content
	}
	return nil
}

// partReads bounds the reads that run at the same time.
const partReads = 8

// addMissing looks for every part of a record. A part counts as missing too when another attempt wrote it: then it is a
// stray of a batch that was not atomic. The reads carry the session token of the guard's read, so a replica that lags
// behind the batch cannot answer them.
func (f finder) addMissing(ctx context.Context, r *stored) error {
	missing := make([]bool, len(r.Parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(partReads)
	for i, name := range r.Parts {
		g.Go(func() error {
			ok, err := f.hasPart(gctx, identity.PartDocumentID(f.documentID, name), r.Attempt)
			missing[i] = !ok
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, name := range r.Parts {
		if missing[i] && !r.expired(name, time.Now()) {
			r.MissingParts = append(r.MissingParts, name)
		}
	}
	return nil
}

// hasPart reports whether a part is there, written by the attempt or by someone who left none. Only an answer that it is
// absent counts as missing; one without sense, and a replica that stays behind, leave that open and are an error.
func (f finder) hasPart(ctx context.Context, id, attempt string) (bool, error) {
	for i := 0; ; i++ {
		g := f.store.read(ctx, f.sess, f.documentID, id, f.token)
		switch g.class {
		case done:
			if wrote, ok := attemptOf(id, g.body); ok {
				return wrote == "" || wrote == attempt, nil
			}
		case absent, lagging, senseless:
		case refused:
			return false, f.store.unreadable(ctx, f.sess, g.answer, f.documentID)
		default:
			return false, outOfTime(ctx, storeError(opRead, g.class, g.answer, false))
		}
		switch {
		case i == 1 && g.class == absent:
			return false, nil
		case i == 1:
			return false, f.store.unreadable(ctx, f.sess, g.answer, f.documentID)
		}
		if !pause(ctx, conflictWaits[i]) {
			return false, outOfTime(ctx, storeError(opRead, unavailable, answer{failure: timedOut, text: "no answer in time"}, false))
		}
	}
}
