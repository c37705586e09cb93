package cosmosstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// Find returns the record of a document id in a partition with the parts that are missing, or [worker.ErrNotFound]. With inbox records it
// prefers the inbox record, and falls back on the document when that has expired. A document that is not found is looked
// for once more at the primary, since the replica or the region that was asked may lag behind.
func (s *Store) Find(ctx context.Context, partition, documentID string) (worker.Record, error) {
	l, err := s.lookup(ctx, partition, documentID)
	if err != nil {
		return worker.Record{}, err
	}
	return l.find(ctx)
}

// lookup begins to look for what is stored under a document id in a partition, or in the document id's own.
func (s *Store) lookup(ctx context.Context, partition, documentID string) (lookup, error) {
	if problem := storable.IDProblem(documentID); problem != "" {
		return lookup{}, fmt.Errorf("%w: the id %q %s", worker.ErrNotFound, documentID, problem)
	}
	sess, err := s.session(ctx)
	return lookup{store: s, sess: sess, partition: cmp.Or(partition, documentID), documentID: documentID}, err
}

func (l lookup) find(ctx context.Context) (worker.Record, error) {
	r, err := l.record(ctx, l.sess.layout.recordIDs(l.documentID))
	switch {
	case err != nil:
		return worker.Record{}, err
	case r == nil:
		return worker.Record{}, fmt.Errorf("%w: %q", worker.ErrNotFound, l.documentID)
	}
	return *r, nil
}
