package amqpbroker

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/internal/wire"
)

// moreWait is how long to wait for another message once one has come.
const moreWait = 150 * time.Millisecond

// linkMessages is how many messages one link may hand out. The client library remembers each until it is settled on the link,
// which never happens here, so that a link is replaced before that adds up.
const linkMessages = 5000

// Lock locks messages from the front. See [deadletter.Broker].
func (b *Broker) Lock(ctx context.Context, most int, wait time.Duration) (messages []deadletter.LockedMessage, err error) {
	_, err = b.attempt(ctx, tries, func() (*connection, error) {
		setup, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
		defer cancel()
		c, err := b.with(setup, func(c *connection) error { return c.prepare(setup, b.source, most) })
		if err == nil {
			messages, err = c.receive(ctx, most, wait)
		}
		return c, err
	})
	return messages, err
}

// prepare attaches the receiver and gives it credit for most messages in all.
func (c *connection) prepare(ctx context.Context, source string, most int) error {
	if err := c.authorize(ctx, source); err != nil {
		return err
	}
	if c.receiver != nil && c.handed >= linkMessages && c.credit == 0 {
		_ = c.receiver.Close(ctx)
		c.receiver = nil
	}
	if c.receiver == nil {
		r, err := c.session.NewReceiver(ctx, source, &amqp.ReceiverOptions{Credit: -1, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
		if err != nil {
			return err
		}
		c.receiver, c.credit, c.handed = r, 0, 0
	}
	if more := most - c.credit; more > 0 {
		if err := c.receiver.IssueCredit(uint32(more)); err != nil {
			return err
		}
		c.credit += more
	}
	return nil
}

// receive waits for the first message as long as it may, and takes what follows at once. Nobody else uses the receiver. It
// leaves no credit behind: a message that came in while nobody looks would lose its lock before it is seen.
func (c *connection) receive(ctx context.Context, most int, wait time.Duration) ([]deadletter.LockedMessage, error) {
	var messages []deadletter.LockedMessage
	for len(messages) < most {
		waitCtx, cancel := context.WithTimeout(ctx, wait)
		m, err := c.receiver.Receive(waitCtx, nil)
		timeUp := waitCtx.Err() != nil
		cancel()
		switch {
		case err == nil:
			c.credit--
			c.handed++
			messages = append(messages, locked(m))
			wait = moreWait
		case timeUp && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return append(messages, c.detach(ctx)...), nil
		case len(messages) > 0:
			// What is wrong shows again at the next call.
			return messages, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			return nil, err
		}
	}
	return messages, nil
}

// locked reads which message a delivery locks. The delivery tag is the lock token in the order of bytes of a .NET GUID; the
// other order is that of the management requests.
func locked(received *amqp.Message) deadletter.LockedMessage {
	m, _, _ := wire.Decode(wire.Unwrap(received.Data))
	l := deadletter.LockedMessage{Sequence: deadletter.SequenceOf(m)}
	if t := received.DeliveryTag; len(t) == len(l.Lock) {
		copy(l.Lock[:], t)
		for _, swap := range [][2]int{{0, 3}, {1, 2}, {4, 5}, {6, 7}} {
			l.Lock[swap[0]], l.Lock[swap[1]] = l.Lock[swap[1]], l.Lock[swap[0]]
		}
	}
	if id, ok := m.DeliveryAnnotations["x-opt-lock-token"].(amqp.UUID); ok {
		l.Lock = deadletter.LockToken(id)
	}
	return l
}

// LockDeferred locks a deferred message by its number. See [deadletter.Broker].
func (b *Broker) LockDeferred(ctx context.Context, sequence int64) (deadletter.LockedMessage, error) {
	// A request whose answer is lost leaves a lock behind, so it is not repeated.
	reply, err := b.manage(ctx, b.source, 1, "receive-by-sequence-number", map[string]any{
		"sequence-numbers": []int64{sequence}, "receiver-settle-mode": uint32(1),
	})
	if err != nil {
		return deadletter.LockedMessage{}, asLock(err)
	}
	body, _ := reply.Value.(map[string]any)
	messages, _ := body["messages"].([]any)
	if len(messages) != 1 {
		return deadletter.LockedMessage{}, deadletter.ErrLockLost
	}
	fields, _ := messages[0].(map[string]any)
	token, ok := fields["lock-token"].(amqp.UUID)
	if !ok {
		return deadletter.LockedMessage{}, errLockAnswer
	}
	return deadletter.LockedMessage{Sequence: sequence, Lock: deadletter.LockToken(token)}, nil
}

var errLockAnswer = errors.New("amqpbroker: the broker's answer for a deferred message has no lock token in it")

// Unlock ends the locking. See [deadletter.Broker].
func (b *Broker) Unlock(ctx context.Context) error {
	var locks []deadletter.LockToken
	_, err := b.with(ctx, func(c *connection) error {
		if c.receiver == nil {
			return nil
		}
		for _, m := range c.detach(ctx) {
			locks = append(locks, m.Lock)
		}
		return nil
	})
	return errors.Join(err, b.Release(ctx, locks))
}

// drainTime bounds the taking back of credit. A broker that does not know how strands what it sends meanwhile until its lock
// ends.
const drainTime = 2 * time.Second

// detach takes back the credit, ends the link, and returns messages that came meanwhile.
func (c *connection) detach(ctx context.Context) []deadletter.LockedMessage {
	r := c.receiver
	c.receiver = nil
	if c.credit > 0 {
		drain, cancel := context.WithTimeout(ctx, drainTime)
		_ = r.DrainCredit(drain, nil)
		cancel()
	}
	_ = r.Close(ctx)
	var left []deadletter.LockedMessage
	for m := r.Prefetched(); m != nil; m = r.Prefetched() {
		left = append(left, locked(m))
	}
	return left
}
