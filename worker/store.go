package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store commits the documents of messages. Package storetest holds the contract that every implementation passes.
type Store interface {
	// Commit creates every document of c, or none. When the guard exists it returns the record for judgement and no error:
	// the store never decides whether two messages are the same. It repeats ambiguous writes by itself with the same
	// nonce while ctx allows, and reports what remains as one of the errors of this package; any other error counts as an
	// [UnavailableError], which blames no message. It is safe for concurrent use, also for one key from many processes.
	Commit(ctx context.Context, c Commit) (Outcome, error)
	// Claim stores the record of c in progress, as c.Claim says, and returns it as Outcome.Claim: without an ETag it creates it, or
	// replaces one that was released, counting on from its number; otherwise it replaces just that version. When another record is
	// stored it returns that for judgement. It recognises by c.Attempt what it has stored itself, and fails as Commit does. Commit
	// completes a claim: when c.Claim is no longer what is stored, it commits nothing and returns what is. A record that was released counts
	// as none for Commit and Find.
	Claim(ctx context.Context, c Commit) (Outcome, error)
	// Find returns the record of a document id in a partition, or ErrNotFound. An empty partition is the document id's own.
	Find(ctx context.Context, partition, documentID string) (Record, error)
	// Read returns a document of a partition by its own id, or ErrNotFound. It may be behind: the ETag of what it
	// returns protects a change, so that the handler runs again when a newer version is stored.
	Read(ctx context.Context, partition, id string) (State, error)
	// Ready reports whether the store can be used at all: nil, or an [UnavailableError] or [MisconfiguredError]. It is
	// called rarely, and by one goroutine at a time.
	Ready(ctx context.Context) error
}

// ErrNotFound is returned by [Store.Find] when nothing is stored under the id.
var ErrNotFound = errors.New("worker: no document under this id")

// UnavailableError means that the store cannot be used now. It says nothing about the message, and trips the breaker.
type UnavailableError struct {
	// RetryAfter is the wait that the store asked for; zero when it named none.
	RetryAfter time.Duration
	// Ambiguous tells that a write may have happened.
	Ambiguous bool
	Cause     error
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("store unavailable: %v", e.Cause) }
func (e *UnavailableError) Unwrap() error { return e.Cause }

// MisconfiguredError means that nothing can be stored until a person changes something: rights, container, account.
// No message is to blame, and none is settled for it.
type MisconfiguredError struct {
	// Fix says what to do.
	Fix   string
	Cause error
}

func (e *MisconfiguredError) Error() string { return fmt.Sprintf("%v. %s", e.Cause, e.Fix) }
func (e *MisconfiguredError) Unwrap() error { return e.Cause }

// UnstorableError means that the store can never take this message. It is dead-lettered at once.
type UnstorableError struct {
	// Reason is a word of package reason, and Detail what a person reads at the dead letter. Default to NeverStorable and to
	// the cause.
	Reason string
	Detail string
	Cause  error
}

func (e *UnstorableError) Error() string { return e.Reason + ": " + e.Detail }
func (e *UnstorableError) Unwrap() error { return e.Cause }

// StateMovedError means that a document is no longer as the handler read it: its ETag, a condition of a patch or its
// existence. Nothing was committed, and the handler runs again on what is stored now. It trips nothing.
type StateMovedError struct {
	// Document is the id of the document.
	Document string
	Cause    error
}

func (e *StateMovedError) Error() string {
	return fmt.Sprintf("document %q has changed since it was read: %v", e.Document, e.Cause)
}
func (e *StateMovedError) Unwrap() error { return e.Cause }

// UncertainError means that this message, and not the store as a whole, could not be committed or judged for a cause that
// may pass: a lagging replica, an expiring document, an answer without sense. The message is abandoned, and at its last
// delivery dead-lettered with Reason. It does not trip the breaker.
type UncertainError struct {
	// Reason is a word of package reason, and Detail what a person reads at the dead letter. Default to NeverStorable and to
	// the cause.
	Reason string
	Detail string
	// Refused tells that the store refused the write of this message while it answers probes as it should, so that its answer
	// does not say whether message or store is to blame. The engine decides: the message is to blame only once the store has
	// taken a write of another message since. Until then the error counts as an [UnavailableError].
	Refused bool
	Cause   error
}

func (e *UncertainError) Error() string { return e.Reason + ": " + e.Detail }
func (e *UncertainError) Unwrap() error { return e.Cause }
