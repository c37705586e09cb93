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
	ready     heap[*message] // messages that can be delivered, by sequence number
	consumers []*consumer
	next      int // the consumer whose turn it is
	deferred  int
	scheduled int
}

func newStore(e *entity, path string, dead bool) store {
	return store{entity: e, path: path, dead: dead, ready: heap[*message]{
		less: func(a, b *message) bool { return a.seq < b.seq },
		at:   func(m *message) *int { return &m.readyIndex },
	}}
}

// recordLocked appends an event about a message.
func (s *store) recordLocked(ev history.Event, m *message) {
	h := s.entity.broker.opts.History
	if h == nil {
		return
	}
	ev.Entity = s.path
	if m != nil {
		ev.Key, ev.Sequence = m.key, m.seq
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
	s.ready.remove(m)
	s.entity.deadlines.remove(m)
	s.all.remove(m)
	s.entity.bytes -= m.size
	s.setStateLocked(m, active)
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
	m.lockedUntil = now.Add(s.entity.cfg.LockDuration)
	s.entity.locks[m.token] = m
	s.ready.remove(m)
	s.entity.watchLocked(m, m.lockedUntil)
}

func (s *store) unlockLocked(m *message) {
	if m.locked {
		m.locked = false
		delete(s.entity.locks, m.token)
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
		s.ready.push(m)
	case deferred: // waits to be received by its number
	}
	if s.dead {
		s.entity.watchLocked(m, time.Time{}) // dead letters do not expire
		return
	}
	s.entity.watchLocked(m, m.expires)
}
