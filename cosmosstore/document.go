package cosmosstore

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker/fingerprint"
)

// systemBytes allows for what the service adds to an item: _rid, _self, _etag, _attachments and _ts.
const systemBytes = 512

// neverExpires is the time to live of a document that outlives what the container has for all.
const neverExpires = -time.Second

// envelope is one document before it is written out.
type envelope struct {
	id        string
	partition string
	kind      string // the type
	content   []byte // one JSON object, or nil
	exact     []fingerprint.Exact
	request   *requestMember // nil for a journal entry, which has a time instead
	at        time.Time
	ttl       time.Duration
}

// encode writes the document as JSON. The content goes in byte for byte: encoding/json would escape and so lengthen it.
func (e envelope) encode(path []string) []byte {
	text := make([]byte, 0, len(e.content)+768)
	member := func(name string, value []byte) {
		text = append(append(text, ','), quote(name)...)
		text = append(append(text, ':'), value...)
	}
	member(storable.MemberID, quote(e.id))
	if len(path) > 1 || path[0] != storable.MemberID {
		member(path[0], nested(path[1:], e.partition))
	}
	member(storable.MemberType, quote(e.kind))
	if e.content != nil {
		member(e.kind, e.content)
	}
	if len(e.exact) > 0 {
		member(storable.MemberExact, encoded(exactTexts(e.exact)))
	}
	if at := timeText(e.at); at != "" {
		member(memberAt, quote(at))
	}
	if e.request != nil {
		member(storable.MemberRequest, encoded(e.request))
	}
	if e.ttl != 0 {
		member(storable.MemberTTL, strconv.AppendInt(nil, int64(e.ttl/time.Second), 10))
	}
	text[0] = '{' // in place of the first comma
	return append(text, '}')
}

// nested is a text as JSON, inside of one object for each name of the path.
func nested(path []string, value string) []byte {
	if len(path) == 0 {
		return quote(value)
	}
	return encoded(map[string]json.RawMessage{path[0]: nested(path[1:], value)})
}

// exactTexts are the texts of numbers by their JSON pointers.
func exactTexts(exact []fingerprint.Exact) map[string]string {
	texts := make(map[string]string, len(exact))
	for _, e := range exact {
		texts[e.Path] = e.Text
	}
	return texts
}

// encoded is JSON for a value of this package, none of which can fail.
func encoded(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}

// quote is the JSON of a text, at less cost than [encoded]. What is not UTF-8 becomes U+FFFD.
func quote(s string) []byte {
	text, _ := jsontext.AppendQuote(nil, s)
	return text
}

// timeText is a time in UTC, or "" when it is not known or such that JSON has no form for it.
func timeText(t time.Time) string {
	text, err := t.UTC().MarshalText()
	if t.IsZero() || err != nil {
		return ""
	}
	return string(text)
}
