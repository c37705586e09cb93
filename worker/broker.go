package worker

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// A Receiver is what the engine needs of an [azservicebus.Receiver] in peek-lock mode. The engine calls ReceiveMessages
// and PeekMessages from one goroutine each, the others from many.
type Receiver interface {
	ReceiveMessages(ctx context.Context, maxMessages int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	PeekMessages(ctx context.Context, maxMessages int, o *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	RenewMessageLock(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.RenewMessageLockOptions) error
	CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.CompleteMessageOptions) error
	AbandonMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.AbandonMessageOptions) error
	DeadLetterMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.DeadLetterOptions) error
	// Close ends the receiver and whatever was opened for it alone. The engine does not wait for it for ever.
	Close(ctx context.Context) error
}

var _ Receiver = (*azservicebus.Receiver)(nil)

// A Broker opens receivers.
type Broker interface {
	// Open returns a new receiver on a connection of its own: every receiver of one client shares its connection, and a
	// client closes it under all of them when one fails. The engine holds one receiver at a time, and opens another when
	// it has given up the first.
	Open(ctx context.Context) (Receiver, error)
	// Queue names the queue in spans, metrics and health, or the subscription by its path.
	Queue() string
}

// NewBroker returns a broker for one queue. It asks client for a new client for each receiver, and closes it with it, so
// client must make one each time.
func NewBroker(client func() (*azservicebus.Client, error), queue string) Broker {
	return &sdkBroker{client: client, queue: queue, receiver: func(c *azservicebus.Client) (*azservicebus.Receiver, error) {
		return c.NewReceiverForQueue(queue, nil)
	}, accept: func(ctx context.Context, c *azservicebus.Client) (*azservicebus.SessionReceiver, error) {
		return c.AcceptNextSessionForQueue(ctx, queue, nil)
	}}
}

// NewSubscriptionBroker returns a broker for one subscription of a topic, like [NewBroker]. Consumers of several subscriptions that
// share a container need names, or they take each other's messages for their own: see [admission.Config.Consumer].
func NewSubscriptionBroker(client func() (*azservicebus.Client, error), topic, subscription string) Broker {
	return &sdkBroker{client: client, queue: topic + "/Subscriptions/" + subscription, receiver: func(c *azservicebus.Client) (*azservicebus.Receiver, error) {
		return c.NewReceiverForSubscription(topic, subscription, nil)
	}, accept: func(ctx context.Context, c *azservicebus.Client) (*azservicebus.SessionReceiver, error) {
		return c.AcceptNextSessionForSubscription(ctx, topic, subscription, nil)
	}}
}

type sdkBroker struct {
	client   func() (*azservicebus.Client, error)
	queue    string
	receiver func(*azservicebus.Client) (*azservicebus.Receiver, error)
	accept   func(context.Context, *azservicebus.Client) (*azservicebus.SessionReceiver, error)
	last     atomic.Pointer[azservicebus.Client] // of the newest receiver
}

func (b *sdkBroker) Queue() string { return b.queue }

// Open does no I/O: the client connects with the first call.
func (b *sdkBroker) Open(ctx context.Context) (Receiver, error) {
	client, err := b.newClient()
	if err != nil {
		return nil, err
	}
	r, err := b.receiver(client)
	if err != nil {
		return nil, errors.Join(err, client.Close(ctx))
	}
	return &sdkReceiver{Receiver: r, client: client}, nil
}

// newClient asks for a client, and says so when the program gave a function that makes none.
func (b *sdkBroker) newClient() (*azservicebus.Client, error) {
	if b.client == nil {
		return nil, errors.New("NewBroker was given no function that makes clients")
	}
	client, err := b.client()
	switch {
	case err != nil:
		return nil, err
	case client == nil:
		return nil, errors.New("the function given to NewBroker returned neither a client nor an error")
	case b.last.Swap(client) == client:
		return nil, errors.New("the function given to NewBroker returned the client of the receiver before, which was closed with it: it must make a new client each time")
	}
	return client, nil
}

// sdkReceiver is a receiver that owns its client.
type sdkReceiver struct {
	*azservicebus.Receiver
	client *azservicebus.Client
}

// Close detaches the receiver first, so that the broker stops pushing, and then closes the connection.
func (r *sdkReceiver) Close(ctx context.Context) error {
	return errors.Join(r.Receiver.Close(ctx), r.client.Close(ctx))
}
