package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker"
)

// fakeBroker is a broker for what the embedded one cannot do: calls that never return, or return nonsense. Messages that
// are abandoned or left do not come again.
type fakeBroker struct {
	// open returns the nth receiver, from 1.
	open func(n int) *fakeReceiver

	mu        sync.Mutex
	queue     []*azservicebus.ReceivedMessage
	opened    int
	closed    int
	settled   map[string]int // by verb
	tokenOnly int            // settlements of objects that were not received
}

var _ worker.Broker = (*fakeBroker)(nil)

func (b *fakeBroker) Queue() string { return "orders" }

func (b *fakeBroker) Open(context.Context) (worker.Receiver, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	r := &fakeReceiver{}
	if b.open != nil {
		r = b.open(b.opened)
	}
	r.broker = b
	return r, nil
}

func (b *fakeBroker) count(verb string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settled[verb]
}

func (b *fakeBroker) opens() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

// fakeReceiver does what its functions say, and otherwise hands out the messages of its broker and consents to everything.
type fakeReceiver struct {
	broker  *fakeBroker
	receive func(ctx context.Context, n int) ([]*azservicebus.ReceivedMessage, error)
	peek    func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error)
	renew   func(ctx context.Context, m *azservicebus.ReceivedMessage) error
	settle  func(ctx context.Context, verb string, m *azservicebus.ReceivedMessage) error
	close   func(ctx context.Context) error

	receiving atomic.Bool
}

var _ worker.Receiver = (*fakeReceiver)(nil)

func (r *fakeReceiver) ReceiveMessages(ctx context.Context, n int, _ *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error) {
	if r.receiving.Swap(true) {
		return nil, errors.New("ReceiveMessages() cannot be called concurrently")
	}
	defer r.receiving.Store(false)
	if r.receive != nil {
		return r.receive(ctx, n)
	}
	for {
		if messages := r.broker.take(n); len(messages) > 0 {
			return messages, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (b *fakeBroker) take(n int) []*azservicebus.ReceivedMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.queue))
	messages := b.queue[:n]
	b.queue = b.queue[n:]
	return messages
}

func (r *fakeReceiver) PeekMessages(ctx context.Context, _ int, _ *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error) {
	if r.peek != nil {
		return r.peek(ctx)
	}
	return nil, nil
}

func (r *fakeReceiver) RenewMessageLock(ctx context.Context, m *azservicebus.ReceivedMessage, _ *azservicebus.RenewMessageLockOptions) error {
	if r.renew != nil {
		return r.renew(ctx, m)
	}
	m.LockedUntil = new(time.Now().Add(time.Minute))
	return nil
}

func (r *fakeReceiver) verb(ctx context.Context, verb string, m *azservicebus.ReceivedMessage) error {
	if r.settle != nil {
		if err := r.settle(ctx, verb, m); err != nil {
			return err
		}
	}
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	if r.broker.settled == nil {
		r.broker.settled = map[string]int{}
	}
	r.broker.settled[verb]++
	if m.MessageID == "" {
		r.broker.tokenOnly++
	}
	return nil
}

func (r *fakeReceiver) CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, _ *azservicebus.CompleteMessageOptions) error {
	return r.verb(ctx, "complete", m)
}

func (r *fakeReceiver) AbandonMessage(ctx context.Context, m *azservicebus.ReceivedMessage, _ *azservicebus.AbandonMessageOptions) error {
	return r.verb(ctx, "abandon", m)
}

func (r *fakeReceiver) DeadLetterMessage(ctx context.Context, m *azservicebus.ReceivedMessage, _ *azservicebus.DeadLetterOptions) error {
	return r.verb(ctx, "dead-letter", m)
}

func (r *fakeReceiver) Close(ctx context.Context) error {
	r.broker.mu.Lock()
	r.broker.closed++
	r.broker.mu.Unlock()
	if r.close != nil {
		return r.close(ctx)
	}
	return nil
}

// fakeMessage is a message as if just received.
func fakeMessage(id, body string) *azservicebus.ReceivedMessage {
	sequence := time.Now().UnixNano()
	return &azservicebus.ReceivedMessage{
		MessageID: id, Body: []byte(body), DeliveryCount: 1, SequenceNumber: &sequence,
		LockToken: [16]byte{byte(sequence), byte(sequence >> 8), 1}, EnqueuedTime: new(time.Now()), LockedUntil: new(time.Now().Add(time.Minute)),
	}
}
