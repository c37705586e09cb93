package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/brokerfault"
)

// A Sender sends messages to the queues and topics of one namespace. It is safe for concurrent use.
type Sender interface {
	// Send sends messages to one queue or topic in their order. It returns nil only when the broker has taken all of them.
	Send(ctx context.Context, to string, messages []*azservicebus.AMQPAnnotatedMessage) error
	// Close ends the connection. A call of Send after it opens another.
	Close(ctx context.Context) error
}

// NewSender returns a sender on a connection of its own. It asks client for a new client whenever the connection has failed, so
// client must make one each time.
func NewSender(client func() (*azservicebus.Client, error)) Sender {
	return &sdkSender{client: client}
}

type sdkSender struct {
	client func() (*azservicebus.Client, error)

	mu      sync.Mutex
	current *senders // nil: the next call opens a connection
}

// senders are those of one connection.
type senders struct {
	client *azservicebus.Client
	mu     sync.Mutex
	byName map[string]*azservicebus.Sender
}

// Send implements [Sender].
func (s *sdkSender) Send(ctx context.Context, to string, messages []*azservicebus.AMQPAnnotatedMessage) error {
	c, err := s.connection()
	if err != nil {
		return err
	}
	if err := c.send(ctx, to, messages); err != nil {
		if unusable(err) {
			s.drop(c)
		}
		return err
	}
	return nil
}

// unusable reports whether an error may be that of the connection, which another takes the place of. The client repairs most
// itself, but not all: see [Broker].
func unusable(err error) bool {
	switch brokerfault.Of(err) {
	case brokerfault.NotFound, brokerfault.Unauthorized, brokerfault.TooLarge, brokerfault.Quota, brokerfault.Disabled, brokerfault.Throttled, brokerfault.NotAllowed:
		return false
	}
	return true
}

func (s *sdkSender) connection() (*senders, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current, nil
	}
	if s.client == nil {
		return nil, errors.New("NewSender was given no function that makes clients")
	}
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	s.current = &senders{client: client, byName: map[string]*azservicebus.Sender{}}
	return s.current, nil
}

// drop gives a connection up, and closes it beside the work.
func (s *sdkSender) drop(c *senders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != c {
		return
	}
	s.current = nil
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), senderCloseTime)
		defer cancel()
		_ = c.client.Close(ctx) // it was given up since it does not work
	}()
}

// senderCloseTime bounds the closing of a connection that is given up.
const senderCloseTime = 5 * time.Second

// Close implements [Sender].
func (s *sdkSender) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil
	}
	c := s.current
	s.current = nil
	return c.client.Close(ctx)
}

func (c *senders) to(name string) (*azservicebus.Sender, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.byName[name]; s != nil {
		return s, nil
	}
	s, err := c.client.NewSender(name, nil)
	if err == nil {
		c.byName[name] = s
	}
	return s, err
}

// send sends messages in as few batches as they fit. All messages of a batch have one session and partition key, which a
// partitioned queue demands.
func (c *senders) send(ctx context.Context, to string, messages []*azservicebus.AMQPAnnotatedMessage) error {
	s, err := c.to(to)
	if err != nil {
		return err
	}
	for len(messages) > 0 {
		batch, err := s.NewMessageBatch(ctx, nil)
		if err != nil {
			return err
		}
		n := 0
		for n < len(messages) && placeOf(messages[n]) == placeOf(messages[0]) {
			if err = batch.AddAMQPAnnotatedMessage(messages[n], nil); err != nil {
				break
			}
			n++
		}
		if n == 0 {
			return err
		}
		if err := s.SendMessageBatch(ctx, batch, nil); err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

// placeOf is what messages of one batch have in common.
func placeOf(m *azservicebus.AMQPAnnotatedMessage) (place [2]string) {
	if m.Properties != nil && m.Properties.GroupID != nil {
		place[0] = *m.Properties.GroupID
	}
	place[1], _ = m.MessageAnnotations["x-opt-partition-key"].(string)
	return place
}
