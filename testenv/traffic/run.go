package traffic

import (
	"maps"
	"strings"

	"github.com/orderworker/orderworker/testenv/history"
)

// A Run is what is known of a consumer that was given a stream, when its queue is empty.
type Run struct {
	// Sent are the messages by their sequence numbers.
	Sent map[int64]Message
	// Queue is the path of the queue.
	Queue string
	// Events is the whole history.
	Events []history.Event
	// Documents are those that are stored at the end, as JSON texts by id.
	Documents map[string]string
	// Records tells that the consumer keeps an inbox record of its own for each message, as it must for commands.
	Records bool
	// Words are the reasons that the consumer promises.
	Words Words
}

// recordPart names the inbox record of a message among the documents that the consumer makes of it.
const recordPart = "inbox-record"

// Expect completes what the history must hold. Reasons that are given stay.
func (r Run) Expect(e history.Expect) history.Expect {
	e.Drained, e.Guard = true, Guard
	if e.Reasons == nil {
		e.Reasons = append([]string{r.Words.Conflict}, r.Words.Unreadable...)
	}
	if !r.Records {
		return e
	}
	e.Reasons = append(e.Reasons, InsufficientFunds, AlreadyPaid)
	messages, entities := map[string]Message{}, map[string]string{}
	for _, m := range r.Sent {
		messages[m.ID] = m
		if !m.isOrder() {
			entities[m.Entity] = m.Type
		}
	}
	e.Version, e.Record = "version", isRecord
	e.DocumentID = func(id string) string {
		if m := messages[id]; m.Type == Price {
			return m.Entity
		}
		return recordOf(id)
	}
	e.Guard = func(id string) (string, bool) {
		base, _ := Guard(id)
		m, ours := messages[base]
		return recordOf(base), ours && m.isOrder() && !isRecord(id)
	}
	e.Ignored = func(id string) bool { return messages[id].Type == Foreign }
	e.Changes = func(id string) history.Change {
		switch entities[id] {
		case "":
			return history.Never
		case Price:
			return history.Freely
		}
		return history.WithRecord
	}
	return e
}

// Audit compares what became of the messages with what was written and with what is stored. It returns one sentence for
// everything that is wrong. Nothing that a consumer says goes into it.
func (r Run) Audit() []string {
	var wrong []string
	orders, err := storedOrders(r.orderDocuments())
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	var outcomes []Outcome
	for _, o := range r.Outcomes() {
		if o.Message.isOrder() {
			outcomes = append(outcomes, o)
		}
	}
	wrong = append(wrong, auditOrders(outcomes, orders, r.Words)...)
	if r.Records {
		wrong = append(wrong, newReplay(r).audit()...)
	}
	return wrong
}

// Outcomes are how the messages ended. What else was on the queue is left out.
func (r Run) Outcomes() []Outcome {
	var outcomes []Outcome
	for _, e := range r.Events {
		if o, ok := r.outcome(e); ok {
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

// outcome is what an event made of a message, if it ended one.
func (r Run) outcome(e history.Event) (o Outcome, ok bool) {
	m, ours := r.Sent[e.Sequence]
	ended := e.Effect && strings.EqualFold(e.Entity, r.Queue) && (e.Op == history.Complete || e.Op == history.DeadLetter)
	return Outcome{Message: m, Completed: e.Op == history.Complete, Reason: e.Note}, ours && ended
}

// orderDocuments are the documents without the entities that commands are about.
func (r Run) orderDocuments() map[string]string {
	if !r.Records {
		return r.Documents
	}
	entities := r.entities()
	documents := maps.Clone(r.Documents)
	maps.DeleteFunc(documents, func(id, _ string) bool { return entities[id] })
	return documents
}

// entities are the documents that commands are about, or that were stored for them.
func (r Run) entities() map[string]bool {
	entities := map[string]bool{}
	for _, m := range r.Sent {
		if !m.isOrder() {
			entities[m.Entity] = true
		}
	}
	for _, e := range r.Events {
		if e.Note == history.Seeded {
			entities[e.Key] = true
		}
	}
	return entities
}

// isRecord reports whether a document is the inbox record of a message.
func isRecord(id string) bool { return strings.HasSuffix(id, partMark+recordPart) }

// recordOf is the id of the inbox record of a message.
func recordOf(messageID string) string { return messageID + partMark + recordPart }
