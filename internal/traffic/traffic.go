// Package traffic makes streams of orders that are hard on a consumer, the same for the same seed, and says what must have
// become of them.
//
// A [Stream] mixes new orders with repeated, reordered and conflicting ones, with orders of several lines and with bodies
// that cannot be read. Which of two conflicting orders is stored is not determined, since they race; [Audit] accepts either
// winner and then holds every other message of that id to it. Nothing here knows how a consumer works.
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
	Again       Kind = "same message again"
	Reordered   Kind = "same order, names in another order"
	Conflicting Kind = "reused id, other content"
	Unreadable  Kind = "unreadable body"
)

// A Message is one message to send.
type Message struct {
	ID   string
	Body []byte
	Kind Kind
}

// Readable reports whether the body is an order.
func (m Message) Readable() bool { return m.Kind != Unreadable }

// Stream makes messages. It is for one goroutine.
type Stream struct {
	rng    *rand.Rand
	prefix string
	orders int
	recent []order
}

// order is what a body says.
type order struct {
	ID       string  `json:"orderId"`
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
	Lines    []line  `json:"lines,omitempty"`
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// memory is the number of orders that can still be repeated. A short memory makes copies meet.
const memory = 24

// NewStream returns a stream whose ids begin with prefix.
func NewStream(seed uint64, prefix string) *Stream {
	return &Stream{rng: rand.New(rand.NewPCG(seed, 0x0de75)), prefix: prefix}
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
	if len(s.recent) == 0 {
		return s.fresh(0)
	}
	known := s.recent[s.rng.IntN(len(s.recent))]
	switch p := s.rng.IntN(100); {
	case p < 35:
		return s.fresh(0)
	case p < 50:
		return s.fresh(1 + s.rng.IntN(5))
	case p < 68:
		return Message{ID: known.ID, Body: known.body(), Kind: Again}
	case p < 80:
		return Message{ID: known.ID, Body: known.reordered(), Kind: Reordered}
	case p < 94:
		known.Amount += float64(1 + s.rng.IntN(9))
		return Message{ID: known.ID, Body: known.body(), Kind: Conflicting}
	default:
		return s.unreadable()
	}
}

func (s *Stream) fresh(lines int) Message {
	s.orders++
	o := order{ID: fmt.Sprintf("%s%d", s.prefix, s.orders), Customer: fmt.Sprintf("customer-%d", s.rng.IntN(1000)), Amount: float64(s.rng.IntN(100000)) / 100}
	for i := range lines {
		o.Lines = append(o.Lines, line{SKU: fmt.Sprintf("sku-%d", i+1), Quantity: 1 + s.rng.IntN(9)})
	}
	if s.recent = append(s.recent, o); len(s.recent) > memory {
		s.recent = s.recent[1:]
	}
	kind := New
	if lines > 0 {
		kind = Lines
	}
	return Message{ID: o.ID, Body: o.body(), Kind: kind}
}

// unreadable is a broken body, under an id of its own.
func (s *Stream) unreadable() Message {
	s.orders++
	bodies := []string{"", "{", "[1,2]", `{"orderId":"x"} trailing`, "\xff\xfe", `{"a":1,"a":2}`}
	return Message{ID: fmt.Sprintf("%sbad-%d", s.prefix, s.orders), Body: []byte(bodies[s.rng.IntN(len(bodies))]), Kind: Unreadable}
}

func (o order) body() []byte { return encode(o) }

// reordered is the same order with its names the other way round, other spaces, and the amount written in another way.
func (o order) reordered() []byte {
	text := "{ "
	if len(o.Lines) > 0 {
		text += fmt.Sprintf("\"lines\": %s,\n", encode(o.Lines))
	}
	return fmt.Appendf(nil, "%s\"amount\": %fe0, \"customer\": %s,\n \"orderId\": %s }\n", text, o.Amount, encode(o.Customer), encode(o.ID))
}

// encode is json.Marshal for values that it cannot refuse.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return text
}
