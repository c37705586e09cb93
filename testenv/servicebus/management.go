package servicebus

import (
	"net/http"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// maxPeekBytes bounds the messages of one reply, in bytes; at least one message is always returned.
const maxPeekBytes = 1 << 20

// manage carries out a management operation. The service has others, for deleting in batches. server-timeout is not enforced,
// because clients send 0 when little time is left.
func (b *Broker) manage(r *request) {
	op, _ := r.property("operation").(string)
	start := b.operations()[shortOperation(op)]
	if start == nil {
		b.refuse("management operation " + op)
		r.answer(reply{status: http.StatusNotImplemented, condition: amqp.NotImplemented,
			description: "the embedded Service Bus does not implement the management operation " + op})
		return
	}
	need := Listen
	if strings.Contains(op, "schedule") {
		need = Send
	}
	if err := peerOf(r.link).authorize(r.node, need); err != nil {
		r.answer(failure(err))
		return
	}
	point, do, early := start(r)
	if early != nil {
		r.answer(*early)
		return
	}
	point.Entity = r.node.store.path
	var result reply
	b.perform(step{
		point: point, link: r.link,
		do:     func() { result = do() },
		answer: func() { r.answer(result) },
		refuse: r.refused,
	})
}

// An operation reads a request. It returns the point of the fault plan and what has the effect, or the answer to a request
// that makes no sense.
type operation func(*request) (fault.Point, func() reply, *reply)

func (b *Broker) operations() map[string]operation {
	return map[string]operation{
		"renew-lock": b.renewLocks, "update-disposition": b.updateDisposition, "peek-message": b.peek,
		"receive-by-sequence-number": b.receiveDeferred, "schedule-message": b.schedule, "cancel-scheduled-message": b.cancelScheduled,
		"renew-session-lock": b.renewSession, "get-session-state": b.getSessionState, "set-session-state": b.setSessionState,
		"get-message-sessions": b.listSessions, "add-rule": b.addRule, "remove-rule": b.removeRule, "enumerate-rules": b.enumerateRules,
	}
}

func early(r reply) (fault.Point, func() reply, *reply) { return fault.Point{}, nil, &r }

func (b *Broker) renewLocks(r *request) (fault.Point, func() reply, *reply) {
	s := r.node.store
	tokens := uuids(r.field("lock-tokens"))
	if len(tokens) == 0 {
		return early(badRequest("renew-lock needs lock-tokens, an array of uuid"))
	}
	if s.sessions != nil {
		return early(badRequest("the lock of a message of a session is the session's: %s", s.path))
	}
	return fault.Point{Op: history.Renew, Key: s.keyOf(tokens[0])}, func() reply {
		until, err := s.renew(tokens)
		if err != nil {
			return failure(err)
		}
		return ok(amqp.Map{{Key: "expirations", Value: amqp.Timestamps(until)}})
	}, nil
}

func (b *Broker) updateDisposition(r *request) (fault.Point, func() reply, *reply) {
	s := r.node.store
	tokens := uuids(r.field("lock-tokens"))
	status, _ := r.field("disposition-status").(string)
	changes, _ := r.field("properties-to-modify").(amqp.Map)
	v := verdict{changes: changes}
	switch status {
	case "completed":
		v.op = history.Complete
	case "abandoned":
		v.op = history.Abandon
	case "defered": // the protocol's spelling
		v.op = history.Defer
	case "suspended":
		v.op = history.DeadLetter
		v.changes, v.reason = suspended(r, changes)
	}
	if len(tokens) != 1 || v.op == "" {
		return early(badRequest("update-disposition needs one lock token and a known disposition-status, not %d and %q", len(tokens), status))
	}
	return fault.Point{Op: v.op, Key: s.keyOf(tokens[0])}, func() reply {
		if err := s.settle(tokens[0], v); err != nil {
			return failure(err)
		}
		return ok(nil)
	}, nil
}

// suspended adds reason and description to the properties to modify, which win.
func suspended(r *request, changes amqp.Map) (amqp.Map, string) {
	reason, _ := r.field("deadletter-reason").(string)
	description, _ := r.field("deadletter-description").(string)
	all := amqp.Map{}
	for _, p := range deadLetterProperties(reason, description) {
		if _, set := changes.Get(p.Key.(string)); !set {
			all = append(all, p)
		}
	}
	all = append(all, changes...)
	v, _ := all.Get("DeadLetterReason")
	reason, _ = v.(string)
	return all, reason
}

func (b *Broker) peek(r *request) (fault.Point, func() reply, *reply) {
	s := r.node.store
	from, _ := r.field("from-sequence-number").(int64)
	count, _ := r.field("message-count").(int32)
	if count < 1 {
		return early(badRequest("peek-message needs a message-count of at least 1"))
	}
	session, one := r.field("session-id").(string)
	return fault.Point{Op: history.Peek, Key: s.path}, func() reply {
		return messagesReply(s.peek(from, int(count), func(m *message) bool { return !one || m.sessionID == session }), nil)
	}, nil
}

// peek returns the encodings of messages in any state that f selects, from a sequence number on.
func (s *store) peek(from int64, count int, f func(*message) bool) [][]byte {
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	s.entity.advanceLocked(time.Now())
	var found [][]byte
	total := 0
	s.all.each(from, func(m *message) bool {
		if !f(m) {
			return true
		}
		b := m.encodeTo(nil, false)
		if total += len(b); len(found) == count || len(found) > 0 && total > maxPeekBytes {
			return false
		}
		found = append(found, b)
		return true
	})
	s.recordLocked(history.Event{Op: history.Peek}, nil)
	return found
}

// messagesReply returns messages, each with its lock token where there are tokens: only with it can a client settle a
// message that it received by its sequence number.
func messagesReply(encoded [][]byte, tokens []amqp.UUID) reply {
	if len(encoded) == 0 {
		return reply{status: http.StatusNoContent, description: "No messages"}
	}
	list := make(amqp.List, len(encoded))
	for i, b := range encoded {
		entry := amqp.Map{{Key: "message", Value: b}}
		if i < len(tokens) {
			entry = append(entry, amqp.Pair{Key: "lock-token", Value: tokens[i]})
		}
		list[i] = entry
	}
	return ok(amqp.Map{{Key: "messages", Value: list}})
}

func (b *Broker) receiveDeferred(r *request) (fault.Point, func() reply, *reply) {
	s := r.node.store
	seqs := longs(r.field("sequence-numbers"))
	mode, _ := r.field("receiver-settle-mode").(uint32)
	if len(seqs) == 0 {
		return early(badRequest("receive-by-sequence-number needs sequence-numbers, an array of long"))
	}
	return fault.Point{Op: history.ReceiveDeferred, Key: s.keyAt(seqs[0])}, func() reply {
		encoded, tokens, err := s.receiveDeferred(r, seqs, mode == 0)
		if err != nil {
			return failure(err)
		}
		return messagesReply(encoded, tokens)
	}, nil
}

func (s *store) keyAt(seq int64) string {
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	if m := s.all.get(seq); m != nil {
		return m.key
	}
	return ""
}

// receiveDeferred locks deferred messages and returns their lock tokens, or deletes them when takes is true; all of them or
// none.
func (s *store) receiveDeferred(r *request, seqs []int64, takes bool) (encoded [][]byte, tokens []amqp.UUID, err *amqp.Error) {
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	now := time.Now()
	s.entity.advanceLocked(now)
	var session *session
	if s.sessions != nil {
		if session, err = s.sessionOf(r); err != nil {
			return nil, nil, err
		}
	}
	for _, seq := range seqs {
		if m := s.all.get(seq); m == nil || m.state != deferred || m.locked || m.session != session {
			err := amqp.Errorf(condNotFound, "no deferred message with sequence number %d can be received from %s", seq, s.path)
			s.recordLocked(history.Event{Op: history.ReceiveDeferred, Sequence: seq, Error: err.Condition}, nil)
			return nil, nil, err
		}
	}
	for _, seq := range seqs {
		m := s.all.get(seq)
		if m == nil || m.locked {
			continue // the number was given twice
		}
		if !takes {
			s.lockLocked(m, now)
			tokens = append(tokens, m.token)
		}
		s.recordLocked(effect(history.ReceiveDeferred), m)
		encoded = append(encoded, m.encodeTo(nil, !takes))
		if takes {
			s.removeLocked(m)
		}
	}
	return encoded, tokens, nil
}

func (b *Broker) schedule(r *request) (fault.Point, func() reply, *reply) {
	if err := r.node.store.direction(false); err != nil {
		return early(failure(err))
	}
	list, _ := r.field("messages").(amqp.List)
	var ms []*message
	for _, entry := range list {
		fields, _ := entry.(amqp.Map)
		v, _ := fields.Get("message")
		encoded, _ := v.([]byte)
		m, err := b.newMessage(encoded)
		if err != nil {
			return early(badRequest("a message cannot be decoded: %v", err))
		}
		ms = append(ms, m)
	}
	if len(ms) == 0 {
		return early(badRequest("schedule-message needs messages"))
	}
	return fault.Point{Op: history.Schedule, Key: ms[0].key}, func() reply {
		seqs, err := r.node.store.entity.accept(ms)
		if err != nil {
			return failure(err)
		}
		return ok(amqp.Map{{Key: "sequence-numbers", Value: amqp.Longs(seqs)}})
	}, nil
}

func (b *Broker) cancelScheduled(r *request) (fault.Point, func() reply, *reply) {
	s := r.node.store
	seqs := longs(r.field("sequence-numbers"))
	if len(seqs) == 0 {
		return early(badRequest("cancel-scheduled-message needs sequence-numbers, an array of long"))
	}
	return fault.Point{Op: history.CancelScheduled, Key: s.keyAt(seqs[0])}, func() reply {
		if err := s.entity.cancel(seqs); err != nil {
			return failure(err)
		}
		return ok(nil)
	}, nil
}
