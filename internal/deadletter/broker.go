package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

// Broker reaches a queue and its dead letters. It connects again by itself when a connection is lost; a lock outlives the
// connection on which it was made. It is safe for concurrent use, except that one goroutine at a time may lock.
type Broker interface {
	// Peek returns up to most messages from a sequence number on, in the order of their numbers, and touches nothing. No
	// messages and no error means that there are none from there on.
	Peek(ctx context.Context, from int64, most int) ([]*DeadLetter, error)
	// PeekQueue is Peek for the queue to which Send sends.
	PeekQueue(ctx context.Context, from int64, most int) ([]*DeadLetter, error)
	// Lock locks up to most messages from the front, waits for the first of them at most as long as wait, and returns none
	// when none came.
	Lock(ctx context.Context, most int, wait time.Duration) ([]LockedMessage, error)
	// LockDeferred locks a message that somebody has deferred. ErrLockLost means that it is gone, is not deferred, or is locked.
	LockDeferred(ctx context.Context, sequence int64) (LockedMessage, error)
	// Unlock ends the locking. It releases messages that arrived and were never returned by Lock.
	Unlock(ctx context.Context) error
	// Renew extends locks. ErrLockLost means that at least one of them is lost.
	Renew(ctx context.Context, locks []LockToken) error
	// Complete removes a locked message. ErrLockLost means that this call has not removed it; an earlier call with an
	// unknown outcome may have. Any other error leaves the outcome unknown.
	Complete(ctx context.Context, lock LockToken) error
	// Release releases locks at once, those that are not lost already.
	Release(ctx context.Context, locks []LockToken) error
	// Send sends an encoded message to the queue itself, byte for byte, and returns nil only when the broker has taken it.
	// ErrTooLarge means that it was not sent; any other error leaves that unknown.
	Send(ctx context.Context, encoded []byte) error
}

// The errors of a [Broker] that mean something to a review.
var (
	ErrLockLost = errors.New("deadletter: the lock is lost")
	ErrTooLarge = errors.New("deadletter: the message is larger than the queue takes")
)

// Pipeline is the worker's own way from a message to a judgement. [worker.Pipeline] implements it.
type Pipeline interface {
	// Preview reads and never writes.
	Preview(ctx context.Context, m *azservicebus.ReceivedMessage) worker.Result
	// Process commits.
	Process(ctx context.Context, m *azservicebus.ReceivedMessage) worker.Result
	// Resolve ends a claim that has expired.
	Resolve(ctx context.Context, m *azservicebus.ReceivedMessage, done bool, outcome []byte) worker.Result
	// Lookup returns the key of a message, whose body may be one that cannot be admitted, and what is stored under that key. The
	// error is a [*reason.Refusal] when there is no key, and [worker.ErrNotFound] when nothing is stored.
	Lookup(ctx context.Context, m *azservicebus.ReceivedMessage) (identity.Key, worker.Record, error)
}

var _ Pipeline = (*worker.Pipeline)(nil)
