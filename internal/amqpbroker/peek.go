package amqpbroker

import (
	"context"
	"errors"
	"math"
	"net/http"

	"github.com/orderworker/orderworker/internal/deadletter"
)

var errPeekAnswer = errors.New("amqpbroker: the broker's answer to a peek has no messages in it")

// Peek returns up to most messages from a sequence number on. See [deadletter.Broker].
func (b *Broker) Peek(ctx context.Context, from int64, most int) ([]*deadletter.DeadLetter, error) {
	return b.peek(ctx, b.source, from, most)
}

// PeekQueue is Peek for the queue itself. See [deadletter.Broker].
func (b *Broker) PeekQueue(ctx context.Context, from int64, most int) ([]*deadletter.DeadLetter, error) {
	return b.peek(ctx, b.options.Queue, from, most)
}

func (b *Broker) peek(ctx context.Context, path string, from int64, most int) ([]*deadletter.DeadLetter, error) {
	reply, err := b.manage(ctx, path, tries, "peek-message", map[string]any{
		"from-sequence-number": from, "message-count": int32(min(max(most, 1), math.MaxInt32)),
	})
	if err != nil || statusOf(reply) == http.StatusNoContent {
		return nil, err
	}
	body, _ := reply.Value.(map[string]any)
	messages, ok := body["messages"].([]any)
	if !ok {
		return nil, errPeekAnswer
	}
	found := make([]*deadletter.DeadLetter, 0, len(messages))
	for _, entry := range messages {
		fields, _ := entry.(map[string]any)
		encoded, ok := fields["message"].([]byte)
		if !ok {
			return nil, errPeekAnswer
		}
		found = append(found, deadletter.Parse(encoded))
	}
	return found, nil
}
