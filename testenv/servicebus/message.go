package servicebus

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// state is where a message is in its life, apart from being locked.
type state int32

// The states, with the numbers that x-opt-message-state has for them.
const (
	active    state = 0
	deferred  state = 1
	scheduled state = 2
)

// The annotations that the broker writes. What a sender puts under these names is dropped, except where noted.
const (
	annSequence         amqp.Symbol = "x-opt-sequence-number"
	annEnqueued         amqp.Symbol = "x-opt-enqueued-time"
	annLockedUntil      amqp.Symbol = "x-opt-locked-until"
	annState            amqp.Symbol = "x-opt-message-state"
	annEnqueuedSequence amqp.Symbol = "x-opt-enqueue-sequence-number"
	annDeadLetterSource amqp.Symbol = "x-opt-deadletter-source"
	annLockToken        amqp.Symbol = "x-opt-lock-token"
	// annScheduled is the sender's, and passes.
	annScheduled = "x-opt-scheduled-enqueue-time"
)

// A message is one stored message. Its fields are guarded by the namespace's mutex, but for those that never change.
type message struct {
	// key is the text of the MessageId, and id tells ids of different AMQP types apart. Both never change.
	key, id string
	hasID   bool

	// What the sender wrote, encoded; properties, body and footer never change.
	durable         bool
	priority        *uint8
	ttl             *uint32 // the effective time to live in milliseconds
	annotations     []byte  // pairs
	annotationCount int
	delivery        []byte // the pairs of its delivery annotations
	deliveryCount   int
	properties      []byte
	application     []byte
	body            []byte
	footer          []byte
	size            int64 // all bytes that are stored

	seq, firstSeq int64
	enqueued      time.Time
	expires       time.Time // zero: never
	due           time.Time // when a scheduled message becomes active
	hops          int       // how often it was forwarded
	failed        uint32    // deliveries that ended without success: the delivery-count on the wire
	state         state
	source        string // the entity from which it was dead-lettered

	sessionID string   // of a message in an entity that requires sessions, and of its dead letter
	session   *session // in the log of such an entity

	home        *store
	locked      bool
	token       amqp.UUID
	lockedUntil time.Time

	alarm
	readyIndex int
}

