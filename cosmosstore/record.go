package cosmosstore

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
)

// stored is the record of a message as it is stored.
type stored struct {
	worker.Record
	// expires are the times to live of its parts in seconds, by name, for those that have one.
	expires map[string]int64
	// noDocuments tells that the message created no documents.
	noDocuments bool
}

// expired reports whether a part is gone because its time was up. A minute is left for clocks that differ.
func (s stored) expired(part string, now time.Time) bool {
	ttl, ok := s.expires[part]
	return ok && now.Sub(s.CommittedAt) > time.Duration(ttl)*time.Second-time.Minute
}

// parseDocument reads a stored document, and reports whether the text is the one with this id.
func parseDocument(id string, body []byte) (document, bool) {
	d := membersOf(body)
	return d, d != nil && stringOf(d[storable.MemberID]) == id
}

// content returns the content of the handler, with its numbers as they were sent, or nil.
func (d document) content() []byte {
	kind := stringOf(d[storable.MemberType])
	if content := d[kind]; kind != "" && len(content) > 0 && content[0] == '{' {
		return d.restored(content)
	}
	return nil
}

// restored puts the texts of numbers that the service has rounded back into a part of the document. What was changed into
// something else stays as it is.
func (d document) restored(content []byte) []byte {
	var exact []fingerprint.Exact
	for path, text := range valueOf[map[string]string](d[storable.MemberExact]) {
		exact = append(exact, fingerprint.Exact{Path: path, Text: text})
	}
	restored, err := fingerprint.Restore(content, exact)
	if err != nil {
		return content
	}
	return restored
}

// request returns the request member, nil when there is none.
func (d document) request() map[string]json.RawMessage {
	return valueOf[map[string]json.RawMessage](d[storable.MemberRequest])
}

// attempt returns the attempt that wrote the document, "" when it does not say.
func (d document) attempt() string { return stringOf(d.request()["attempt"]) }

// etag returns the ETag of the document.
func (d document) etag() string { return stringOf(d["_etag"]) }

// modifiedAt returns when the service wrote the document last, in whole seconds.
func (d document) modifiedAt() time.Time {
	if ts := wholeNumberOf(d["_ts"]); ts > 0 {
		return time.Unix(ts, 0).UTC()
	}
	return time.Time{}
}

// record reads what the document says of its message. It is lenient, since any program may have written the document: what is
// missing or of another type is left empty, and the judgement says what that means.
func (d document) record() stored {
	req := d.request()
	r := stored{Record: worker.Record{
		DocumentID: stringOf(d[storable.MemberID]), Type: stringOf(d[storable.MemberType]), Content: d.content(), Unknown: unknownFormat(req),
		Key: stringOf(req["key"]), Attempt: stringOf(req["attempt"]), MessageID: stringOf(req["messageId"]),
		Program: stringOf(req["program"]), ProgramVersion: stringOf(req["programVersion"]),
		Fingerprint: fingerprintOf(req["hash"], req["parameters"]), SequenceNumber: wholeNumberOf(req["sequenceNumber"]),
		EnqueuedAt: timeOf(req["enqueuedAt"]), CommittedAt: timeOf(req["committedAt"]),
		Stale: stringOf(req[memberState]) == stateStale, Outcome: req["outcome"], Outbox: string(req["outbox"]) == "true", Parts: valueOf[[]string](req["parts"]),
	}}
	if stringOf(req[memberState]) == stateClaimed {
		r.Claim = d.claim(req)
		return r
	}
	r.noDocuments = string(req["documents"]) == "0"
	r.expires = valueOf[map[string]int64](req["partTTLs"])
	if r.CommittedAt.IsZero() {
		r.CommittedAt = d.modifiedAt()
	}
	return r
}

// valueOf decodes a value. One that is absent or of another type is the zero value.
func valueOf[T any](raw json.RawMessage) T {
	var v, none T
	if json.Unmarshal(raw, &v) != nil {
		return none
	}
	return v
}

func stringOf(raw json.RawMessage) string { return valueOf[string](raw) }

// fingerprintOf needs both a whole hash and parameters: a hash alone, or a damaged one, says nothing. What the hash of another
// algorithm looks like is not known, and its parameters will be refused.
func fingerprintOf(hash, parameters json.RawMessage) *fingerprint.Fingerprint {
	f := fingerprint.Fingerprint{Hash: stringOf(hash), Parameters: valueOf[fingerprint.Parameters](parameters)}
	if f.Hash == "" || f.Parameters.Version == 0 || f.Parameters.Algorithm == fingerprint.SHA256 && !fingerprint.ValidHash(f.Hash) {
		return nil
	}
	return &f
}

// wholeNumberOf reads a whole number, or the text of one.
func wholeNumberOf(raw json.RawMessage) int64 {
	text := stringOf(raw)
	if text == "" {
		text = string(raw)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func timeOf(raw json.RawMessage) time.Time {
	t, err := time.Parse(time.RFC3339Nano, stringOf(raw))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
