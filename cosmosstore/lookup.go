package cosmosstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

// againPause is the pause before an absence is believed that the primary did not confirm.
const againPause = 50 * time.Millisecond

// lookup reads what is stored for one message. It is the only way in which documents are read.
type lookup struct {
	store      *Store
	sess       *session
	partition  string
	documentID string
	token      string // a session token, or "": reads see what the reply that carried it saw
	ambiguous  bool   // a write of this call may have happened, which errors say
}

// Find returns the record of a document id in a partition with the parts that are missing, or [worker.ErrNotFound]. With inbox records it
// prefers the inbox record, and falls back on the document when that has expired. A document that is not found is looked
// for once more at the primary, since the replica or the region that was asked may lag behind.
func (s *Store) Find(ctx context.Context, partition, documentID string) (worker.Record, error) {
	l, err := s.lookup(ctx, partition, documentID)
	if err != nil {
		return worker.Record{}, err
	}
	ids := l.sess.layout.recordIDs(documentID)
	r, err := l.find(ctx, ids)
	if r.Claim != nil && r.Claim.Released { // the document may carry a record from before
		return l.find(ctx, ids[1:])
	}
	return r, err
}

// lookup begins to look for what is stored under a document id in a partition, or in the document id's own.
func (s *Store) lookup(ctx context.Context, partition, documentID string) (lookup, error) {
	if problem := storable.IDProblem(documentID); problem != "" {
		return lookup{}, fmt.Errorf("%w: the id %q %s", worker.ErrNotFound, documentID, problem)
	}
	sess, err := s.session(ctx)
	return lookup{store: s, sess: sess, partition: cmp.Or(partition, documentID), documentID: documentID}, err
}

func (l lookup) find(ctx context.Context, ids []string) (worker.Record, error) {
	r, err := l.record(ctx, ids)
	switch {
	case err != nil:
		return worker.Record{}, err
	case r == nil:
		return worker.Record{}, fmt.Errorf("%w: %q", worker.ErrNotFound, l.documentID)
	}
	return *r, nil
}

// one looks for a document: by a read, and where that does not show it, since a replica or a region may lag behind, at the
// primary.
func (l lookup) one(ctx context.Context, id string) (found, error) {
	g := l.store.read(ctx, l.sess, l.partition, id, l.token)
	if g.class == refused && g.answer.status == http.StatusBadRequest && l.token != "" {
		l.token = "" // a gateway that does not understand the token answers like this
		g = l.store.read(ctx, l.sess, l.partition, id, "")
	}
	f, ok := g.found(id)
	switch g.class {
	case done:
		if ok {
			return f, nil
		}
		g.class, g.answer.text = unexpected, "the reply is not the document that was asked for"
		l.store.report(ctx, opRead, g.answer, l.documentID)
	case absent, lagging, unexpected, refused:
	default:
		return found{}, l.failed(ctx, g)
	}
	return l.atPrimary(ctx, id, g)
}

// atPrimary is the last look for a document, after the last read came to g. When the primary gives no answer, as with a role
// that allows no batches, an absence that two reads saw is believed.
func (l lookup) atPrimary(ctx context.Context, id string, g reading) (found, error) {
	p := l.store.readBatch(ctx, l.sess, l.partition, []string{id}, "")[0]
	if f, ok := p.found(id); ok {
		return f, nil
	}
	switch {
	case p.class == absent:
		return found{}, nil
	case p.class == unavailable, g.class == unexpected && p.class == misconfigured:
		return found{}, l.failed(ctx, p)
	case g.class == lagging:
		return found{}, l.failed(ctx, g)
	case g.class == absent:
		if !backoff.Sleep(ctx, againPause) {
			return found{}, noTime(ctx, opRead, "no answer in time", l.ambiguous)
		}
		f, _ := l.store.read(ctx, l.sess, l.partition, id, l.token).found(id)
		return f, nil
	}
	return found{}, l.store.unreadable(ctx, l.sess, g.answer, l.documentID)
}

// failed is the error for a read that says something of the store and nothing of the document.
func (l lookup) failed(ctx context.Context, g reading) error {
	if g.class == misconfigured {
		l.store.forget(l.sess)
	}
	return outOfTime(ctx, storeError(opRead, g.class, g.answer, l.ambiguous))
}

// record returns the record of the message from the first of the documents with these ids that can be read, each of which may
// carry it, or nil when there is none.
func (l lookup) record(ctx context.Context, ids []string) (*worker.Record, error) {
	var unread error
	for _, id := range ids {
		f, err := l.one(ctx, id)
		switch {
		case isUncertain(err): // another document of the commit may decide
			unread = err
		case err != nil:
			return nil, err
		case f.document != nil:
			l.store.writes.answered()
			l.token = f.token
			return l.complete(ctx, f.stored())
		}
	}
	return nil, unread
}

func isUncertain(err error) bool {
	_, ok := errors.AsType[*worker.UncertainError](err)
	return ok
}

// complete adds to a record what its judgement needs: the content, if it is an inbox record of its own, and the parts that are
// missing.
func (l lookup) complete(ctx context.Context, r stored) (*worker.Record, error) {
	own := r.DocumentID != l.documentID
	r.DocumentID = l.documentID
	if r.Unknown != "" || r.Claim != nil { // what its parts are is not known either, or there are none yet
		return &r.Record, nil
	}
	if own && r.noDocuments {
		r.Type, r.Content = "", nil
	} else if own {
		first, err := l.one(ctx, l.documentID)
		if err != nil && !isUncertain(err) {
			return nil, err
		}
		if first.document != nil { // or somebody has deleted it
			r.Type, r.Content = stringOf(first.document[storable.MemberType]), first.content()
		}
	}
	err := l.addMissing(ctx, &r)
	return &r.Record, err
}

// addMissing looks for every part of a record whose time is not up. A part counts as missing too when another attempt wrote
// it: then it is a stray of a batch that was not atomic. The reads carry the session token of the record's read, so a
// replica that lags behind the batch cannot answer them. When all are stored, which is the rule, it takes one request.
func (l lookup) addMissing(ctx context.Context, r *stored) error {
	now := time.Now()
	var parts, ids []string
	// No commit has more. A program that wrote a longer list into the document must not make each repeat of it look for them all.
	for _, name := range r.Parts[:min(len(r.Parts), storable.MaxOperations)] {
		if !r.expired(name, now) {
			parts, ids = append(parts, name), append(ids, identity.PartDocumentID(l.documentID, name))
		}
	}
	if l.allStored(ctx, ids, r.Attempt) {
		return nil
	}
	for i, id := range ids {
		f, err := l.one(ctx, id)
		if err != nil {
			return err
		}
		if !f.writtenBy(r.Attempt) {
			r.MissingParts = append(r.MissingParts, parts[i])
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
func (l lookup) allStored(ctx context.Context, ids []string, attempt string) bool {
	if len(ids) < 2 || l.sess.layout.byID() {
		return len(ids) == 0
	}
	readings := l.store.readBatch(ctx, l.sess, l.partition, ids, l.token)
	for i, g := range readings {
		if f, ok := g.found(ids[i]); !ok || !f.writtenBy(attempt) {
			return false
		}
	}
	return len(readings) == len(ids)
}