// newMessage takes an encoded message apart. The message keeps parts of b.
func newMessage(b []byte) (*message, error) {
	s, err := amqp.Split(b)
	if err != nil {
		return nil, err
	}
	m := &message{
		properties: s.Properties, application: s.ApplicationProperties, body: s.Body, footer: s.Footer,
		size: int64(s.Size()),
	}
	h, err := amqp.DecodeHeader(s.Header)
	if err != nil {
		return nil, err
	}
	m.durable, m.priority, m.ttl = h.Durable, h.Priority, h.TTL
	id, err := amqp.DecodeMessageID(s.Properties)
	if err != nil {
		return nil, err
	}
	m.key, m.id = idText(id)
	m.hasID = id != nil
	err = amqp.EachPair(s.DeliveryAnnotations, func(k, v []byte) error {
		if name, _ := amqp.KeyText(k); amqp.Symbol(name) != annLockToken {
			m.delivery = append(append(m.delivery, k...), v...)
			m.deliveryCount++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, m.readAnnotations(s.Annotations)
}

// copy returns a message with the same content that no log holds. The parts are shared, since they are replaced and never
// changed.
func (m *message) copy() *message {
	c := *m
	c.seq, c.failed, c.state = 0, 0, active
	c.home, c.session, c.locked = nil, nil, false
	c.alarm, c.readyIndex = alarm{}, 0
	return &c
}

// newMessage takes an encoded message apart, and gives one without a message id an id of its own, as the service does: the
// live tests of azservicebus and the transport tests of NServiceBus find one on messages that were sent without. (A
// maintainer of an SDK once wrote that there is none; with LeaveMessageIDNull it is so here.) An empty id stays empty.
func (b *Broker) newMessage(encoded []byte) (*message, error) {
	m, err := newMessage(encoded)
	if err != nil || b.opts.LeaveMessageIDNull || m.hasID {
		return m, err
	}
	before := int64(len(m.properties))
	id := strings.ReplaceAll(newToken().String(), "-", "")
	if m.properties, err = amqp.WithMessageID(m.properties, id); err != nil {
		return nil, err
	}
	m.size += int64(len(m.properties)) - before
	m.key, m.id = idText(id)
	return m, nil
}

// idText returns the text of a message id, and a text that is also distinct between types. No id and an empty one have
// no distinct text, because duplicate detection passes them over.
func idText(id any) (text, distinct string) {
	switch id := id.(type) {
	case string:
		if id == "" {
			return "", ""
		}
		return id, "s" + id
	case uint64:
		text = "ulong:" + strconv.FormatUint(id, 10)
		return text, "n" + text
	case amqp.UUID:
		text = "uuid:" + id.String()
		return text, "u" + text
	case []byte:
		text = "binary:" + hex.EncodeToString(id)
		return text, "b" + text
	}
	return "", ""
}

// readAnnotations keeps the sender's annotations in their encoding, and looks for the time of a scheduled message.
func (m *message) readAnnotations(section []byte) error {
	return amqp.EachPair(section, func(k, v []byte) error {
		name, _ := amqp.KeyText(k)
		switch amqp.Symbol(name) {
		case annSequence, annEnqueued, annLockedUntil, annState, annEnqueuedSequence, annDeadLetterSource:
			return nil
		case annScheduled:
			at, err := amqp.NewReader(v).Value()
			if err != nil {
				return err
			}
			if t, ok := at.(time.Time); ok {
				m.due = t
			}
		}
		m.annotations = append(append(m.annotations, k...), v...)
		m.annotationCount++
		return nil
	})
}

// limitLife sets the time to live that counts: the smaller one of the message's and the queue's.
func (m *message) limitLife(now time.Time, longest time.Duration) {
	life := longest
	if m.ttl != nil && *m.ttl > 0 {
		life = min(life, time.Duration(*m.ttl)*time.Millisecond)
	}
	m.ttl, m.expires = nil, time.Time{}
	if life == Forever {
		return
	}
	ms := uint32(min(life.Milliseconds(), math.MaxUint32))
	m.ttl = &ms
	m.expires = now.Add(life)
}

// encodeTo appends the message as a receiver gets it. The sender's delivery annotations come back, beside the lock token of
// a message that is delivered.
func (m *message) encodeTo(dst []byte, withToken bool) []byte {
	dst = amqp.AppendHeader(dst, amqp.Header{Durable: m.durable, Priority: m.priority, TTL: m.ttl, DeliveryCount: m.failed})
	if withToken || m.deliveryCount > 0 {
		d := amqp.NewMapSection(dst, amqp.SectionDeliveryAnnotations)
		d.Raw(m.delivery, m.deliveryCount)
		if withToken {
			_ = d.Put(annLockToken, m.token) // a uuid can always be encoded
		}
		dst = d.Done()
	}
	a := amqp.NewMapSection(dst, amqp.SectionAnnotations)
	a.Raw(m.annotations, m.annotationCount)
	a.Long(annSequence, m.seq)
	if m.firstSeq != m.seq {
		a.Long(annEnqueuedSequence, m.firstSeq)
	}
	a.Millis(annEnqueued, m.enqueued.UnixMilli())
	if m.locked {
		a.Millis(annLockedUntil, m.lockedUntil.UnixMilli())
	}
	if m.state != active { // the live tests of azservicebus find no state on an ordinary delivery
		_ = a.Put(annState, int32(m.state)) // an int can always be encoded
	}
	if m.source != "" {
		_ = a.Put(annDeadLetterSource, m.source)
	}
	dst = a.Done()
	dst = append(append(dst, m.properties...), m.application...)
	return append(append(dst, m.body...), m.footer...)
}

// removed is the value of a property that is to go.
type removed struct{}

// modified returns the application properties with changes applied; pairs that are not changed keep their encoding.
func (m *message) modified(changes amqp.Map) ([]byte, error) {
	if len(changes) == 0 {
		return m.application, nil
	}
	w := amqp.NewMapSection(nil, amqp.SectionApplicationProperties)
	err := amqp.EachPair(m.application, func(k, v []byte) error {
		if name, ok := amqp.KeyText(k); ok {
			if _, replaced := changes.Get(name); replaced {
				return nil
			}
		}
		w.Raw(append(append([]byte(nil), k...), v...), 1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range changes {
		name, ok := p.Key.(string)
		if s, isSymbol := p.Key.(amqp.Symbol); isSymbol {
			name, ok = string(s), true
		}
		if _, gone := p.Value.(removed); gone || !ok {
			continue // application properties have names
		}
		if err := w.Put(name, p.Value); err != nil {
			return nil, err
		}
	}
	return w.Done(), nil
}
