package cosmosstore

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker/identity"
)

// partReads bounds the reads of parts that run at the same time.
const partReads = 8

// addMissing looks for every part of a record whose time is not up. A part counts as missing too when another attempt wrote
// it: then it is a stray of a batch that was not atomic. The reads carry the session token of the record's read, so a
// replica that lags behind the batch cannot answer them. When all are stored, which is the rule, it takes one request.
func (l lookup) addMissing(ctx context.Context, r *stored) error {
	now := time.Now()
	var parts []string
	// No commit has more. A program that wrote a longer list into the document must not make each repeat of it look for them all.
	for _, name := range r.Parts[:min(len(r.Parts), storable.MaxOperations)] {
		if !r.expired(name, now) {
			parts = append(parts, name)
		}
	}
	if l.allStored(ctx, parts, r.Attempt) {
		return nil
	}
	missing := make([]bool, len(parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(partReads)
	for i, name := range parts {
		g.Go(func() error {
			f, err := l.one(gctx, identity.PartDocumentID(l.documentID, name))
			missing[i] = !f.writtenBy(r.Attempt)
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

// writtenBy reports whether the document exists and was written by the attempt, or does not say by which.
func (d document) writtenBy(attempt string) bool {
	wrote := d.attempt()
	return d != nil && (wrote == "" || wrote == attempt)
}

// allStored reads every part in one batch of reads, and reports whether it saw all of them. One that is absent fails the
// whole batch, and so does much else: false says nothing.
func (l lookup) allStored(ctx context.Context, parts []string, attempt string) bool {
	if len(parts) < 2 || l.sess.layout.byID() {
		return len(parts) == 0
	}
	ids := make([]string, len(parts))
	for i, name := range parts {
		ids[i] = identity.PartDocumentID(l.documentID, name)
	}
	bodies := l.store.readAll(ctx, l.sess, l.partition, ids, l.token)
	for i, body := range bodies {
		if d, ok := parseDocument(ids[i], body); !ok || !d.writtenBy(attempt) {
			return false
		}
	}
	return len(bodies) == len(ids)
}
