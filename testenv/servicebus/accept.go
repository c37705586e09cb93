package servicebus

import (
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// batchFormat is the message format of a batch: every data section of the body is an encoded message.
const batchFormat = 0x80013700

// unpack takes a transfer apart into the messages it carries.
func (b *Broker) unpack(format uint32, payload []byte) ([]*message, *amqp.Error) {
	encoded := [][]byte{payload}
	switch format {
	case 0:
	case batchFormat:
		envelope, err := amqp.DecodeMessage(payload)
		if err != nil {
			return nil, amqp.Errorf(amqp.DecodeError, "the batch cannot be decoded: %v", err)
		}
		if envelope.BodyKind != amqp.BodyData {
			return nil, amqp.Errorf(amqp.DecodeError, "the body of a batch must be data sections, not %v", envelope.BodyKind)
		}
		encoded = envelope.Data
	default:
		return nil, amqp.Errorf(amqp.NotImplemented, "message format %#x is neither a message nor a batch", format)
	}
	ms := make([]*message, 0, len(encoded))
	for _, one := range encoded {
		m, err := b.newMessage(one)
		if err != nil {
			return nil, amqp.Errorf(amqp.DecodeError, "the message cannot be decoded: %v", err)
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// accept stores messages, all or none, and returns their sequence numbers. A message that duplicate detection knows is
// dropped without an error; its number is one that no message has.
func (e *entity) accept(ms []*message) ([]int64, *amqp.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.advanceLocked(now)
	if err := e.admitLocked(ms); err != nil {
		for _, m := range ms {
			e.main.recordLocked(history.Event{Op: history.Send, Error: err.Error()}, m)
		}
		return nil, err
	}
	seqs := make([]int64, len(ms))
	for i, m := range ms {
		e.enqueueLocked(m, now)
		seqs[i] = m.seq
	}
	e.main.dispatchLocked(now)
	return seqs, nil
}

// admitLocked says why the messages cannot be stored.
func (e *entity) admitLocked(ms []*message) *amqp.Error {
	if e.closed || !e.maySendLocked() {
		return e.disabledError()
	}
	var total int64
	for _, m := range ms {
		total += m.size
		if err := e.sessionLocked(m); err != nil {
			return err
		}
		if n := len(m.properties) + len(m.application); n > maxPropertiesSize {
			return amqp.Errorf(amqp.MessageSizeExceeded, "the properties of message %q have %d bytes; at most %d are allowed", m.key, n, maxPropertiesSize)
		}
	}
	if used := e.usedLocked(); used+total > e.cfg.MaxSize {
		return amqp.Errorf(amqp.ResourceLimitExceeded, "The maximum entity size has been reached or exceeded for %s: '%s'. Size of entity in bytes:%d, Max entity size in bytes:%d. QuotaExceeded",
			e.kind, strings.ToUpper(e.cfg.Name), used, e.cfg.MaxSize)
	}
	return nil
}

// maxSessionID bounds a session id, in characters.
const maxSessionID = 128

// sessionLocked reads the session of a message where one is required, and says why the message cannot be taken.
func (e *entity) sessionLocked(m *message) *amqp.Error {
	if !e.cfg.RequiresSession {
		return nil
	}
	id := newView(m).systemText("SessionId")
	switch {
	case id == nil:
		return amqp.Errorf(amqp.NotAllowed, "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have session support enabled can only receive messages that have the SessionId set to a valid value. Entity: %s.", e.cfg.Name)
	case len([]rune(*id)) > maxSessionID:
		return amqp.Errorf(condOutOfRange, "the session id has %d characters; at most %d are allowed", len([]rune(*id)), maxSessionID)
	}
	m.sessionID = *id
	return nil
}

// usedLocked is what counts against the size of an entity: of a topic with all that its subscriptions hold.
func (e *entity) usedLocked() int64 {
	used := e.bytes
	for _, s := range e.subscriptions {
		used += s.bytes
	}
	return used
}

func (e *entity) disabledError() *amqp.Error {
	return amqp.Errorf(condEntityDisabled, "Messaging entity '%s' is currently disabled.", e.cfg.Name)
}

func (e *entity) enqueueLocked(m *message, now time.Time) {
	if e.cfg.RequiresDuplicateDetection && m.id != "" && e.duplicates.repeated(m.id, now) {
		e.sequence++ // the service counts on
		m.seq = e.sequence
		e.main.recordLocked(effect(history.DropDuplicate), m)
		return
	}
	if !m.due.After(now) {
		e.arriveLocked(m, now)
		return
	}
	m.state = scheduled
	e.numberLocked(m, now)
	e.main.addLocked(m)
	e.main.recordLocked(effect(history.Schedule), m)
	e.main.settleDownLocked(m, now)
}

// arriveLocked lets a message arrive under a new sequence number: in the log, or in those of a topic's subscriptions.
func (e *entity) arriveLocked(m *message, now time.Time) {
	m.limitLife(now, e.cfg.DefaultMessageTimeToLive)
	e.numberLocked(m, now)
	if e.kind == kindTopic {
		e.publishLocked(m, now)
		return
	}
	refused := e.sessionLocked(m)
	e.main.addLocked(m)
	e.main.recordLocked(effect(history.Send), m)
	if refused != nil { // a copy of a message that a topic took
		e.buryLocked(m, "Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null.", now)
		return
	}
	e.main.settleDownLocked(m, now)
}

// cancel removes scheduled messages, all or none.
func (e *entity) cancel(seqs []int64) *amqp.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advanceLocked(time.Now())
	for _, seq := range seqs {
		if m := e.main.all.get(seq); m == nil || m.state != scheduled {
			return amqp.Errorf(condNotFound, "no message with sequence number %d is scheduled in %s", seq, e.cfg.Name)
		}
	}
	for _, seq := range seqs {
		if m := e.main.all.get(seq); m != nil {
			e.main.recordLocked(effect(history.CancelScheduled), m)
			e.main.removeLocked(m)
		}
	}
	return nil
}
