package workertest

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Send sends a message with this MessageId and body, as the client of a sender does.
func (e *Env) Send(messageID, body string) {
	e.t.Helper()
	e.SendMessages(&azservicebus.Message{MessageID: &messageID, Body: []byte(body)})
}

// SendMessages sends messages of any form, in their order.
func (e *Env) SendMessages(messages ...*azservicebus.Message) {
	e.t.Helper()
	if err := e.send(e.t.Context(), messages); err != nil {
		e.t.Fatalf("workertest: send: %v", err)
	}
}

func (e *Env) send(ctx context.Context, messages []*azservicebus.Message) error {
	client, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close(ctx) }() // what was sent is sent
	sender, err := client.NewSender(e.Services.SendsTo(), nil)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := sender.SendMessage(ctx, m, nil); err != nil {
			return err
		}
	}
	return nil
}

// lookPause is the time between two looks at the queue.
const lookPause = 5 * time.Millisecond

// WaitUntilSettled waits until no message is left on the queue: each was completed or dead-lettered. It fails the test when that
// takes longer than limit.
func (e *Env) WaitUntilSettled(limit time.Duration) {
	e.t.Helper()
	end := time.Now().Add(limit)
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for ; ; <-look.C {
		c, err := e.Services.Broker.Counts(e.Services.Queue.Name)
		if err != nil {
			e.t.Fatalf("workertest: %v", err)
		}
		left := c.Active + c.Locked + c.Deferred + c.Scheduled
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("workertest: after %v, %d messages are still on the queue: %+v", limit, left, c)
			return
		}
	}
}

// A DeadLetter is a message in the dead-letter queue.
type DeadLetter struct {
	MessageID string
	// Reason is a code of package reason, or that of a rejection of the handler, and Description what a person reads.
	Reason, Description string
}

// DeadLetters returns the dead-lettered messages, the oldest first.
func (e *Env) DeadLetters() []DeadLetter {
	e.t.Helper()
	messages, err := e.Services.Broker.Messages(e.Services.Queue.Name + "/$DeadLetterQueue")
	if err != nil {
		e.t.Fatalf("workertest: %v", err)
	}
	var dead []DeadLetter
	for _, m := range messages {
		dead = append(dead, DeadLetter{MessageID: m.Key, Reason: m.DeadLetterReason, Description: m.DeadLetterErrorDescription})
	}
	return dead
}
