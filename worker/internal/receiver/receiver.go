// Package receiver receives messages from one queue over a connection that it watches: it asks for no more than there is room
// for, finds a receiver that looks healthy and receives nothing, replaces one that fails, and isolates a message that the
// broker's client cannot read.
package receiver

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// A Client is what is needed of an [azservicebus.Receiver] in peek-lock mode, and what worker.Receiver is to adopters: this package
// must not import that one.
type Client interface {
	ReceiveMessages(ctx context.Context, maxMessages int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	PeekMessages(ctx context.Context, maxMessages int, o *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	RenewMessageLock(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.RenewMessageLockOptions) error
	CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.CompleteMessageOptions) error
	AbandonMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.AbandonMessageOptions) error
	DeadLetterMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.DeadLetterOptions) error
	Close(ctx context.Context) error
}

// Demand says how many messages there is room for. It is safe for concurrent use.
type Demand interface {
	// Room returns how many more messages may be in process. Changed is closed when the limit changes, and Freed holds a token
	// when a message is through.
	Room() int
	Changed() <-chan struct{}
	Freed() <-chan struct{}
	// InProcess returns the number of messages in process, and Has reports whether one is, by its sequence number.
	InProcess() int
	Has(sequence int64) bool
}

// Config says how a [Receiver] works.
type Config struct {
	// Open returns a new client on a connection of its own, and does no I/O.
	Open func(ctx context.Context) (Client, error)
	// LockDuration is that of the queue, and Concurrency the number of slots.
	LockDuration time.Duration
	Concurrency  int
	// Silence, Stuck and NotReceiving are those of worker.WatchdogConfig. HoldFor is how long another replica may hold a message
	// in its nth delivery.
	Silence      time.Duration
	Stuck        time.Duration
	NotReceiving time.Duration
	HoldFor      func(delivery uint32) time.Duration
	Demand       Demand
	// Late takes messages that nobody waits for any more, to abandon them.
	Late func([]*azservicebus.ReceivedMessage)
	// Notify is told of what happens. It is called from many goroutines.
	Notify func(Notice)
	// Pool makes the calls.
	Pool *supervise.Pool
}

// A Receiver receives from one queue. [Receiver.Run] is called once, and [Receiver.Withdraw] after it has returned; all other
// methods are safe for concurrent use.
type Receiver struct {
	config     Config
	connection *connection
	intake     *intake

	// The rest is for the goroutine of Run only.
	last         *Link // the link of the last receive call
	isolateUntil time.Time
	blind        peekFailure
	wary         bool      // messages came again, or a link was lost: the queue is looked at before the next call
	contacted    time.Time // when the queue was last seen to answer
	recheck      bool      // a message was seen waiting, and gets a moment to arrive
	suspicion    suspicion
}

// New returns a receiver that has not been started.
func New(c Config) *Receiver {
	return &Receiver{config: c, connection: newConnection(c), intake: newIntake(c.LockDuration, c.Concurrency)}
}

// Link returns the link in use, or opens one. It fails with [ErrClosed] after [Receiver.Close].
func (r *Receiver) Link(ctx context.Context) (*Link, error) { return r.connection.get(ctx) }

// Uses reports whether l is the link in use.
func (r *Receiver) Uses(l *Link) bool { return r.connection.uses(l) }

// Failed records a failure on the management link of l, and gives l up after some in a row.
func (r *Receiver) Failed(l *Link, err error) {
	if l.failures.Add(1) >= maxFailures {
		r.replace(l, ReplacedManagement, err)
	}
}

// LostEarly records that a lock was lost before its first renewal, of a message that was received at that time.
func (r *Receiver) LostEarly(received time.Time) { r.intake.lost(received, time.Now()) }

// Withdraw gives the link up when the broker may still push messages to it, and waits for that at most for d.
func (r *Receiver) Withdraw(d time.Duration) {
	if r.withdrawCredit() {
		r.connection.closing(d)
	}
}

// Close gives the link in use up for good, and waits for all closing, at most for d.
func (r *Receiver) Close(d time.Duration) { r.connection.close(d) }

// withdrawCredit gives the link up when the broker may still push messages to it, and reports whether it did.
func (r *Receiver) withdrawCredit() bool {
	l := r.last
	if l == nil || l.credit == 0 {
		return false
	}
	l.credit = 0
	return r.connection.retire(l)
}

// replace gives a link up because it does not work. The next call opens another, on a connection of its own.
func (r *Receiver) replace(l *Link, why string, err error) {
	if r.connection.retire(l) {
		r.config.Notify(Notice{Kind: Replaced, Reason: why, Err: err})
	}
}

// retryBackoff returns the backoff after receive calls that failed. The client has no wait of its own: against a broker that
// flaps, a bare loop attaches some 200 times a second.
func retryBackoff() backoff.Policy {
	return backoff.Policy{Base: 100 * time.Millisecond, Max: 30 * time.Second, Floor: 50 * time.Millisecond}
}
