package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// OutboxConfig says where the messages of [Effects.Messages] go. The zero value is no messages.
type OutboxConfig struct {
	// Sender sends them. Nil refuses effects with messages. See [NewSender].
	Sender Sender
	// Destinations are the queues and topics that messages may go to. Any other is the handler's fault: a reply goes where its
	// request says, which may be anywhere.
	Destinations []string
	// MaxMessageBytes is what the destinations take. Defaults to 256 KB, the bound of the Standard tier.
	MaxMessageBytes int
	// SweepEvery is how often the store is searched for messages that no delivery has sent. Defaults to 1m.
	SweepEvery time.Duration
	// SweepAfter is how long nobody must have touched them then. It is longer than a delivery may take to send, so that nothing is
	// sent twice on purpose. Defaults to 1m.
	SweepAfter time.Duration
}

// An Outbox is what a [Store] is besides that keeps the messages of [Commit.Messages] until they are sent. It is safe for
// concurrent use; its errors are those of a store.
type Outbox interface {
	// Pending returns what is to be sent for a document id in a partition, or [ErrNotFound] when all was sent.
	Pending(ctx context.Context, partition, documentID string) (Unsent, error)
	// Overdue returns outboxes that nobody has touched for so long, by the store's clock, at most so many. Those that only wait for a
	// [Unsent.Replay] are not among them.
	Overdue(ctx context.Context, untouched time.Duration, most int) ([]Unsent, error)
	// TakeUp marks an outbox as touched now, so that no other worker sends it for a while. It fails with a [StateMovedError] when
	// another has been faster, or everything was sent.
	TakeUp(ctx context.Context, u Unsent) (Unsent, error)
	// Sent records that everything was sent. It is no error that another has done so before.
	Sent(ctx context.Context, u Unsent) error
}

// Unsent is what one commit left to be sent.
type Unsent struct {
	Partition, DocumentID string
	Messages              []Sending
	// Replay is how long the messages are kept once they were sent, and Replayed tells that they were: they are sent again to a
	// duplicate.
	Replay   time.Duration
	Replayed bool
	// Attempts counts how often a relay has taken it up.
	Attempts int
	// Age is how long ago it was committed, by the store's clock.
	Age time.Duration
	// ETag is the version of the outbox, empty when it is not known.
	ETag string
}

// takeMessages turns the messages of a handler into what is stored and sent.
func (p *Pipeline) takeMessages(ctx context.Context, m Message, e Effects) ([]Sending, error) {
	if err := p.messages.checkMessages(e.Messages, e.replay); err != nil {
		return nil, err
	}
	if len(e.Messages) > 0 && p.outbox == nil {
		return nil, errors.New("outgoing messages, and the store keeps none until they are sent: it is no worker.Outbox")
	}
	return sendings(ctx, m, e.Messages)
}

// toSend returns what a committed message still has to send, nil when there is nothing.
func (p *Pipeline) toSend(ctx context.Context, r Result) (*Unsent, error) {
	if r.Cause != CauseCommitted {
		return nil, nil
	}
	switch existing := r.Outcome.Existing; {
	case r.Judgement == Created || r.Judgement == Own && len(r.Commit.Messages) > 0:
		if len(r.Commit.Messages) == 0 {
			return nil, nil
		}
		return &Unsent{Partition: r.Commit.PartitionKey(), DocumentID: r.Commit.DocumentID, Messages: r.Commit.Messages, Replay: r.Commit.Replay}, nil
	case existing == nil || !existing.Outbox || p.outbox == nil:
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.storeTimeout)
	defer cancel()
	u, err := supervise.Call(ctx, p.pool, callGrace, func(ctx context.Context) (Unsent, error) {
		return p.outbox.Pending(ctx, r.Commit.PartitionKey(), r.Commit.DocumentID)
	}, nil)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &u, nil
}

// send sends what a committed message has to send. What cannot be sent now is left to the relay, which no delivery is needed for:
// it is committed, so the message is through all the same.
func (p *Pipeline) send(ctx context.Context, r Result) Result {
	u, err := p.toSend(ctx, r)
	if u == nil && err == nil {
		return r
	}
	if err == nil {
		err = p.posting.post(ctx, p.pool, *u)
	}
	if err != nil {
		r.Unsent, r.unsentErr = true, err
		return r
	}
	r.sent = u
	return r
}

// forget removes the outbox of a message whose messages were all sent. Until then the relay may send them again.
func (p *Pipeline) forget(ctx context.Context, r Result) error {
	if r.sent == nil || r.sent.Replayed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.storeTimeout)
	defer cancel()
	return supervise.Do(ctx, p.pool, callGrace, func(ctx context.Context) error { return p.outbox.Sent(ctx, *r.sent) })
}

// validate reports every fault of a config that has its defaults.
func (c OutboxConfig) validate(check func(ok bool, field, format string, args ...any)) {
	check(c.MaxMessageBytes > messageOverhead, "Outbox.MaxMessageBytes", "outbox message bytes are %d: give more than %d, such as 262144", c.MaxMessageBytes, messageOverhead)
	check(c.SweepEvery >= time.Second, "Outbox.SweepEvery", "outbox sweep every %v: below 1s the sweeps cost more than the messages", c.SweepEvery)
	check(c.SweepAfter >= 10*time.Second, "Outbox.SweepAfter", "outbox sweep after %v: a delivery may take 10s to send its messages, so give at least that", c.SweepAfter)
}

// describeUnsent says for people what is left of a message.
func describeUnsent(to string, err error) string {
	return fmt.Sprintf("%q cannot be sent to now: %v. What is committed is sent when it can; nothing is lost", to, err)
}
