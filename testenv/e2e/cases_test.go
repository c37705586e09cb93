package e2e_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/scenario"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// TestEveryMessageBecomesADocumentOrADeadLetter sends the scenarios of admission through the whole path: the real client
// sends, the worker receives, the real store commits, and each message must end where its scenario says.
func TestEveryMessageBecomesADocumentOrADeadLetter(t *testing.T) {
	t.Parallel()
	for _, s := range scenario.Read(t, "../../worker/admission/testdata/cases.jsonl") {
		if s.Settings.Content == "json" || s.Settings.Content == "bytes" {
			continue // an order is an object; other content has no document form here and is judged by admission alone
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			// The service gives a message an id where its sender gave none; the scenarios judge what it would otherwise be.
			broker := servicebus.Options{MaxMessageSize: 16 << 20, LeaveMessageIDNull: true}
			inBubble(t, testenv.Options{Broker: broker}, func(w *env) { w.play(s) })
		})
	}
}

// TestEachCopyOfAMessageWithoutAnIDIsAnOrderOfItsOwn shows what a sender gets that leaves the id to the service.
func TestEachCopyOfAMessageWithoutAnIDIsAnOrderOfItsOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, testenv.Options{}, func(w *env) {
		w.skipAudit = true
		r := w.startWith(worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
		}), nil)
		sender := w.sender()
		for range 2 {
			require.NoError(w.t, sender.SendMessage(context.Background(), &azservicebus.Message{Body: []byte(`{"orderId":"1042"}`)}, nil))
		}
		w.waitDrained(time.Minute)
		synctest.Wait()
		require.Equal(w.t, scenario.Stored, w.outcomeOf(r, 1))
		require.Equal(w.t, scenario.Stored, w.outcomeOf(r, 2))
		require.Len(w.t, w.Stored(), 2)
	})
}

// play sends one message after the other and holds what becomes of each against its scenario.
func (w *env) play(s scenario.Scenario) {
	w.skipAudit = true // messages that share an id with others are not a stream of orders
	whole := worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
	})
	r := w.startWith(whole, nil, func(c *worker.Config) { c.Admission = s.Settings.Config(w.t) })
	// The history knows MessageIds, and a scenario may take its keys from elsewhere: the worker says which document it took.
	w.expect.DocumentID = func(messageID string) string { return r.documentOf(w.History.Events(), messageID) }
	sender := w.sender()
	sequence := int64(0)
	for i, d := range s.Messages {
		raw := d.Raw(w.t)
		if !arrivesAsSent(raw) {
			continue // admission alone judges it
		}
		sequence++
		require.NoError(w.t, sender.SendAMQPAnnotatedMessage(context.Background(), raw, nil), "message %d", i+1)
		w.waitDrained(time.Minute)
		synctest.Wait()
		require.Equal(w.t, d.Want, w.outcomeOf(r, sequence), "message %d", i+1)
	}
}

// arrivesAsSent reports whether the real client can send a message and hand it over again: it sends no text that is not
// UTF-8, and turns a symbol into a string.
func arrivesAsSent(m *azservicebus.AMQPAnnotatedMessage) bool {
	id, text := m.Properties.MessageID.(string)
	_, symbol := m.Body.Value.(amqp.Symbol)
	return !symbol && (!text || utf8.ValidString(id))
}

// outcomeOf says what became of a message, in the words of a scenario, by what the broker did and what the worker said.
func (w *env) outcomeOf(r *runner, sequence int64) string {
	w.t.Helper()
	for _, e := range w.History.Events() {
		if e.Sequence != sequence || !e.Effect || e.Entity != w.Queue.Name {
			continue
		}
		switch e.Op {
		case history.DeadLetter:
			require.Equal(w.t, 1, e.Delivery, "a message that can never be stored is dead-lettered at its first delivery")
			if e.Note == words.Conflict {
				return scenario.Conflict
			}
			return e.Note
		case history.Complete:
			if r.saw(worker.EventDuplicate, about(sequence)) == 1 {
				return scenario.Duplicate
			}
			require.Equal(w.t, 1, r.saw(worker.EventCreated, about(sequence)), "nothing is completed without a judgement")
			return scenario.Stored
		}
	}
	return "neither completed nor dead-lettered"
}

func about(sequence int64) func(worker.Event) bool {
	return func(e worker.Event) bool { return e.SequenceNumber == sequence }
}

// sender opens a sender of the real client that is closed at the end of the test.
func (w *env) sender() *azservicebus.Sender {
	w.t.Helper()
	client, err := (&doorway{env: w.Env}).serviceBus()
	require.NoError(w.t, err)
	w.closers = append(w.closers, func() error { return client.Close(context.Background()) })
	sender, err := client.NewSender(w.Queue.Name, nil)
	require.NoError(w.t, err)
	return sender
}

// documentOf returns the document that the worker took for a MessageId.
func (r *runner) documentOf(events []history.Event, messageID string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		for _, said := range r.events {
			if e.Key == messageID && e.Sequence == said.SequenceNumber && said.DocumentID != "" {
				return said.DocumentID
			}
		}
	}
	return documentID(messageID)
}
