package cosmosstore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

// An Inspection is what is stored for one key.
type Inspection struct {
	// Record is the inbox record, with the parts that are missing.
	Record worker.Record
	// Documents are the stored documents: the inbox record if it is a document of its own, the first document of the handler,
	// and the others in the order in which they were committed. One that is missing is left out.
	Documents []StoredDocument
	// Calls is the number of requests that the inspection took, and Charge their request charge in request units.
	Calls  int
	Charge float64
}

// A StoredDocument is one document as the service returns it.
type StoredDocument struct {
	ID string
	// Name is the name that the handler gave it, empty for the first document and for the inbox record.
	Name string
	Type string
	// Content is the content of the handler, with the numbers as they were sent. Nil for an inbox record of its own.
	Content json.RawMessage
	// Body is the whole document, with the members of the store and of the service.
	Body json.RawMessage
	ETag string
	// ModifiedAt is the time of the last write, in whole seconds.
	ModifiedAt time.Time
}

// Inspect returns what is stored for a document id in a partition, or in its own when that is empty, for people to look at, or
// [worker.ErrNotFound]. Its errors are those of [Store.Find].
func (s *Store) Inspect(ctx context.Context, partition, documentID string) (Inspection, error) {
	ctx, t := withStats(ctx)
	i, err := s.inspect(ctx, partition, documentID)
	i.Calls, i.Charge = t.sum()
	return i, err
}

func (s *Store) inspect(ctx context.Context, partition, documentID string) (Inspection, error) {
	l, err := s.lookup(ctx, partition, documentID)
	if err != nil {
		return Inspection{}, err
	}
	ids := l.sess.layout.recordIDs(documentID)
	r, err := l.find(ctx, ids)
	if err != nil {
		return Inspection{}, err
	}
	i := Inspection{Record: r}
	parts := slices.Concat(make([]string, len(ids)), r.Parts[:min(len(r.Parts), storable.MaxOperations)])
	for n, name := range parts {
		id := identity.PartDocumentID(documentID, name)
		if n < len(ids) {
			id = ids[n]
		}
		f, err := l.one(ctx, id)
		if err != nil {
			return i, err
		}
		if f.document != nil {
			i.Documents = append(i.Documents, StoredDocument{ID: id, Name: name, Type: stringOf(f.document[storable.MemberType]),
				Content: f.content(), Body: f.body, ETag: f.etag(), ModifiedAt: f.modifiedAt()})
		}
	}
	return i, nil
}
