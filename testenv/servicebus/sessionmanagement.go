package servicebus

import (
	"net/http"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// onSession wraps an operation on a session, which the connection that asks must have locked.
func onSession(r *request, op string, do func(n *session, now time.Time) reply) (fault.Point, func() reply, *reply) {
	s := r.node.store
	id, ok := r.field("session-id").(string)
	if s.sessions == nil || !ok {
		return early(badRequest("%s needs a session-id and an entity with sessions", op))
	}
	return fault.Point{Op: op, Key: id}, func() reply {
		s.entity.mu.Lock()
		defer s.entity.mu.Unlock()
		now := time.Now()
		s.entity.advanceLocked(now)
		n := s.sessions.byID[id]
		if n == nil || n.holder == nil || n.holder.link.Conn() != r.link.Conn() {
			err := amqp.Errorf(condSessionLockLost, "The session lock was lost. Request a new session receiver. Session: '%s', entity: %s.", id, s.path)
			s.recordLocked(history.Event{Op: op, Key: id, Session: id, Error: err.Condition, Status: http.StatusGone}, nil)
			return failure(err)
		}
		return do(n, now)
	}, nil
}

func (b *Broker) renewSession(r *request) (fault.Point, func() reply, *reply) {
	return onSession(r, history.RenewSession, func(n *session, now time.Time) reply {
		n.renewLocked(now)
		return ok(amqp.Map{{Key: "expiration", Value: n.lockedUntil}})
	})
}

func (b *Broker) getSessionState(r *request) (fault.Point, func() reply, *reply) {
	return onSession(r, history.GetSessionState, func(n *session, _ time.Time) reply {
		n.recordLocked(history.GetSessionState)
		var state any
		if n.state != nil {
			state = n.state
		}
		return ok(amqp.Map{{Key: "session-state", Value: state}})
	})
}

// setSessionState stores the state of a session. An empty one is none: Go sends it so.
func (b *Broker) setSessionState(r *request) (fault.Point, func() reply, *reply) {
	state, _ := r.field("session-state").([]byte)
	return onSession(r, history.SetSessionState, func(n *session, now time.Time) reply {
		if len(state) > b.opts.MaxMessageSize {
			return badRequest("the session state has %d bytes; at most %d are allowed", len(state), b.opts.MaxMessageSize)
		}
		n.state, n.updated = nil, now
		if len(state) > 0 {
			n.state = append([]byte(nil), state...)
		}
		n.recordLocked(history.SetSessionState)
		return ok(nil)
	})
}

// farFuture and what is behind it asks for all sessions, whenever their states were set.
var farFuture = time.Date(9999, 12, 1, 0, 0, 0, 0, time.UTC)

// listSessions returns the ids of the sessions that have messages or a state, or of those whose state was set after a time.
func (b *Broker) listSessions(r *request) (fault.Point, func() reply, *reply) {
	s := r.node.store
	since, _ := r.field("last-updated-time").(time.Time)
	skip, _ := r.field("skip").(int32)
	top, _ := r.field("top").(int32)
	if s.sessions == nil || skip < 0 || top < 1 {
		return early(badRequest("get-message-sessions needs top, skip and an entity with sessions"))
	}
	return fault.Point{Op: history.ListSessions}, func() reply {
		s.entity.mu.Lock()
		defer s.entity.mu.Unlock()
		s.entity.advanceLocked(time.Now())
		ids := s.sessions.list(func(n *session) bool {
			if since.Before(farFuture) {
				return n.state != nil && n.updated.After(since)
			}
			return n.state != nil || n.messages > 0
		})
		s.recordLocked(history.Event{Op: history.ListSessions}, nil)
		ids = ids[min(int(skip), len(ids)):]
		ids = ids[:min(int(top), len(ids))]
		if len(ids) == 0 {
			return reply{status: http.StatusNoContent, description: "No sessions"}
		}
		return ok(amqp.Map{{Key: "skip", Value: skip + int32(len(ids))}, {Key: "sessions-ids", Value: amqp.Strings(ids)}})
	}, nil
}

// sessionOf returns the session for which a client asks for messages by number: it names the session, or the link that has
// locked it. The lock must last.
func (s *store) sessionOf(r *request) (*session, *amqp.Error) {
	id, named := r.field("session-id").(string)
	link, _ := r.property("associated-link-name").(string)
	for _, c := range s.consumers {
		n := c.session
		if n != nil && c.link.Conn() == r.link.Conn() && (named && n.id == id || !named && c.link.Name() == link) {
			return n, nil
		}
	}
	return nil, amqp.Errorf(condSessionLockLost, "The session lock was lost. Request a new session receiver. Session: '%s', entity: %s.", id, s.path)
}
