package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/orderworker/orderworker/testenv/history"
)

// A demoMessage is one message of the demonstration, with what must become of it.
type demoMessage struct {
	// what tells a person what is sent.
	what string
	id   string
	// line is the message in the form that the send command reads.
	line string
	// reason is the word with which it must be dead-lettered. Empty means that it must be completed.
	reason string
	// documents is the number of documents that this very message must create.
	documents int
	// deliveries is the number of times that it must be delivered.
	deliveries int

	sequence int64
}

// body returns the bytes that the line sends: the text of a string, and anything else as it is.
func (p demoMessage) body() []byte {
	var line struct {
		Body json.RawMessage `json:"body"`
	}
	var text string
	if json.Unmarshal([]byte(p.line), &line) == nil && json.Unmarshal(line.Body, &text) == nil {
		return []byte(text)
	}
	return line.Body
}

// An outcome is what the history says of one demoMessage.
type outcome struct {
	completed  bool
	reason     string
	deliveries int
	// created are the documents that the message created, and createdAt the delivery that did.
	created   []string
	createdAt int
	// found tells that the last delivery was refused and read what is stored.
	found bool
}

// outcomeOf collects what happened to the message with a sequence number, and nil while it has not ended.
func outcomeOf(events []history.Event, sequence int64) *outcome {
	f := &outcome{}
	ended, locked := false, false
	key := ""
	for _, e := range events {
		switch {
		case strings.HasPrefix(e.Op, "servicebus.") && (e.Sequence != sequence || strings.Contains(e.Entity, "$")):
		case e.Op == history.Lock && e.Effect:
			// A message that came when its receiver had just turned away was released, and counts as not delivered.
			f.deliveries, locked, key, f.found = e.Delivery, true, e.Key, false
		case e.Op == history.LockExpired, (e.Op == history.Abandon || e.Op == history.Release) && e.Effect:
			locked = false
		case e.Op == history.Complete && e.Effect:
			f.completed, ended, locked = true, true, false
		case e.Op == history.DeadLetter && e.Effect:
			f.reason, ended, locked = e.Note, true, false
		case locked && e.Key == key:
			f.store(e)
		}
	}
	if !ended {
		return nil
	}
	return f
}

// store takes in what a delivery did at the store. In the demonstration no two deliveries of one key overlap.
func (f *outcome) store(e history.Event) {
	switch {
	case e.Op == history.CreateDocument && e.Effect:
		f.created, f.createdAt = []string{e.Key}, f.deliveries
	case e.Op == history.ExecuteBatch && e.Effect:
		f.created, f.createdAt = e.Documents, f.deliveries
	case e.Op == history.ReadDocument && e.Status == 200:
		f.found = true
	}
}

// summary is the second column of the table.
func (f *outcome) summary() string {
	switch {
	case !f.completed:
		return "dead-lettered: " + f.reason
	case len(f.created) > 0 && f.createdAt == f.deliveries:
		return "committed, completed"
	case len(f.created) > 0:
		return "committed once, completed at delivery " + fmt.Sprint(f.deliveries)
	}
	return "completed, nothing written"
}

// longHex finds hashes; eight digits of one are enough for a table.
var longHex = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{24,}\b`)

// why is the third column. The detail is the description of the dead letter.
func (f *outcome) why(detail string) string {
	switch {
	case !f.completed:
		return longHex.ReplaceAllString(detail, "$1...")
	case len(f.created) > 0 && f.createdAt == f.deliveries && len(f.created) > 1:
		return fmt.Sprintf("the order and its %d lines were created in one transaction", len(f.created)-1)
	case len(f.created) > 0 && f.createdAt == f.deliveries:
		return "the id was new: created"
	case len(f.created) > 0:
		return fmt.Sprintf("delivery %d committed and its worker died; delivery %d found the document there, with the same hash", f.createdAt, f.deliveries)
	case f.found:
		return "already stored, with the same hash"
	}
	return "unknown"
}

// wrong says in what an outcome differs from what it must be, or nothing.
func (p demoMessage) wrong(f *outcome) string {
	want := "completed"
	if p.reason != "" {
		want = "dead-lettered as " + p.reason
	}
	switch {
	case f == nil:
		return "it is still on the queue; it must be " + want
	case f.completed != (p.reason == "") || f.reason != p.reason:
		return "it must be " + want
	case len(f.created) != p.documents:
		return fmt.Sprintf("it created %d documents and must create %d", len(f.created), p.documents)
	case f.deliveries != p.deliveries:
		return fmt.Sprintf("it was delivered %d times and must be %d times", f.deliveries, p.deliveries)
	}
	return ""
}
