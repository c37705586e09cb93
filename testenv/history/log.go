// Package history records what happened in the embedded environment and checks the promises against it.
//
// The emulators append an [Event] for every effect and for every refusal. A [Log] is safe for concurrent use; a nil *Log
// records nothing. [Check] holds a whole log against the invariants that every run must keep.
package history

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"
)

// An Event is one thing that happened in an emulator.
type Event struct {
	// Seq is the position in the log, from 1. The order of two events is the order of their effects.
	Seq int       `json:"seq"`
	At  time.Time `json:"at"`
	// Op is the operation: "servicebus.complete", "cosmosdb.create".
	Op string `json:"op"`
	// Entity is the queue path, or "database/container".
	Entity string `json:"entity,omitempty"`
	// Key is the MessageId, or the document id.
	Key string `json:"key,omitempty"`
	// Partition is the JSON of a document's partition key value.
	Partition string `json:"partition,omitempty"`
	// Sequence is the broker's sequence number of the message.
	Sequence int64 `json:"sequence,omitempty"`
	// Session is the session of a message, or the session that the event is about.
	Session string `json:"session,omitempty"`
	// Lock is the lock token of the delivery, in the text form of a UUID.
	Lock string `json:"lock,omitempty"`
	// Delivery is the delivery count as the receiver of this delivery sees it, from 1.
	Delivery int `json:"delivery,omitempty"`
	// Status is the HTTP status of a Cosmos DB reply, or of a management reply; 0 where there is none.
	Status    int `json:"status,omitempty"`
	Substatus int `json:"substatus,omitempty"`
	// Effect tells that state was changed.
	Effect bool `json:"effect"`
	// Error is the condition or the text of a refusal.
	Error string `json:"error,omitempty"`
	// Documents are the ids that a batch created, in its order.
	Documents []string `json:"documents,omitempty"`
	// Writes are the documents that were written, each as it was afterwards, in the order of the operations.
	Writes []Write `json:"writes,omitempty"`
	// Charge is the request charge in request units.
	Charge float64 `json:"charge,omitempty"`
	// Activity is the x-ms-activity-id of a Cosmos DB request.
	Activity string `json:"activity,omitempty"`
	// Note is for people: the dead-letter reason, the name of a fault.
	Note string `json:"note,omitempty"`
}

// Seeded is the note of an event in which no client had a part: a test or a demonstration stored the document.
const Seeded = "stored without a request"

// A Write is what an event made of one document.
type Write struct {
	ID string `json:"id"`
	// Created tells that there was no such document before.
	Created bool `json:"created,omitempty"`
	// Body is the document afterwards, as a client would read it; empty when it was deleted. It must not be changed.
	Body json.RawMessage `json:"body,omitempty"`
}

// Log is an append-only list of events.
type Log struct {
	mu     sync.Mutex
	events []Event
	limit  int
}

// New returns an empty log without a limit.
func New() *Log { return &Log{} }

// NewBounded returns a log that keeps only the newest events, at least limit and at most twice as many, for long runs.
func NewBounded(limit int) *Log { return &Log{limit: limit} }

// Add appends an event and sets its position and, when it has none, its time.
func (l *Log) Add(e Event) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.Seq = 1
	if n := len(l.events); n > 0 {
		e.Seq = l.events[n-1].Seq + 1
	}
	l.events = append(l.events, e)
	if l.limit > 0 && len(l.events) > 2*l.limit {
		l.events = append(l.events[:0], l.events[len(l.events)-l.limit:]...)
	}
}

// Events returns a copy of the events in order.
func (l *Log) Events() []Event {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Count returns how many events satisfy f.
func (l *Log) Count(f func(Event) bool) int {
	n := 0
	for _, e := range l.Events() {
		if f(e) {
			n++
		}
	}
	return n
}

// WriteTo writes the events as JSON lines.
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	var n int64
	for _, e := range l.Events() {
		line, err := json.Marshal(e)
		if err != nil {
			return n, err
		}
		m, err := w.Write(append(line, '\n'))
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
