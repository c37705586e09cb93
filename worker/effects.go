package worker

import (
	"slices"
	"time"
)

// Effects are what a message does. A [Handler] returns them, and they are committed in one transaction with the record that
// the message was processed: all of them or none, and at most once for each key.
type Effects struct {
	// Documents are created. The first one is the inbox record of the message, unless the store keeps another.
	Documents []Document
	// Changes are made to documents in the partition of the message. They need a store that keeps inbox records of their own.
	Changes []Change
	// Version, when set, makes the message stale where a document has an equal or greater version already: then nothing of
	// this is done, and the message is completed with the outcome stale.
	Version *Version
	// Messages are sent once the effects are committed. They need [OutboxConfig.Sender] and a record.
	Messages []Outgoing
	// Outcome is a small JSON value that is kept in the inbox record, at most [MaxOutcome] bytes. It is shown to people and
	// programs that ask what a message came to.
	Outcome []byte

	ignored       string
	withoutRecord bool
	replay        time.Duration
	resolved      bool // see [Done]
}

// MaxOutcome bounds [Effects.Outcome] in bytes.
const MaxOutcome = 16 << 10

// Create returns the effects of a message that only creates documents.
func Create(documents ...Document) Effects { return Effects{Documents: documents} }

// Apply returns the effects of a message that only changes documents.
func Apply(changes ...Change) Effects { return Effects{Changes: changes} }

// Ignore returns the effects of a message that is none of this program's business. It is completed and counted under word,
// and nothing is stored, so that a repeat of it is ignored again. A word is made like that of [Reject]; when nothing of it
// remains it is [reason.Ignored].
func Ignore(word string) Effects { return Effects{ignored: wordOf(word, ignoredWord)} }

// ignoredWord is what a message is ignored as that the handler gave no word for.
const ignoredWord = "Ignored"

// Ignored returns the word of [Ignore], or "".
func (e Effects) Ignored() string { return e.ignored }

// WithoutRecord leaves the inbox record out. Only a message whose every effect may be repeated without harm can do so: an
// upsert of absolute state, best with a [Version]. Two messages with one key and different content are not told apart then.
func (e Effects) WithoutRecord() Effects {
	e.withoutRecord = true
	return e
}

// HasRecord reports whether an inbox record is stored with the effects.
func (e Effects) HasRecord() bool { return !e.withoutRecord && e.ignored == "" }

// A Version orders the messages that change one document. Deduplication alone is not ordering.
type Version struct {
	// Document is the id of the document. One of [Effects.Changes] changes it.
	Document string
	// Path is the JSON pointer of the version in the document, such as "/version". The handler sets the value there, too.
	Path string
	// Value is the version of this message: a whole number from 0 to 2^53-1.
	Value int64
}

// A ChangeKind says what a [Change] does.
type ChangeKind string

// The kinds of changes.
const (
	ChangeUpsert  ChangeKind = "upsert"
	ChangeReplace ChangeKind = "replace"
	ChangePatch   ChangeKind = "patch"
	ChangeDelete  ChangeKind = "delete"
)

// A Change is made to one document in the partition of the message, in the transaction of its inbox record. Make one with
// [Upsert], [Replace], [Patch] or [Delete].
type Change struct {
	Kind ChangeKind
	// ID is the document's own id, not one that is derived from the message.
	ID string
	// Content is the whole document, for an upsert and a replace. The store sets its id and its partition key.
	Content []byte
	// ETag, when set, must still be that of the document. Otherwise the handler runs again.
	ETag string
	// Operations are those of a patch, at most [MaxPatchOperations].
	Operations []PatchOperation
	// Condition is a filter predicate of Cosmos DB that the document must fulfil for a patch, such as
	// "from c where c.status = 'NEW'". Otherwise the handler runs again.
	Condition string
	// TTL removes an upserted or replaced document after this time, in whole seconds. Zero keeps it.
	TTL time.Duration
}

// MaxPatchOperations is the number of operations that Cosmos DB takes in one patch. A [Version] takes none of them.
const MaxPatchOperations = 10

// Upsert returns a change that creates a document or replaces it whole.
func Upsert(id string, content []byte) Change {
	return Change{Kind: ChangeUpsert, ID: id, Content: content}
}

// Replace returns a change that replaces a document if it still has this ETag, which a read of it gave.
func Replace(id string, content []byte, etag string) Change {
	return Change{Kind: ChangeReplace, ID: id, Content: content, ETag: etag}
}

// Patch returns a change of members of a document.
func Patch(id string, operations ...PatchOperation) Change {
	return Change{Kind: ChangePatch, ID: id, Operations: operations}
}

// Delete returns a change that deletes a document if it still has this ETag; an empty one deletes it whatever it has become.
func Delete(id, etag string) Change { return Change{Kind: ChangeDelete, ID: id, ETag: etag} }

// If returns a patch that is made only if the document fulfils a predicate. It must hold nothing that a sender chose: it is
// a piece of a query.
func (c Change) If(predicate string) Change {
	c.Condition = predicate
	return c
}

// A PatchKind says what a [PatchOperation] does.
type PatchKind string

// The kinds of patch operations.
const (
	PatchSet       PatchKind = "set"
	PatchAdd       PatchKind = "add"
	PatchReplace   PatchKind = "replace"
	PatchRemove    PatchKind = "remove"
	PatchIncrement PatchKind = "incr"
)

// A PatchOperation changes one member of a document.
type PatchOperation struct {
	Kind PatchKind
	// Path is a JSON pointer such as "/order/status" or, to append to an array, "/history/-".
	Path string
	// Value is encoded as JSON. A removal has none, and an increment has an int64.
	Value any
}

// Set sets a member, whether it exists or not.
func Set(path string, value any) PatchOperation { return PatchOperation{PatchSet, path, value} }

// Add adds a member, or an element to an array.
func Add(path string, value any) PatchOperation { return PatchOperation{PatchAdd, path, value} }

// Remove removes a member.
func Remove(path string) PatchOperation { return PatchOperation{Kind: PatchRemove, Path: path} }

// Increment adds to a number. It is safe with an inbox record only: what is repeated is then not done twice.
func Increment(path string, by int64) PatchOperation { return PatchOperation{PatchIncrement, path, by} }

// SetVersion returns e with a [Version]. Where a patch changes the document, it sets the value there, too; the content of an
// upsert has it already.
func (e Effects) SetVersion(document, path string, value int64) Effects {
	e.Version = &Version{Document: document, Path: path, Value: value}
	e.Changes = slices.Clone(e.Changes)
	for i, c := range e.Changes {
		if c.ID == document && c.Kind == ChangePatch {
			e.Changes[i].Operations = append(slices.Clone(c.Operations), Set(path, value))
		}
	}
	return e
}
