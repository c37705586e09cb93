package worker

import (
	"errors"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// A Judgement says what a commit came to. Every path that ends in "already committed" passes through [Judge].
type Judgement int

// The judgements. Created, Own, Redelivered and Duplicate mean that the documents of the message are known to be committed.
const (
	// Created: this call created every document.
	Created Judgement = iota + 1
	// Own: the documents were created by an earlier try of this very delivery, whose answer was lost.
	Own
	// Redelivered: the documents were committed by an earlier delivery of this very message, by its sequence number.
	Redelivered
	// Duplicate: equal content was committed for another message.
	Duplicate
	// Conflict: other content is stored under the key.
	Conflict
	// HashMissing: the stored document carries no hash that can be compared.
	HashMissing
	// OtherKey: the stored document belongs to another key.
	OtherKey
	// Blocked: a document other than the guard stands in the way.
	Blocked
	// Incomplete: the stored order is equal, but some of its documents are missing.
	Incomplete
	// UnknownRecord: a record is stored that this version cannot read, so that neither equal nor different is known.
	UnknownRecord
	// Stale: an equal or newer version is stored, and nothing but the record of this message was committed.
	Stale
	// InProgress: another attempt has claimed the key, and nothing is committed yet.
	InProgress
	// ClaimExpired: an attempt at equal content has claimed the key and has ended, so that it may have got half way.
	ClaimExpired
)

func (j Judgement) String() string {
	switch j {
	case Created:
		return "created"
	case Own:
		return "own write"
	case Redelivered:
		return "redelivered"
	case Duplicate:
		return "duplicate"
	case Conflict:
		return "conflict"
	case HashMissing:
		return "stored hash missing"
	case OtherKey:
		return "other key"
	case Blocked:
		return "blocked"
	case Incomplete:
		return "incomplete"
	case UnknownRecord:
		return "unknown record"
	case Stale:
		return "stale"
	case InProgress:
		return "in progress"
	case ClaimExpired:
		return "claim expired"
	}
	return "not judged"
}

// Committed reports whether the judgement proves that the documents of the message are committed.
func (j Judgement) Committed() bool {
	return j == Created || j == Own || j == Redelivered || j == Duplicate || j == Stale
}

// Rehash computes the fingerprint of the incoming message by parameters that was stored with an earlier one.
type Rehash func(fingerprint.Parameters) (fingerprint.Fingerprint, error)

// Judge says what the outcome of a commit means. It is a pure function: the order of its questions is the promise.
func Judge(c Commit, o Outcome, rehash Rehash) Judgement {
	switch {
	case o.Stale:
		return Stale
	case o.Created:
		return Created
	case o.Existing == nil && o.Blocking != "":
		return Blocked
	case o.Existing == nil:
		return 0
	}
	return JudgeRecord(c, *o.Existing, rehash)
}

// JudgeRecord judges a message against the document that is stored under its id.
func JudgeRecord(c Commit, r Record, rehash Rehash) Judgement {
	if r.Key != "" && r.Key != c.Key.String() {
		return OtherKey
	}
	if r.Unknown != "" {
		return UnknownRecord // a newer version may mean something else by every other member
	}
	if r.Claim != nil && !r.Claim.Over {
		return InProgress // whatever its content: it may be released yet
	}
	if r.Fingerprint == nil || r.Key == "" {
		return HashMissing
	}
	own := c.Attempt != "" && r.Attempt == c.Attempt
	if !own {
		arrived, err := rehash(r.Fingerprint.Parameters)
		switch {
		case errors.Is(err, fingerprint.ErrUnknownParameters):
			return HashMissing
		case err != nil:
			// The stored message had the parts that its parameters selects, and this one has not.
			return Conflict
		case arrived.Hash != r.Fingerprint.Hash:
			return Conflict
		}
	}
	if r.Claim != nil {
		return ClaimExpired
	}
	if len(r.MissingParts) > 0 {
		return Incomplete
	}
	switch {
	case own:
		return Own
	case sameMessage(c, r):
		return Redelivered
	}
	return Duplicate
}

// sameMessage reports whether a record was committed for the message of c itself. Sequence numbers are unique within a queue
// only, so the time counts too; stores keep it to the second at least.
func sameMessage(c Commit, r Record) bool {
	return c.SequenceNumber != 0 && r.SequenceNumber == c.SequenceNumber && c.EnqueuedAt.Unix() == r.EnqueuedAt.Unix()
}
