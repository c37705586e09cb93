package cosmosstore

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
)

// errNotTheDocument is the error for a reply that is not the document that was asked for.
var errNotTheDocument = errors.New("the reply is not the document that was asked for")

// stored is a stored document that stands for a message.
type stored struct {
	worker.Record
	// expires are the times to live of its parts in seconds, by name, for those that have one.
	expires map[string]int64
}

// expired reports whether a part is gone because its time was up. A minute is left for clocks that differ.
func (s stored) expired(part string, now time.Time) bool {
	ttl, ok := s.expires[part]
	return ok && now.Sub(s.CommittedAt) > time.Duration(ttl)*time.Second-time.Minute
}

// parseRecord reads a stored document. It is lenient: whoever wrote the document, what is missing or of another type is
// left empty, and the judgement says what that means. It fails only when the text is not the document with this id.
func parseRecord(id string, body []byte) (stored, error) {
	var doc map[string]json.RawMessage
	if json.Unmarshal(body, &doc) != nil || stringOf(doc[memberID]) != id {
		return stored{}, errNotTheDocument
	}
	r := stored{Record: worker.Record{DocumentID: id, Type: stringOf(doc[memberType]), Content: contentOf(doc)}}
	var req map[string]json.RawMessage
	if json.Unmarshal(doc[memberRequest], &req) != nil {
		req = nil
	}
	r.Unknown = unknownFormat(req)
	r.Program, r.ProgramVersion = stringOf(req["program"]), stringOf(req["programVersion"])
	r.Key = stringOf(req["key"])
	r.Attempt = stringOf(req["attempt"])
	r.MessageID = stringOf(req["messageId"])
	r.Fingerprint = fingerprintOf(req["hash"], req["parameters"])
	r.SequenceNumber = wholeNumberOf(req["sequenceNumber"])
	r.EnqueuedAt = timeOf(req["enqueuedAt"])
	r.CommittedAt = timeOf(req["committedAt"])
	if r.CommittedAt.IsZero() {
		if ts := wholeNumberOf(doc["_ts"]); ts > 0 {
			r.CommittedAt = time.Unix(ts, 0).UTC()
		}
	}
	if json.Unmarshal(req["parts"], &r.Parts) != nil {
		r.Parts = nil // not an array of texts
	}
	if json.Unmarshal(req["partTTLs"], &r.expires) != nil {
		r.expires = nil
	}
	return r, nil
}

// contentOf returns the content of a stored document, with its numbers as they were sent, or nil.
func contentOf(doc map[string]json.RawMessage) []byte {
	kind := stringOf(doc[memberType])
	if content := doc[kind]; kind != "" && len(content) > 0 && content[0] == '{' {
		return restoreNumbers(content, textsOf(doc[memberExact]))
	}
	return nil
}

// attemptOf returns the attempt in a stored document, and false when the text is not the document with this id.
func attemptOf(id string, body []byte) (string, bool) {
	var doc map[string]json.RawMessage // a struct would take Id and REQUEST for members of its own
	if json.Unmarshal(body, &doc) != nil || stringOf(doc[memberID]) != id {
		return "", false
	}
	var req map[string]json.RawMessage
	if json.Unmarshal(doc[memberRequest], &req) != nil {
		return "", true
	}
	return stringOf(req["attempt"]), true
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
