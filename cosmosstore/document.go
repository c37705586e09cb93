package cosmosstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// The bounds of the service, and what the store allows for.
const (
	// maxDepth is how deep the service lets a document nest, itself counted as one.
	maxDepth = 128
	// contentLevel is the level that the store adds: the content is a member of the document.
	contentLevel = 1
	// maxBytes is the size of an item, and of a request, that the service takes: 2 MB.
	maxBytes = 2 << 20
	// systemBytes allows for what the service adds to an item: _rid, _self, _etag, _attachments and _ts.
	systemBytes = 512
	// largestExact is the largest whole number up to which a double holds every whole number.
	largestExact = 1 << 53
)

// requestVersion is the version of the request member. A reader takes what it knows from any version.
const requestVersion = 1

// requestMember says which message a document came from. A sender cannot write it: his content is a member of its own.
type requestMember struct {
	Version        int                 `json:"version"`
	Key            string              `json:"key"`
	MessageID      string              `json:"messageId"`
	Hash           string              `json:"hash,omitempty"`
	Recipe         *fingerprint.Recipe `json:"recipe,omitempty"`
	Attempt        string              `json:"attempt"`
	SequenceNumber any                 `json:"sequenceNumber,omitempty"`
	EnqueuedAt     *time.Time          `json:"enqueuedAt,omitempty"`
	CommittedAt    time.Time           `json:"committedAt"`
	// Parts are the names of the further documents, in the guard alone.
	Parts []string `json:"parts,omitempty"`
	// PartTTLs are the times to live in seconds of those parts that have one, since they may be gone one day.
	PartTTLs map[string]int64 `json:"partTTLs,omitempty"`
	// Part and Guard are the name of a further document and the id of its guard, in that document alone.
	Part  string `json:"part,omitempty"`
	Guard string `json:"guard,omitempty"`
}

// guardRequest is the request member of the documents that stand for the whole message.
func guardRequest(c worker.Commit, now time.Time) requestMember {
	r := requestMember{
		Version: requestVersion, Key: c.Key.String(), MessageID: c.MessageID, Hash: c.Fingerprint.Hash,
		Recipe: &c.Fingerprint.Recipe, Attempt: c.Attempt, SequenceNumber: wholeNumber(c.SequenceNumber), CommittedAt: now.UTC(),
	}
	if !c.EnqueuedAt.IsZero() {
		at := c.EnqueuedAt.UTC()
		r.EnqueuedAt = &at
	}
	for _, d := range c.Documents[1:] {
		r.Parts = append(r.Parts, d.Name)
		if d.TTL > 0 {
			if r.PartTTLs == nil {
				r.PartTTLs = map[string]int64{}
			}
			r.PartTTLs[d.Name] = int64(d.TTL / time.Second)
		}
	}
	return r
}

// partRequest is the request member of a further document.
func partRequest(c worker.Commit, name string, now time.Time) requestMember {
	return requestMember{
		Version: requestVersion, Key: c.Key.String(), MessageID: c.MessageID, Attempt: c.Attempt, CommittedAt: now.UTC(),
		Part: name, Guard: c.DocumentID,
	}
}

// wholeNumber is a number as JSON can carry it through a double. The sequence numbers of partitioned queues are larger
// than that, and go as text.
func wholeNumber(n int64) any {
	switch {
	case n == 0:
		return nil
	case n >= -largestExact && n <= largestExact:
		return n
	}
	return strconv.FormatInt(n, 10)
}

// envelope is one document before it is written out.
type envelope struct {
	id        string
	partition string
	kind      string // the type
	content   []byte // one JSON object, or nil
	exact     map[string]string
	request   requestMember
	ttl       int64
}

// encode writes the document as JSON. The content goes in byte for byte.
func (e envelope) encode(path []string) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(e.content) + 1024)
	b.WriteByte('{')
	if err := member(&b, memberID, e.id); err != nil {
		return nil, err
	}
	if len(path) > 1 || path[0] != memberID {
		if err := member(&b, path[0], nest(path[1:], e.partition)); err != nil {
			return nil, err
		}
	}
	if err := member(&b, memberType, e.kind); err != nil {
		return nil, err
	}
	if e.content != nil {
		name, err := json.Marshal(e.kind)
		if err != nil {
			return nil, err
		}
		b.WriteByte(',')
		b.Write(name)
		b.WriteByte(':')
		b.Write(e.content)
	}
	if len(e.exact) > 0 {
		if err := member(&b, memberExact, e.exact); err != nil {
			return nil, err
		}
	}
	if err := member(&b, memberRequest, e.request); err != nil {
		return nil, err
	}
	if e.ttl > 0 {
		if err := member(&b, memberTTL, e.ttl); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// nest wraps a value into one object per name.
func nest(path []string, value any) any {
	for i := len(path) - 1; i >= 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return value
}

func member(b *bytes.Buffer, name string, value any) error {
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	n, err := json.Marshal(name)
	if err != nil {
		return err
	}
	v, err := json.Marshal(value)
	if err != nil {
		return err
	}
	b.Write(n)
	b.WriteByte(':')
	b.Write(v)
	return nil
}

// checkContent refuses what can never be stored, and returns the numbers that a double would round.
func checkContent(d worker.Document) (map[string]string, error) {
	name := d.Name
	if name == "" {
		name = d.Type
	}
	trimmed := bytes.TrimLeft(d.Content, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, handlerFault("content of document %q that is not one JSON object", name)
	}
	err := fingerprint.Check(d.Content, fingerprint.Limits{MaxDepth: maxDepth - contentLevel})
	if p, ok := errors.AsType[*fingerprint.Problem](err); ok {
		return nil, &worker.UnstorableError{Reason: problemReason(p.Kind), Cause: err,
			Detail: fmt.Sprintf("The content of document %q cannot be stored: %s. Correct the sender, or the handler.", name,
				strings.TrimPrefix(p.Error(), "fingerprint: "))}
	}
	if err != nil {
		return nil, never(reason.NeverStorable, "The content of document %q cannot be stored: %v. Correct the handler.", name, err)
	}
	return exactNumbers(d.Content)
}

func problemReason(k fingerprint.ProblemKind) string {
	switch k {
	case fingerprint.TooDeep:
		return reason.TooDeep
	case fingerprint.DuplicateName:
		return reason.DuplicateName
	case fingerprint.NumberOutOfRange:
		return reason.NumberOutOfRange
	case fingerprint.InvalidUTF8:
		return reason.InvalidUTF8
	case fingerprint.NotJSON:
		return reason.NotJSON
	}
	return reason.NeverStorable
}

// handlerFault is the error for documents that no message could make storable: the handler made them so.
func handlerFault(format string, args ...any) error {
	return never(reason.InvalidDocuments, "The handler returned "+format+". Mend the handler, and reprocess this message.", args...)
}

// never is the error for a message that can never be stored.
func never(word, format string, args ...any) error {
	return &worker.UnstorableError{Reason: word, Detail: fmt.Sprintf(format, args...)}
}
