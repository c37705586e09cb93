// Package storable holds the rules of Cosmos DB, and of the form in which package cosmosstore keeps documents, that need no
// container to be checked. The store and the store of tests share it, so that a test finds what the store will refuse.
package storable

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// The bounds of the service.
const (
	// MaxBytes is the size of an item, and of a request, that the service takes: 2 MB.
	MaxBytes = 2 << 20
	// MaxOperations is how many operations the service takes in one batch.
	MaxOperations = 100
	// maxTTL is the longest time to live.
	maxTTL = math.MaxInt32 * time.Second
	// maxDepth is how deep the service lets a document nest, itself counted as one.
	maxDepth = 128
	// contentLevel is the level that the store adds: the content is a member of the document.
	contentLevel = 1
	// maxType is the longest name of a type in bytes.
	maxType = 128
)

// The members that the store writes into every document, beside the partition key value and the content.
const (
	MemberID      = "id"
	MemberType    = "type"
	MemberRequest = "request"
	MemberExact   = "exactNumbers"
	MemberTTL     = "ttl"
)

// Reserved reports whether a member name belongs to the store or to the service, so that it can be neither the type of a
// document nor the beginning of the partition key path.
func Reserved(name string) bool {
	return slices.Contains([]string{MemberID, MemberType, MemberRequest, MemberExact, MemberTTL}, name) || strings.HasPrefix(name, "_")
}

// Check refuses a commit that no container can hold, but for its contents: see [CheckContent]. The error is a
// [worker.UnstorableError].
func Check(c worker.Commit) error {
	if len(c.Documents) > 0 {
		if err := worker.CheckDocuments(c.Documents); err != nil {
			return HandlerFault("%v", err)
		}
	}
	if problem := IDProblem(c.DocumentID); problem != "" {
		return Never(reason.NeverStorable, "The document id %+q %s. Take it from package identity.", c.DocumentID, problem)
	}
	for _, d := range c.Documents {
		if problem := TypeProblem(d.Type); problem != "" {
			return HandlerFault("a document whose type %+q %s", d.Type, problem)
		}
		if problem := TTLProblem(d.TTL); problem != "" {
			return HandlerFault("a document of type %+q whose time to live %s", d.Type, problem)
		}
	}
	for _, change := range c.Changes {
		if problem := IDProblem(change.ID); problem != "" {
			return HandlerFault("a change of document %+q, whose id %s", change.ID, problem)
		}
		if problem := TTLProblem(change.TTL); problem != "" {
			return HandlerFault("a change of document %+q whose time to live %s", change.ID, problem)
		}
	}
	if len(c.Outcome) > 0 && !json.Valid(c.Outcome) {
		return HandlerFault("an outcome that is no JSON")
	}
	return nil
}

// TypeProblem says why no document can have a type of this name, or "".
func TypeProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not UTF-8 text"
	case len(name) > maxType:
		return fmt.Sprintf("has %d bytes, and may have %d", len(name), maxType)
	case Reserved(name):
		return "is reserved"
	}
	return ""
}

// TTLProblem says why no document can have this time to live, or "". Zero is none.
func TTLProblem(d time.Duration) string {
	switch {
	case d < 0:
		return fmt.Sprintf("%v is negative", d)
	case d%time.Second != 0:
		return fmt.Sprintf("%v is not in whole seconds", d)
	case d > maxTTL:
		return fmt.Sprintf("%v is longer than the service allows", d)
	}
	return ""
}

// IDProblem says why an id addresses another resource, or would be read by a gateway otherwise than it was meant, or "". The ids
// of package identity have no problem.
func IDProblem(id string) string {
	switch {
	case id == "":
		return "is empty"
	case id == ".", id == "..":
		return "addresses another resource"
	case len(id) > identity.MaxPartID:
		return fmt.Sprintf("has %d bytes, and may have %d", len(id), identity.MaxPartID)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7F || strings.ContainsRune(`/\?#%"`, r) }):
		return "holds a character that must be escaped"
	}
	return ""
}

// HandlerFault is the error for effects that no message could make storable: the handler made them so.
func HandlerFault(format string, args ...any) error {
	return Never(reason.InvalidEffects, "The handler returned "+format+". Fix the handler, and reprocess this message.", args...)
}

// Never is the error for a message that can never be stored, with a code of package reason.
func Never(code, format string, args ...any) error {
	return &worker.UnstorableError{Reason: code, Detail: fmt.Sprintf(format, args...)}
}

// TargetMissing is the error for a patch of a document that is not stored. It may come later, as when messages overtake each
// other, so the message is tried again.
func TargetMissing(id string) error {
	return &worker.UncertainError{Reason: reason.ChangeTargetMissing, Detail: fmt.Sprintf("Document %+q, which the message changes, is not stored. "+
		"Nothing of this message was stored. When the document has come, or was created by hand, reprocess this message.", id)}
}
