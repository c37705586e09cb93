package servicebus

import (
	"slices"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// defaultSessionWait is how long a receiver waits for a session when it does not say so.
const defaultSessionWait = 65 * time.Second

// A waiter is a receiver that wants the next session that can be accepted.
type waiter struct {
	alarm // rings when it has waited long enough
	store *store
	c     *consumer
}

// fallDueLocked refuses a receiver for which there was no session.
func (w *waiter) fallDueLocked(time.Time) {
	w.store.forgetWaiterLocked(w)
	refuseSession(w.store, w.c.link, amqp.Errorf(condTimeout, "The operation did not complete within the allotted time, and no session of %s is available.", w.store.path))
}

// refuseSession tells a client that it gets no session.
func refuseSession(s *store, l *amqp.Link, err *amqp.Error) {
	s.recordLocked(history.Event{Op: history.AcceptSession, Error: err.Condition}, nil)
	peerOf(l).remove(l)
	l.Refuse(err)
}

// forgetWaiterLocked takes a receiver out of those that wait.
func (s *store) forgetWaiterLocked(w *waiter) {
	s.entity.watchLocked(w, time.Time{})
	s.sessions.waiting = slices.DeleteFunc(s.sessions.waiting, func(o *waiter) bool { return o == w })
}

// sessionWanted reads the filter for a session from an attach: the id, or nil for any session. It reports false without one.
func sessionWanted(a amqp.Attach) (id *string, wanted bool) {
	if a.Source == nil {
		return nil, false
	}
	v, wanted := a.Source.Filter.Get(sessionFilter)
	if d, ok := v.(amqp.Described); ok {
		v = d.Value
	}
	if s, ok := v.(string); ok {
		return &s, true
	}
	return nil, wanted
}

// answerFilter returns the filter with the session that a receiver got, in the form in which it was asked for: Go describes
// the value, and the other clients do not.
func answerFilter(a amqp.Attach, id string) amqp.Map {
	var value any = id
	asked, _ := a.Source.Filter.Get(sessionFilter)
	if d, ok := asked.(amqp.Described); ok {
		value = amqp.Described{Descriptor: d.Descriptor, Value: id}
	}
	return amqp.Map{{Key: amqp.Symbol(sessionFilter), Value: value}}
}

// fits says why a receiver that wants a session, or wants none, cannot be had here.
func (s *store) fits(wantsSession bool) *amqp.Error {
	switch {
	case s.sessions != nil && !wantsSession:
		return amqp.Errorf(amqp.NotAllowed, "It is not possible for an entity that requires sessions to create a non-sessionful message receiver. Entity: %s.", s.path)
	case s.sessions == nil && wantsSession:
		return amqp.Errorf(amqp.NotAllowed, "A sessionful message receiver cannot be created on an entity that does not require sessions. Entity: %s.", s.path)
	}
	return nil
}

// acceptSession gives a receiver the session that it wants, now or when there is one, or refuses it.
func (s *store) acceptSession(c *consumer, id *string, wait time.Duration) {
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	now := time.Now()
	s.entity.advanceLocked(now)
	if id == nil {
		w := &waiter{store: s, c: c}
		s.sessions.waiting = append(s.sessions.waiting, w)
		s.entity.watchLocked(w, now.Add(wait))
		s.serveWaitingLocked(now)
		return
	}
	n := s.sessions.of(s, *id)
	if n.holder != nil {
		refuseSession(s, c.link, amqp.Errorf(condSessionCannotLocked, "The requested session '%s' cannot be accepted. It may be locked by another receiver.", n.id))
		return
	}
	n.lockLocked(c, now)
}

// serveWaitingLocked gives sessions to receivers for as long as there are both.
func (s *store) serveWaitingLocked(now time.Time) {
	for len(s.sessions.waiting) > 0 && len(s.sessions.line) > 0 {
		w := s.sessions.waiting[0]
		s.forgetWaiterLocked(w)
		s.sessions.line[0].lockLocked(w.c, now)
	}
}

// sessionWait reads how long a client wants to wait for a session.
func sessionWait(a amqp.Attach) time.Duration {
	v, _ := a.Properties.Get("com.microsoft:timeout")
	if ms, ok := v.(uint32); ok {
		return time.Duration(ms) * time.Millisecond
	}
	return defaultSessionWait
}
