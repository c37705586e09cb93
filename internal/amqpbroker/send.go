package amqpbroker

import (
	"context"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/wire"
)

// batchFormat marks a message whose data sections are encoded messages. It is the one way to send bytes that this client
// library does not encode itself.
const batchFormat = 0x80013700

// Send sends an encoded message to the queue. See [deadletter.Broker]. Attaching the link is repeated, the sending is not.
func (b *Broker) Send(ctx context.Context, encoded []byte) error {
	call, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
	defer cancel()
	var sender *amqp.Sender
	c, err := b.attempt(call, tries, func() (*connection, error) {
		return b.with(call, func(c *connection) (err error) {
			sender, err = c.sending(call, b.options.Queue)
			return err
		})
	})
	if err != nil {
		return err
	}
	err = asSend(sender.Send(call, envelope(encoded), nil))
	if !refusal(err) {
		b.drop(ctx, c, err)
	}
	return err
}

// senderIdle is how long a sender may rest and be used again. The service detaches links that rest for ten minutes, and a
// send on one of those could not be told from a send that was cut off.
const senderIdle = 4 * time.Minute

// sending returns the sender, and attaches it first when there is none.
func (c *connection) sending(ctx context.Context, queue string) (*amqp.Sender, error) {
	if err := c.authorize(ctx, queue); err != nil {
		return nil, err
	}
	if c.sender != nil && time.Since(c.sentAt) > senderIdle {
		_ = c.sender.Close(ctx)
		c.sender = nil
	}
	c.sentAt = time.Now()
	if c.sender == nil {
		s, err := c.session.NewSender(ctx, queue, &amqp.SenderOptions{
			SettlementMode: amqp.SenderSettleModeMixed.Ptr(), RequestedReceiverSettleMode: amqp.ReceiverSettleModeFirst.Ptr(),
		})
		if err != nil {
			return nil, err
		}
		c.sender = s
	}
	return c.sender, nil
}

// envelope wraps an encoded message as a batch of one. The outer message carries the sections by which a broker finds the
// session and the partition, as the batches of the SDKs do.
func envelope(encoded []byte) *amqp.Message {
	inner, _, _ := wire.Decode(encoded)
	out := &amqp.Message{Format: batchFormat, Data: [][]byte{encoded}}
	if p := inner.Properties; p != nil && p.GroupID != nil {
		out.Properties = &amqp.MessageProperties{MessageID: p.MessageID, GroupID: p.GroupID}
	}
	if key, ok := inner.Annotations["x-opt-partition-key"]; ok {
		out.Annotations = amqp.Annotations{"x-opt-partition-key": key}
	}
	return out
}
