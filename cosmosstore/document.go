package cosmosstore

import (
	"time"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker/fingerprint"
)

// systemBytes allows for what the service adds to an item: _rid, _self, _etag, _attachments and _ts.
const systemBytes = 512

// envelope is one document before it is written out.
type envelope struct {
	id        string
	partition string
	kind      string // the type
	content   []byte // one JSON object, or nil
	exact     []fingerprint.Exact
	request   *requestMember // nil for a journal entry, which has a time instead
	at        time.Time
	ttl       int64
}

// encode writes the document as JSON. The content goes in byte for byte.
func (e envelope) encode(path []string) []byte {
	w := writer{make([]byte, 0, len(e.content)+768)}
	w.begin()
	w.string(storable.MemberID, e.id)
	if len(path) > 1 || path[0] != storable.MemberID {
		w.nested(path, e.partition)
	}
	w.string(storable.MemberType, e.kind)
	if e.content != nil {
		w.raw(e.kind, e.content)
	}
	if len(e.exact) > 0 {
		w.name(storable.MemberExact)
		w.begin()
		for _, n := range e.exact {
			w.string(n.Path, n.Text)
		}
		w.end()
	}
	encodeTime(&w, memberAt, e.at)
	if e.request != nil {
		w.name(storable.MemberRequest)
		e.request.encode(&w)
	}
	if e.ttl > 0 {
		w.number(storable.MemberTTL, e.ttl)
	}
	w.end()
	return w.text
}
