package worker

import (
	"context"
	"errors"
	"time"
)

// ErrClaimLost is the cause with which the context of a handler ends when another attempt has taken over the claim under which
// it runs. What it returns is discarded.
var ErrClaimLost = errors.New("worker: another attempt has taken over the claim of the message")

// ClaimConfig says whether and how a message is claimed before its handler runs. Claims are for handlers that have effects outside
// of the store, such as a payment, which no transaction can make once. The record of the message is stored as in progress
// first, and completed in the transaction of the effects. It needs a store that keeps inbox records of their own, and costs one
// write more for each message.
type ClaimConfig struct {
	// Lease is how long a claim lasts that is not renewed, by the clock of the store, in whole seconds. It is renewed while the
	// handler runs and the lock of the message is held. A worker that dies holds its message up for so long. At least three times
	// StoreTimeout. Zero is no claims.
	Lease time.Duration
	// OnExpired says what is done about a claim whose lease has ended. Defaults to [TakeOver].
	OnExpired ClaimPolicy
}

// A ClaimPolicy says what is done about a message whose earlier attempt has ended and may have got half way.
type ClaimPolicy int

const (
	// TakeOver runs the handler again, and tells it by [Message.Claim] that an earlier attempt may have got half way. It is
	// right where the handler may repeat itself, as with a [Message.IdempotencyKey].
	TakeOver ClaimPolicy = iota
	// Intervene dead-letters the message as ClaimExpired, for a person to find out what happened.
	Intervene
)

// A Reconciler is a [Handler] that can find out whether an earlier attempt had its effect on another system. It is asked before
// another attempt takes over, whatever the policy. Its errors are treated like those of Handle.
type Reconciler interface {
	Reconcile(ctx context.Context, m Message) (Reconciliation, error)
}

// A Reconciliation is what a [Reconciler] found. The zero value is [Unknown].
type Reconciliation struct {
	found   finding
	effects Effects
}

type finding int

const (
	foundUnknown finding = iota
	foundDone
	foundNotDone
)

// Done says that the effect happened. The effects of the message are committed without another run of the handler; they may
// be an Outcome alone.
func Done(e Effects) Reconciliation {
	e.resolved = true
	return Reconciliation{foundDone, e}
}

// NotDone says that the effect did not happen, so that the handler can run as if nobody had begun.
func NotDone() Reconciliation { return Reconciliation{found: foundNotDone} }

// Unknown says that nobody can tell. The message is dead-lettered as ClaimExpired.
func Unknown() Reconciliation { return Reconciliation{} }

// An InDoubtError makes the next attempt one after an attempt that may have got half way. See [InDoubt].
type InDoubtError struct{ Err error }

func (e *InDoubtError) Error() string { return errorText(e.Err) }
func (e *InDoubtError) Unwrap() error { return e.Err }

// InDoubt wraps the error of a handler that does not know whether another system did what it was asked for, as when the answer
// was lost. Without it an error says that the handler had no effect, and its claim is released. It may be combined with
// [RetryAfter]. InDoubt of nil is nil.
func InDoubt(err error) error {
	if err == nil {
		return nil
	}
	return &InDoubtError{Err: err}
}

// A ClaimRecord is what a record in progress says of its claim, as it is written and as it is read.
type ClaimRecord struct {
	// Number counts the claims of the message, from 1.
	Number int
	// Lease is how long the claim lasts from Since on, in whole seconds. Zero: it has ended.
	Lease time.Duration
	// Released tells that the attempt ended without an effect, so that the record is as good as none.
	Released bool
	// ETag is the version of the record. A write replaces this version only; without one it creates the record.
	ETag string
	// Since is when the record was written, and Over tells that the lease had ended when it was read, both by the clock of the store.
	Since time.Time
	Over  bool
}
