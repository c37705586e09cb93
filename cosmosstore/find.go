package cosmosstore

import (
	"context"
	"fmt"

	"github.com/orderworker/orderworker/worker"
)

// Find returns the record under a document id with the parts that are missing, or [worker.ErrNotFound]. With markers it
// prefers the marker, and falls back on the document when the marker has expired. A document that is not found is looked
// for once more, at the primary if that answers, since the replica or the region that was asked may lag behind.
func (s *Store) Find(ctx context.Context, documentID string) (worker.Record, error) {
	if err := checkID(documentID); err != nil {
		return worker.Record{}, fmt.Errorf("%w: the id %q %w", worker.ErrNotFound, documentID, err)
	}
	sess, err := s.session(ctx)
	if err != nil {
		return worker.Record{}, err
	}
	ids := []string{documentID}
	if sess.layout.markers {
		ids = []string{markerID(documentID), documentID}
	}
	for try, look := range []look{s.read, s.readSurely} {
		if try > 0 && !pause(ctx, conflictWaits[1]) {
			return worker.Record{}, outOfTime(ctx, storeError(opRead, unavailable, answer{failure: timedOut, text: "no answer in time"}, false))
		}
		for _, id := range ids {
			r, err := s.findOne(ctx, sess, documentID, id, look)
			if r != nil || err != nil {
				return deref(r), err
			}
		}
	}
	return worker.Record{}, fmt.Errorf("%w: %q", worker.ErrNotFound, documentID)
}

func deref(r *worker.Record) worker.Record {
	if r == nil {
		return worker.Record{}
	}
	return *r
}

// findOne reads one document that may be the record of a message. It returns nil when there is none.
func (s *Store) findOne(ctx context.Context, sess *session, documentID, id string, look look) (*worker.Record, error) {
	g := look(ctx, sess, documentID, id, "")
	switch g.class {
	case done:
	case absent, lagging:
		return nil, nil
	case refused, senseless:
		return nil, s.unreadable(ctx, sess, g.answer, documentID)
	default:
		return nil, outOfTime(ctx, storeError(opRead, g.class, g.answer, false))
	}
	r, err := parseRecord(id, g.body)
	if err != nil {
		return nil, s.unreadable(ctx, sess, answer{failure: broken, text: err.Error()}, documentID)
	}
	return finder{store: s, sess: sess, documentID: documentID, token: g.session}.complete(ctx, r)
}
