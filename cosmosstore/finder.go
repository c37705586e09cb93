package cosmosstore

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

// finder reads what belongs to one message.
type finder struct {
	store      *Store
	sess       *session
	documentID string
	token      string
}

// complete adds to a record what its judgement needs: the content that a marker has not, and the parts that are missing.
func (f finder) complete(ctx context.Context, r stored) (*worker.Record, error) {
	if r.Unknown != "" { // what its parts are is not known either
		r.DocumentID = f.documentID
		return &r.Record, nil
	}
	if err := f.addContent(ctx, &r); err != nil {
		return nil, err
	}
	if err := f.addMissing(ctx, &r); err != nil {
		return nil, err
	}
	r.DocumentID = f.documentID
	return &r.Record, nil
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

// addMissing looks for every part of a record whose time is not up. A part counts as missing too when another attempt wrote
// it: then it is a stray of a batch that was not atomic. The reads carry the session token of the guard's read, so a
// replica that lags behind the batch cannot answer them. When all are there, which is the rule, it takes one round trip.
func (f finder) addMissing(ctx context.Context, r *stored) error {
	now := time.Now()
	var parts []string
	// No commit has more. Whoever wrote a longer list into the document must not make each repeat of it look for them all.
	for _, name := range r.Parts[:min(len(r.Parts), maxOperations)] {
		if !r.expired(name, now) {
			parts = append(parts, name)
		}
	}
	if f.allThere(ctx, parts, r.Attempt) {
		return nil
	}
	missing := make([]bool, len(parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(partReads)
	for i, name := range parts {
		g.Go(func() error {
			wrote, there, err := f.readPart(gctx, identity.PartDocumentID(f.documentID, name))
			missing[i] = !there || wrote != "" && wrote != r.Attempt
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, name := range parts {
		if missing[i] {
			r.MissingParts = append(r.MissingParts, name)
		}
	}
	return nil
}

// allThere reads every part in one batch of reads, and reports whether it saw all of them, written by the attempt or by
// someone who left none. One that is absent fails the whole batch, and so does much else: false says nothing.
func (f finder) allThere(ctx context.Context, parts []string, attempt string) bool {
	if len(parts) < 2 || len(parts) > maxOperations || f.sess.layout.byID() {
		return len(parts) == 0
	}
	ids := make([]string, len(parts))
	for i, name := range parts {
		ids[i] = identity.PartDocumentID(f.documentID, name)
	}
	bodies := f.store.readAll(ctx, f.sess, f.documentID, ids, f.token)
	for i, body := range bodies {
		if wrote, ok := attemptOf(ids[i], body); !ok || wrote != "" && wrote != attempt {
			return false
		}
	}
	return len(bodies) == len(ids)
}

// readPart reads a part and returns the attempt that wrote it, "" when it does not say. The second look is at the primary,
// whose word that it is absent is enough; that of a read is so only at the last look. An answer without sense, and a replica
// that stays behind, leave it open and are an error.
func (f finder) readPart(ctx context.Context, id string) (attempt string, there bool, err error) {
	const primary, last = 1, 2
	for i := 0; ; i++ {
		var g reading
		if i == primary {
			g = f.store.readPrimary(ctx, f.sess, f.documentID, id)
		} else {
			g = f.store.read(ctx, f.sess, f.documentID, id, f.token)
		}
		switch g.class {
		case done:
			if wrote, ok := attemptOf(id, g.body); ok {
				return wrote, true, nil
			}
		case absent:
			if i >= primary {
				return "", false, nil
			}
		case lagging, senseless, refused:
		default:
			if i != primary || g.class != misconfigured { // a role that allows reads may not allow batches of them
				return "", false, outOfTime(ctx, storeError(opRead, g.class, g.answer, false))
			}
		}
		if i == last {
			return "", false, f.store.unreadable(ctx, f.sess, g.answer, f.documentID)
		}
		if !pause(ctx, conflictWaits[i]) {
			return "", false, outOfTime(ctx, storeError(opRead, unavailable, answer{failure: timedOut, text: "no answer in time"}, false))
		}
	}
}
