package cosmosstore

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// requestVersion is the version of the request member that this package writes, and the only one that it reads.
const requestVersion = 1

// largestExact is the largest whole number up to which a double holds every whole number.
const largestExact = 1 << 53

// requestMember says which message a document came from. A sender cannot write it: his content is a member of its own. It
// is read by parseRecord.
type requestMember struct {
	commit worker.Commit
	at     time.Time // when it was committed
	// part is the name of a further document. The document that carries the inbox record has none.
	part string
	// stale tells that nothing but the record is committed.
	stale bool
}

// memberDocuments is 0 in a record whose message created no documents, so that nobody looks for one.
const memberDocuments = "documents"

// encode writes the member's value. The inbox record carries the hash and the names of its parts; a part the id of
// the first document.
func (r requestMember) encode(w *writer) {
	c := r.commit
	w.begin()
	w.number(memberVersion, requestVersion)
	w.string("key", c.Key.String())
	w.string("messageId", c.MessageID)
	if r.part == "" {
		encodeProgram(w, c.Program, c.ProgramVersion)
		r.encodeHash(w)
	}
	w.string("attempt", c.Attempt)
	if r.part == "" {
		r.encodeEffects(w)
		encodeSequence(w, c.SequenceNumber)
		encodeTime(w, "enqueuedAt", c.EnqueuedAt)
	}
	encodeTime(w, "committedAt", r.at)
	if r.part == "" {
		r.encodeParts(w)
	} else {
		w.string("part", r.part)
		w.string("document", c.DocumentID)
	}
	w.end()
}

// encodeProgram writes which program made the documents, if the commit says so.
func encodeProgram(w *writer, name, version string) {
	if name != "" {
		w.string("program", name)
	}
	if version != "" {
		w.string("programVersion", version)
	}
}

// encodeEffects writes what the message came to, beside the documents that its parts name.
func (r requestMember) encodeEffects(w *writer) {
	if r.stale {
		w.string(memberState, stateStale)
	}
	if len(r.commit.Outcome) > 0 {
		w.raw("outcome", r.commit.Outcome)
	}
	if len(r.commit.Documents) == 0 {
		w.number(memberDocuments, 0)
	}
}

func (r requestMember) encodeHash(w *writer) {
	w.string("hash", r.commit.Fingerprint.Hash)
	if parameters, err := json.Marshal(r.commit.Fingerprint.Parameters); err == nil { // as it always is
		w.raw("parameters", parameters)
	}
}

// encodeSequence writes a sequence number so that JSON can carry it through a double. Those of partitioned queues are larger
// than that, and go as text.
func encodeSequence(w *writer, n int64) {
	switch {
	case n == 0:
	case n >= -largestExact && n <= largestExact:
		w.number("sequenceNumber", n)
	default:
		w.string("sequenceNumber", strconv.FormatInt(n, 10))
	}
}

// encodeTime writes a time in UTC, unless it is not known or such that JSON has no form for it.
func encodeTime(w *writer, name string, t time.Time) {
	if t.IsZero() {
		return
	}
	if text, err := t.UTC().MarshalText(); err == nil {
		w.string(name, string(text))
	}
}

// encodeParts writes the names of the further documents, and the times to live in seconds of those that may be gone one day.
func (r requestMember) encodeParts(w *writer) {
	parts := r.commit.Documents[min(1, len(r.commit.Documents)):]
	if len(parts) == 0 {
		return
	}
	expire := map[string]int64{}
	w.name("parts")
	w.text = append(w.text, '[')
	for i, d := range parts {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.quote(d.Name)
		if d.TTL > 0 {
			expire[d.Name] = int64(d.TTL / time.Second)
		}
	}
	w.text = append(w.text, ']')
	if len(expire) == 0 {
		return
	}
	w.name("partTTLs")
	w.begin()
	for _, name := range slices.Sorted(maps.Keys(expire)) {
		w.number(name, expire[name])
	}
	w.end()
}
