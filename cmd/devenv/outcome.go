package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// A demoMessage is one message of the demonstration, with what must become of it.
type demoMessage struct {
	traffic.Message
	// what tells a person what is sent, and why the reason of its outcome; a dead-lettered one has a description of its own.
	what, why string
	// reason is the code with which it must be dead-lettered. Empty means that it must be completed.
	reason string
	// writes is the number of documents that this very message must write, its inbox record included.
	writes int
	// deliveries is the number of times that it must be delivered.
	deliveries int

	sequence int64
}

// line is the message in the form that the send command reads.
func (m *demoMessage) line() string {
	body := m.Body
	if !json.Valid(body) {
		body, _ = json.Marshal(string(body)) // a text has no error
	}
	return fmt.Sprintf(`{"message_id":%q,"subject":%q,"application_properties":{%q:%q},"body":%s}`, m.ID, m.Type, traffic.EntityProperty, m.Entity, body)
}

// outcome is what became of the message, and nil while it has not ended. Requests for it are known by its id, or by that of
// the entity where it has no record.
func (m *demoMessage) outcome(events []history.Event) *outcome {
	if m.Type == traffic.Price {
		return outcomeOf(events, m.sequence, m.Entity)
	}
	return outcomeOf(events, m.sequence, m.ID)
}

// wrong says in what an outcome differs from what it must be, or nothing.
func (m *demoMessage) wrong(o *outcome) string {
	want := "completed"
	if m.reason != "" {
		want = "dead-lettered as " + m.reason
	}
	switch {
	case o == nil:
		return "it is still on the queue; it must be " + want
	case o.completed != (m.reason == "") || o.reason != m.reason:
		return "it must be " + want
	case o.written != m.writes:
		return fmt.Sprintf("it wrote %d documents and must write %d", o.written, m.writes)
	case o.deliveries != m.deliveries:
		return fmt.Sprintf("it was delivered %d times and must be %d times", o.deliveries, m.deliveries)
	}
	return ""
}

// An outcome is what the history says of one message.
type outcome struct {
	completed  bool
	reason     string
	deliveries int
	// written is the number of documents that the message wrote, and writtenAt the delivery that did.
	written, writtenAt int
}

// outcomeOf collects what happened to the message with a sequence number, and nil while it has not ended. No two deliveries
// with requests about one document overlap in the demonstration.
func outcomeOf(events []history.Event, sequence int64, document string) *outcome {
	o := &outcome{}
	ended, locked := false, false
	for _, e := range events {
		switch {
		case strings.HasPrefix(e.Op, "servicebus.") && (e.Sequence != sequence || strings.Contains(e.Entity, "$")):
		case e.Op == history.Lock && e.Effect:
			// A message that came when its receiver had just turned away was released, and counts as not delivered.
			o.deliveries, locked = e.Delivery, true
		case e.Op == history.LockExpired, (e.Op == history.Abandon || e.Op == history.Release) && e.Effect:
			locked = false
		case e.Op == history.Complete && e.Effect:
			o.completed, ended, locked = true, true, false
		case e.Op == history.DeadLetter && e.Effect:
			o.reason, ended, locked = e.Note, true, false
		case locked && len(e.Writes) > 0 && about(e, document):
			o.written, o.writtenAt = len(e.Writes), o.deliveries
		}
	}
	if !ended {
		return nil
	}
	return o
}

func about(e history.Event, document string) bool {
	id, _ := traffic.Guard(e.Key)
	return id == document && e.Note != history.Seeded
}

// summary says how the message ended.
func (o *outcome) summary() string {
	switch {
	case o == nil:
		return "still on the queue"
	case !o.completed:
		return "dead-lettered as " + o.reason
	case o.written == 0:
		return "completed, nothing written"
	case o.writtenAt == o.deliveries:
		return "committed, completed"
	}
	return fmt.Sprintf("committed once, completed at delivery %d", o.deliveries)
}

// longHex finds hashes; eight digits of one are enough for a person.
var longHex = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{24,}\b`)

// description is what a dead letter says for the person who reads it, or nothing when the message is not one.
func (d *demo) description(sequence int64) string {
	messages, err := d.Broker.Messages(d.Queue.Name + "/$DeadLetterQueue")
	if err != nil {
		return err.Error()
	}
	for _, m := range messages {
		if m.Sequence == sequence {
			return longHex.ReplaceAllString(m.DeadLetterErrorDescription, "$1...")
		}
	}
	return ""
}
