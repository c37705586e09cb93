// Package traffic makes streams of messages that are hard on a consumer, the same for the same seed, and says what must have
// become of them.
//
// A [Stream] mixes new orders with repeated, reordered and conflicting ones, with orders of several lines and with bodies
// that cannot be read. A mixed stream has commands too, which change documents that exist: see [Command]. Which of two
// conflicting contents is stored is not determined, since they race; [Run.Audit] accepts either winner and then holds every
// other message of that id to it. Nothing here knows how a consumer works.
package traffic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Kind says how a message relates to those before it.
type Kind string

// The kinds.
const (
	New         Kind = "new order"
	Lines       Kind = "new order with lines"
	NewCommand  Kind = "new command"
	Again       Kind = "same message again"
	Reordered   Kind = "same content, names in another order"
	Conflicting Kind = "reused id, other content"
	Unreadable  Kind = "unreadable body"
)

// TypeOrder is the type of a message that is an order. Commands have others.
const TypeOrder = "order"

// EntityProperty is the application property that names the entity of a message.
const EntityProperty = "entity"

// A Message is one message to send.
type Message struct {
	ID   string
	Body []byte
	Kind Kind
	// Type is TypeOrder or what a command does. It is sent as the subject.
	Type string
	// Entity is the document that a command is about, and the partition of the message. It is sent as a property.
	Entity string
	// Before is a document, as JSON, that must be stored before the message is sent, or empty.
	Before string
}

// Readable reports whether the body can be read.
func (m Message) Readable() bool { return m.Kind != Unreadable }

// isOrder reports whether the message is an order, as one without a type is.
func (m Message) isOrder() bool { return m.Type == "" || m.Type == TypeOrder }

// Stream makes messages. It is for one goroutine.
type Stream struct {
	rng      *rand.Rand
	prefix   string
	made     int
	recent   []Message
	contents map[string]content // of those in recent, by id
	commands *commands          // nil in a stream of orders alone
}

// content is what a body says.
type content interface {
	// reordered is the same content with its names in another order.
	reordered() []byte
	// changed is another content, by a number from 1 on.
	changed(by int) content
}

// memory is the number of messages that can still be repeated. A short memory makes copies meet.
const memory = 24

// NewStream returns a stream of orders whose ids begin with prefix.
func NewStream(seed uint64, prefix string) *Stream {
	return &Stream{rng: rand.New(rand.NewPCG(seed, 0x0de75)), prefix: prefix, contents: map[string]content{}}
}

// NewMixedStream returns a stream of orders and commands whose ids begin with prefix.
func NewMixedStream(seed uint64, prefix string) *Stream {
	s := NewStream(seed, prefix)
	s.commands = &commands{stream: s, entities: map[string]*entity{}}
	return s
}

// Take makes the next n messages.
func (s *Stream) Take(n int) []Message {
	messages := make([]Message, n)
	for i := range messages {
		messages[i] = s.Next()
	}
	return messages
}

// Next makes the next message: about half of them new.
func (s *Stream) Next() Message {
	if m, ok := s.commands.next(); ok {
		return m
	}
	if len(s.recent) == 0 {
		return s.order(0)
	}
	known := s.recent[s.rng.IntN(len(s.recent))]
	known.Before = ""
	switch p := s.rng.IntN(100); {
	case p < 35:
		return s.order(0)
	case p < 50:
		return s.order(1 + s.rng.IntN(5))
	case p < 68:
		known.Kind = Again
	case p < 80:
		known.Body, known.Kind = s.contents[known.ID].reordered(), Reordered
	case p < 94:
		known.Body, known.Kind = encode(s.contents[known.ID].changed(1+s.rng.IntN(9))), Conflicting
	default:
		return s.unreadable()
	}
	return known
}

// name makes an id.
func (s *Stream) name(kind string) string {
	s.made++
	return fmt.Sprintf("%s%s%d", s.prefix, kind, s.made)
}

// remember returns a message that can be repeated from now on.
func (s *Stream) remember(m Message, c content) Message {
	s.contents[m.ID] = c
	if s.recent = append(s.recent, m); len(s.recent) > memory {
		delete(s.contents, s.recent[0].ID)
		s.recent = s.recent[1:]
	}
	return m
}

// unreadable is a broken body, under an id of its own.
func (s *Stream) unreadable() Message {
	bodies := []string{"", "{", "[1,2]", `{"orderId":"x"} trailing`, "\xff\xfe", `{"a":1,"a":2}`}
	id := s.name("bad-")
	return Message{ID: id, Body: []byte(bodies[s.rng.IntN(len(bodies))]), Kind: Unreadable, Type: TypeOrder, Entity: id}
}

// encode is json.Marshal for values that it cannot refuse.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return text
}
