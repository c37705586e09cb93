package worker

import (
	"cmp"
	"time"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

// A Document is one document that a handler wants created for its message.
type Document struct {
	// Name tells the documents of one message apart. The first document, the guard, has none; every other needs one that
	// is unique within the message, such as "line-1". It is UTF-8 text, as is the type.
	Name string
	// Type says what the document is, such as "order". The store keeps Content under this name.
	Type string
	// Content is one JSON object. Nothing in it can override what the store itself writes.
	Content []byte
	// TTL removes the document after this time, in whole seconds. Zero keeps it for ever. With the first document goes the
	// memory of the key, unless something else decides: a message that comes back after that is a new one.
	TTL time.Duration
}

// A Commit is what one delivery of a message wants committed: every document, or none.
type Commit struct {
	Key        identity.Key
	DocumentID string
	// Attempt is a nonce of this delivery, or of its claim. It stays the same when an ambiguous write is repeated, so that a delivery
	// recognises its own document, and is never used by another delivery or for another claim.
	Attempt        string
	Fingerprint    fingerprint.Fingerprint
	MessageID      string
	SequenceNumber int64
	EnqueuedAt     time.Time
	// Program and ProgramVersion name the program whose handler made Documents.
	Program        string
	ProgramVersion string
	// Partition is the partition key value of everything that is committed. Empty means DocumentID.
	Partition string
	// Documents are created. The first one is the inbox record, unless the store keeps another. The creation of the record
	// decides.
	Documents []Document
	// Changes, Version and Outcome are those of [Effects]. WithoutRecord tells that there is no inbox record.
	Changes       []Change
	Version       *Version
	Outcome       []byte
	WithoutRecord bool
	// Messages are kept until they are sent: see [Outbox]. Replay is how long they are kept after that.
	Messages []Sending
	Replay   time.Duration
	// Claim, for [Store.Commit], is the claim that the record is stored with and that is completed; for [Store.Claim], what is to
	// be stored. Nil without claims.
	Claim *ClaimRecord
}

// PartitionKey returns the partition key value of everything that is committed.
func (c Commit) PartitionKey() string { return cmp.Or(c.Partition, c.DocumentID) }

// A Record is the inbox record as the store has it.
type Record struct {
	DocumentID string
	// Key is the text of the key under which it was committed, empty when the document does not say.
	Key     string
	Attempt string
	// Program and ProgramVersion name the program that committed it, empty when the document does not say.
	Program        string
	ProgramVersion string
	// Unknown says in what way the record was written by a version of the product that this one does not understand, such as
	// "version 2" or "state claimed". Empty for a record that it does. Such a record is never judged equal.
	Unknown string
	// Fingerprint is nil when the document carries no usable hash.
	Fingerprint *fingerprint.Fingerprint
	Type        string
	// Content is the payload as the store returns it. Numbers may have been rounded by the store.
	Content        []byte
	MessageID      string
	SequenceNumber int64
	EnqueuedAt     time.Time
	CommittedAt    time.Time
	// Claim tells that the record is in progress, so that nothing is committed. Nil for every other record.
	Claim *ClaimRecord
	// Stale tells that the message was stale, so that nothing but the record was committed.
	Stale bool
	// Outcome is that of [Effects.Outcome].
	Outcome []byte
	// Outbox tells that messages were committed with it. See [Outbox.Pending] for whether they were sent.
	Outbox bool
	// Parts are the names of the further documents committed with the guard.
	Parts []string
	// MissingParts are those of Parts that the store does not have, no matter who removed them. Parts whose own TTL is over are
	// not among them.
	MissingParts []string
}

// An Outcome is what a store did with a [Commit].
type Outcome struct {
	// Created tells that this call committed everything.
	Created bool
	// Stale tells that the document of the Version has an equal or greater one, and that this call committed the record alone.
	Stale bool
	// Claim is the claim as it is stored now, when [Store.Claim] stored it.
	Claim *ClaimRecord
	// Existing is the guard document that stands in the way, to be judged. Nil when Created.
	Existing *Record
	// Blocking is the name of a document other than the guard that stands in the way although the guard does not.
	Blocking string
	// Calls is the number of requests sent, and Charge their request charge in request units.
	Calls  int
	Charge float64
}
