package cosmosstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
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
)

// envelope is one document before it is written out.
type envelope struct {
	id        string
	partition string
	kind      string // the type
	content   []byte // one JSON object, or nil
	exact     map[string]string
	request   *requestMember // nil for a journal entry, which has a time instead
	at        time.Time
	ttl       int64
}

// encode writes the document as JSON. The content goes in byte for byte.
func (e envelope) encode(path []string) []byte {
	w := writer{make([]byte, 0, len(e.content)+768)}
	w.begin()
	w.string(memberID, e.id)
	if len(path) > 1 || path[0] != memberID {
		w.nested(path, e.partition)
	}
	w.string(memberType, e.kind)
	if e.content != nil {
		w.raw(e.kind, e.content)
	}
	if len(e.exact) > 0 {
		w.name(memberExact)
		w.begin()
		for _, path := range slices.Sorted(maps.Keys(e.exact)) {
			w.string(path, e.exact[path])
		}
		w.end()
	}
	encodeTime(&w, memberAt, e.at)
	if e.request != nil {
		w.name(memberRequest)
		e.request.encode(&w)
	}
	if e.ttl > 0 {
		w.number(memberTTL, e.ttl)
	}
	w.end()
	return w.text
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
	found, err := fingerprint.Inexact(d.Content, fingerprint.Limits{MaxDepth: maxDepth - contentLevel})
	if p, ok := errors.AsType[*fingerprint.Problem](err); ok {
		cure := "Correct the sender, or the handler."
		if p.Kind == fingerprint.TooLarge {
			cure = "Send such numbers as strings, or with at most 15 digits."
		}
		return nil, &worker.UnstorableError{Reason: problemReason(p.Kind), Cause: err,
			Detail: fmt.Sprintf("The content of document %q cannot be stored: %s. %s", name, strings.TrimPrefix(p.Error(), "fingerprint: "), cure)}
	}
	if err != nil {
		return nil, never(reason.NeverStorable, "The content of document %q cannot be stored: %v. Correct the handler.", name, err)
	}
	return exactNumbers(found), nil
}

func problemReason(k fingerprint.ProblemKind) string {
	switch k {
	case fingerprint.TooDeep:
		return reason.TooDeep
	case fingerprint.TooLarge:
		return reason.TooLarge
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
