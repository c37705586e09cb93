package servicebus

import (
	"time"

	"github.com/orderworker/orderworker/testenv/history"
)

// A store is one log of messages: that of an entity, or that of its dead letters.
type store struct {
	entity *entity
	path   string
	dead   bool

	all       index
	ready     heap[*message] // messages that can be delivered, by sequence number; those of sessions are with their session
	sessions  *sessions      // nil where none are required
	consumers []*consumer
	next      int // the consumer whose turn it is
	deferred  int
	scheduled int
}

func newStore(e *entity, path string, dead bool) store {
	s := store{entity: e, path: path, dead: dead, ready: newReady()}
	if e.cfg.RequiresSession && !dead {
		s.sessions = newSessions()
	}
	return s
}

// newReady returns a heap of messages in the order in which they are delivered.
func newReady() heap[*message] {
	return heap[*message]{
		less: func(a, b *message) bool { return a.seq < b.seq },
		at:   func(m *message) *int { return &m.readyIndex },
	}
}

// readyOf is where a message waits to be delivered.
func (s *store) readyOf(m *message) *heap[*message] {
	if m.session != nil {
		return &m.session.ready
	}
	return &s.ready
}

func (s *store) readyLen() int {
	if s.sessions != nil {
		return s.sessions.readyLen()
	}
	return s.ready.len()
}

// recordLocked appends an event about a message.
func (s *store) recordLocked(ev history.Event, m *message) {
	h := s.entity.broker.opts.History
	if h == nil {
		return
	}
	ev.Entity = s.path
	if m != nil {
		ev.Key, ev.Sequence, ev.Session = m.key, m.seq, m.sessionID
		if m.locked {
			ev.Lock = m.token.String()
		}
		if m.locked || ev.Op == history.Take {
			ev.Delivery = int(m.failed) + 1
		}
	}
	h.Add(ev)
}

func effect(op string) history.Event { return history.Event{Op: op, Effect: true} }

// numberLocked gives a message a new sequence number. What it had first stays known.
func (e *entity) numberLocked(m *message, now time.Time) {
	e.sequence++
	m.seq = e.sequence
	m.enqueued = now
	if m.firstSeq == 0 {
		m.firstSeq = m.seq
	}
}

func (s *store) addLocked(m *message) {
	m.home = s
	if s.sessions != nil {
		m.session = s.sessions.of(s, m.sessionID)
		m.session.messages++
	}
	s.all.add(m)
	s.entity.bytes += m.size
	switch m.state {
	case scheduled:
		s.scheduled++
	case deferred:
		s.deferred++
	}
}

// removeLocked takes a message out of its store; it is no longer locked, ready or watched.
func (s *store) removeLocked(m *message) {
	s.unlockLocked(m)
	s.readyOf(m).remove(m)
	s.entity.deadlines.remove(m)
	s.all.remove(m)
	s.entity.bytes -= m.size
	s.setStateLocked(m, active)
	if n := m.session; n != nil {
		m.session = nil
		n.messages--
		s.sessions.reviewLocked(n, time.Now())
	}
}

func (s *store) setStateLocked(m *message, st state) {
	s.deferred -= b2i(m.state == deferred)
	s.scheduled -= b2i(m.state == scheduled)
	m.state = st
	s.deferred += b2i(st == deferred)
	s.scheduled += b2i(st == scheduled)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lockLocked locks a message for one delivery.
func (s *store) lockLocked(m *message, now time.Time) {
	m.locked = true
	m.token = newToken()
	s.entity.locks[m.token] = m
	s.readyOf(m).remove(m)
	if n := m.session; n != nil { // it is locked as long as its session
		m.lockedUntil = n.lockedUntil
		n.held[m.seq] = m
		s.entity.watchLocked(m, time.Time{})
		return
	}
	m.lockedUntil = now.Add(s.entity.cfg.LockDuration)
	s.entity.watchLocked(m, m.lockedUntil)
}

func (s *store) unlockLocked(m *message) {
	if m.locked {
		m.locked = false
		delete(s.entity.locks, m.token)
		if m.session != nil {
			delete(m.session.held, m.seq)
		}
	}
}

// settleDownLocked puts a message that is neither locked nor under way back to where its state belongs: available again,
// deferred or scheduled. A message whose life has ended leaves instead.
func (s *store) settleDownLocked(m *message, now time.Time) {
	if m.state != scheduled && s.expireLocked(m, now) {
		return
	}
	switch m.state {
	case scheduled:
		s.entity.watchLocked(m, m.due)
		return
	case active:
		if s.forwardLocked(m, now) {
			return
		}
		if ready := s.readyOf(m); !ready.has(m) {
			ready.push(m)
		}
		if m.session != nil {
			s.sessions.reviewLocked(m.session, now)
		}
	case deferred: // waits to be received by its number
	}
	if s.target() != "" {
		return // it is tried again
	}
	if s.dead {
		s.entity.watchLocked(m, time.Time{}) // dead letters do not expire
		return
	}
	s.entity.watchLocked(m, m.expires)
}
