package history

import (
	"cmp"
	"slices"
	"strings"
)

// view is a log sorted by the things that the events are about.
type view struct {
	events    []Event
	messages  []*message
	documents map[string][]Event // by document id: writes, refused creates and reads, in order
}

// message is one message in one queue, with its events in order.
type message struct {
	entity   string
	key      string
	sequence int64
	sent     bool
	events   []Event
}

// place identifies a message: a dead letter keeps its sequence number in another entity.
type place struct {
	entity   string
	sequence int64
}

const deadLetterSuffix = "/$deadletterqueue"

// dead reports whether the message is in a dead-letter queue.
func (m *message) dead() bool { return strings.HasSuffix(m.entity, deadLetterSuffix) }

func index(events []Event) *view {
	v := &view{events: events, documents: map[string][]Event{}}
	messages := map[place]*message{}
	for _, e := range events {
		if strings.HasPrefix(e.Op, "servicebus.") && e.Sequence != 0 {
			v.addMessageEvent(messages, e)
		}
		v.addDocumentEvent(e)
	}
	return v
}

func (v *view) addMessageEvent(messages map[place]*message, e Event) {
	at := place{strings.ToLower(e.Entity), e.Sequence}
	m := messages[at]
	if m == nil {
		m = &message{entity: at.entity, sequence: at.sequence}
		messages[at] = m
		v.messages = append(v.messages, m)
	}
	m.key = cmp.Or(m.key, e.Key)
	m.sent = m.sent || (e.Op == Send && e.Effect)
	m.events = append(m.events, e)
}

func (v *view) addDocumentEvent(e Event) {
	switch e.Op {
	case CreateDocument, ReadDocument, UpsertDocument:
		v.documents[e.Key] = append(v.documents[e.Key], e)
	case ExecuteBatch:
		for _, id := range subjects(e) {
			v.documents[id] = append(v.documents[id], e)
		}
	}
}

// subjects are the documents that a batch event is about: those that it wrote, or the first that it wanted to create.
func subjects(e Event) []string {
	if e.Effect || slices.Contains(e.Documents, e.Key) {
		return written(e)
	}
	return append([]string{e.Key}, e.Documents...)
}

// created are the ids of the documents that an event created.
func created(e Event) []string {
	switch {
	case !e.Effect:
		return nil
	case e.Op == CreateDocument:
		return []string{e.Key}
	case e.Op == ExecuteBatch:
		return e.Documents
	}
	return nil
}

// written are the ids of the documents that an event created or changed.
func written(e Event) []string { return append(slices.Clone(created(e)), changed(e)...) }

// ends reports whether an event takes a message off its queue for good.
func ends(e Event) bool {
	if !e.Effect {
		return false
	}
	switch e.Op {
	case Complete, DeadLetter, Take, Expired, Forward:
		return true
	}
	return false
}
