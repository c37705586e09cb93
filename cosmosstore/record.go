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

// document is a stored document by its members. A struct would take Id and REQUEST for members of its own.
type document map[string]json.RawMessage

// parseDocument reads a stored document, and reports whether the text is the one with this id.
func parseDocument(id string, body []byte) (document, bool) {
	var d document
	if json.Unmarshal(body, &d) != nil || stringOf(d[storable.MemberID]) != id {
		return nil, false
	}
	return d, true
}

// content returns the content of the handler, with its numbers as they were sent, or nil.
func (d document) content() []byte {
	kind := stringOf(d[storable.MemberType])
	if content := d[kind]; kind != "" && len(content) > 0 && content[0] == '{' {
		return restoreNumbers(content, textsOf(d[storable.MemberExact]))
	}
	return nil
}

// request returns the request member, nil when there is none.
func (d document) request() map[string]json.RawMessage {
	var r map[string]json.RawMessage
	if json.Unmarshal(d[storable.MemberRequest], &r) != nil {
		return nil
	}
	return r
}

// attempt returns the attempt that wrote the document, "" when it does not say.
func (d document) attempt() string { return stringOf(d.request()["attempt"]) }

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
	}}
	r.Stale = stringOf(req[memberState]) == stateStale
	r.Outcome = req["outcome"]
	r.noDocuments = string(req[memberDocuments]) == "0"
	if r.CommittedAt.IsZero() {
		r.CommittedAt = d.modifiedAt()
	}
	if json.Unmarshal(req["parts"], &r.Parts) != nil {
		r.Parts = nil // not an array of texts
	}
	if json.Unmarshal(req["partTTLs"], &r.expires) != nil {
		r.expires = nil
	}
	return r
}

func stringOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func textsOf(raw json.RawMessage) map[string]string {
	var texts map[string]string
	if json.Unmarshal(raw, &texts) != nil {
		return nil
	}
	return texts
}

// fingerprintOf needs both a whole hash and parameters: a hash alone, or a damaged one, says nothing. What the hash of another
// algorithm looks like is not known, and its parameters will be refused.
func fingerprintOf(hash, parameters json.RawMessage) *fingerprint.Fingerprint {
	f := fingerprint.Fingerprint{Hash: stringOf(hash)}
	if f.Hash == "" || json.Unmarshal(parameters, &f.Parameters) != nil || f.Parameters.Version == 0 {
		return nil
	}
	if f.Parameters.Algorithm == fingerprint.SHA256 && !fingerprint.ValidHash(f.Hash) {
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
