package servicebus

import (
	"fmt"
	"time"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// Counts are the numbers of messages of an entity by state.
type Counts struct {
	// Active messages wait for a receiver.
	Active int `json:"active"`
	// Locked messages are with a receiver, or under way to one.
	Locked    int `json:"locked"`
	Deferred  int `json:"deferred"`
	Scheduled int `json:"scheduled"`
	// DeadLettered counts the dead-letter queue, whatever the states of its messages.
	DeadLettered int `json:"dead_lettered"`
	// Bytes is the size of everything that is stored, the dead letters included.
	Bytes int64 `json:"bytes"`
}

// Total returns the number of messages in the queue and its dead-letter queue.
func (c Counts) Total() int { return c.Active + c.Locked + c.Deferred + c.Scheduled + c.DeadLettered }

// Snapshot is what the broker knows of one message.
type Snapshot struct {
	Sequence int64
	// Key is the text of the MessageId.
	Key string
	// State is "active", "deferred" or "scheduled".
	State string
	// SessionID is the session of a message in an entity that requires sessions.
	SessionID string
	// Locked tells that a receiver holds the message, until LockedUntil, under LockToken.
	Locked      bool
	LockedUntil time.Time
	LockToken   amqp.UUID
	// DeliveryCount is the number of deliveries that ended without success.
	DeliveryCount int
	Enqueued      time.Time
	Expires       time.Time // zero: never
	Scheduled     time.Time // zero: was not scheduled
	// DeadLetterReason and DeadLetterErrorDescription are the application properties of these names, when they are text.
	DeadLetterReason           string
	DeadLetterErrorDescription string
	// Message is the message as a receiver would get it now, decoded, and Encoded is its encoding.
	Message amqp.Message
	Encoded []byte
	// Problem tells why Message is not complete: a sender may write what has the wrong type in a place that the broker does
	// not look at, and it is passed on.
	Problem error
}

// find returns the log at a path: a queue, a topic or a subscription, as "topic/Subscriptions/name", or one of these but
// topics followed by "/$DeadLetterQueue".
func (b *Broker) find(path string) (*store, error) {
	n, err, _ := b.resolve(path)
	if err != nil || n.store == nil || n.kind != nodeEntity {
		return nil, fmt.Errorf("servicebus: there is no entity %q", path)
	}
	return n.store, nil
}

// Counts returns the numbers of messages of a queue or a subscription. A topic has only scheduled ones. The path of a dead-letter queue gives those of its messages alone.
func (b *Broker) Counts(path string) (Counts, error) {
	s, err := b.find(path)
	if err != nil {
		return Counts{}, err
	}
	e := s.entity
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advanceLocked(time.Now())
	c := s.countsLocked()
	if !s.dead {
		c.DeadLettered = e.dead.all.live
	}
	c.Bytes = e.bytes
	return c, nil
}

func (s *store) countsLocked() Counts {
	c := Counts{Active: s.readyLen(), Deferred: s.deferred, Scheduled: s.scheduled}
	c.Locked = s.all.live - c.Active - c.Deferred - c.Scheduled
	return c
}

// Messages returns the messages at a path, in the order of their sequence numbers.
func (b *Broker) Messages(path string) ([]Snapshot, error) {
	s, err := b.find(path)
	if err != nil {
		return nil, err
	}
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	s.entity.advanceLocked(time.Now())
	var all []Snapshot
	s.all.each(0, func(m *message) bool {
		all = append(all, m.snapshot())
		return true
	})
	return all, nil
}

func (m *message) snapshot() Snapshot {
	s := Snapshot{
		Sequence: m.seq, Key: m.key, SessionID: m.sessionID, State: [...]string{"active", "deferred", "scheduled"}[m.state], Locked: m.locked,
		DeliveryCount: int(m.failed), Enqueued: m.enqueued, Expires: m.expires, Scheduled: m.due, Encoded: m.encodeTo(nil, false),
	}
	if m.locked {
		s.LockedUntil, s.LockToken = m.lockedUntil, m.token
	}
	s.Message, s.Problem = amqp.DecodeMessage(s.Encoded)
	s.DeadLetterReason = text(s.Message.ApplicationProperties, "DeadLetterReason")
	s.DeadLetterErrorDescription = text(s.Message.ApplicationProperties, "DeadLetterErrorDescription")
	return s
}

func text(m amqp.Map, name string) string {
	v, _ := m.Get(name)
	s, _ := v.(string)
	return s
}

// SendEncoded stores an encoded message in a queue, or publishes it to a topic, as if a client had sent it, under the same rules but without the fault
// plan, and returns its sequence number. It is how tests send what a client library would not.
func (b *Broker) SendEncoded(path string, encoded []byte) (int64, error) {
	s, err := b.find(path)
	if err != nil {
		return 0, err
	}
	if refusal := s.direction(false); refusal != nil {
		return 0, fmt.Errorf("servicebus: %w", refusal)
	}
	m, err := b.newMessage(append([]byte(nil), encoded...))
	if err != nil {
		return 0, fmt.Errorf("servicebus: send to %s: %w", path, err)
	}
	if limit := b.maxMessage(&node{store: s}); len(encoded) > limit {
		return 0, fmt.Errorf("servicebus: send to %s: %d bytes are more than the limit of %d", path, len(encoded), limit)
	}
	seqs, refusal := s.entity.accept([]*message{m})
	if refusal != nil {
		return 0, fmt.Errorf("servicebus: send to %s: %w", path, refusal)
	}
	return seqs[0], nil
}

// Send encodes a message and stores it like [Broker.SendEncoded].
func (b *Broker) Send(path string, m amqp.Message) (int64, error) {
	encoded, err := amqp.AppendMessage(nil, m)
	if err != nil {
		return 0, fmt.Errorf("servicebus: send to %s: %w", path, err)
	}
	return b.SendEncoded(path, encoded)
}
