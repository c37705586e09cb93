package cosmosstore

import (
	"context"
	"encoding/json"
	"time"

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

// Inspect returns what is stored for a document id, for people to look at, or [worker.ErrNotFound]. Its errors are those of
// [Store.Find].
func (s *Store) Inspect(ctx context.Context, documentID string) (Inspection, error) {
	ctx, t := withTally(ctx)
	i, err := s.inspect(ctx, documentID)
	i.Calls, i.Charge = t.sum()
	return i, err
}

func (s *Store) inspect(ctx context.Context, documentID string) (Inspection, error) {
	r, err := s.Find(ctx, documentID)
	if err != nil {
		return Inspection{}, err
	}
	sess, err := s.session(ctx)
	if err != nil {
		return Inspection{}, err
	}
	i := Inspection{Record: r}
	for _, p := range storedParts(sess.layout, r) {
		g := s.readSurely(ctx, sess, documentID, p.id, "")
		switch g.class {
		case done:
			i.Documents = append(i.Documents, storedDocument(p, g.body))
		case absent, lagging, refused, senseless:
		default:
			return i, outOfTime(ctx, storeError(opRead, g.class, g.answer, false))
		}
	}
	return i, nil
}

// storedPart is a document that may be stored for a record.
type storedPart struct{ id, name string }

func storedParts(l layout, r worker.Record) []storedPart {
	var parts []storedPart
	if l.markers {
		parts = append(parts, storedPart{id: markerID(r.DocumentID)})
	}
	parts = append(parts, storedPart{id: r.DocumentID})
	for _, name := range r.Parts[:min(len(r.Parts), maxOperations)] {
		parts = append(parts, storedPart{identity.PartDocumentID(r.DocumentID, name), name})
	}
	return parts
}

func storedDocument(p storedPart, body []byte) StoredDocument {
	d := StoredDocument{ID: p.id, Name: p.name, Body: body}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return d
	}
	d.Type, d.Content, d.ETag = stringOf(members[memberType]), contentOf(members), stringOf(members["_etag"])
	if ts := wholeNumberOf(members["_ts"]); ts > 0 {
		d.ModifiedAt = time.Unix(ts, 0).UTC()
	}
	return d
}
