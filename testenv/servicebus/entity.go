package servicebus

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// Status says what a queue lets happen, in the words of the service.
type Status int

// The statuses of a queue.
const (
	Active Status = iota
	Disabled
	SendDisabled
	ReceiveDisabled
)

const deadLetterSuffix = "/$DeadLetterQueue"

// An entity is a queue with its dead-letter queue. One mutex guards both, because messages move between them. A method
// whose name ends in Locked wants it held. The order of locks is the entity's, then a connection's.
type entity struct {
	broker *Broker
	cfg    Queue

	mu         sync.Mutex
	closed     bool
	status     Status
	rights     Rights
	main, dead store
	sequence   int64
	bytes      int64
	locks      map[amqp.UUID]*message
	deadlines  heap
	timer      *time.Timer
	armed      time.Time // when timer fires; zero when it does not
	duplicates duplicates
}

// A store is the queue proper or its dead-letter queue.
type store struct {
	entity *entity
	path   string
	dead   bool

	all       index
	ready     heap // messages that can be delivered, by sequence number
	consumers []*consumer
	next      int // the consumer whose turn it is
	deferred  int
	scheduled int
}

func newEntity(b *Broker, cfg Queue) *entity {
	e := &entity{
		broker: b, cfg: cfg, rights: Manage, locks: map[amqp.UUID]*message{},
		duplicates: duplicates{window: cfg.DuplicateDetectionHistoryTimeWindow, seen: map[string]time.Time{}},
	}
	e.main = newStore(e, cfg.Name, false)
	e.dead = newStore(e, cfg.Name+deadLetterSuffix, true)
	e.deadlines = heap{
		less: func(a, b *message) bool { return a.deadline.Before(b.deadline) },
		at:   func(m *message) *int { return &m.deadlineIndex },
	}
	return e
}

func newStore(e *entity, path string, dead bool) store {
	return store{entity: e, path: path, dead: dead, ready: heap{
		less: func(a, b *message) bool { return a.seq < b.seq },
		at:   func(m *message) *int { return &m.readyIndex },
	}}
}

// close ends the timer. Nothing changes any more.
func (e *entity) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.timer != nil {
		e.timer.Stop()
	}
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

// storeLocked puts a message under a new sequence number into the main queue.
func (e *entity) storeLocked(m *message, now time.Time) {
	e.sequence++
	m.seq = e.sequence
	m.enqueued = now
	if m.firstSeq == 0 {
		m.firstSeq = m.seq
	}
	e.main.addLocked(m)
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

// newToken returns a random uuid of version 4.
func newToken() amqp.UUID {
	var u amqp.UUID
	binary.LittleEndian.PutUint64(u[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(u[8:], rand.Uint64())
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
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

// watchLocked sets the time at which the broker has to look at a message; zero is never.
func (e *entity) watchLocked(m *message, at time.Time) {
	e.deadlines.remove(m)
	if at.IsZero() || e.closed {
		return
	}
	m.deadline = at
	e.deadlines.push(m)
	e.armLocked()
}

// armLocked makes the timer fire no later than the first deadline. A timer that fires too early costs nothing.
func (e *entity) armLocked() {
	if e.deadlines.len() == 0 || e.closed {
		return
	}
	at := e.deadlines.first().deadline
	if !e.armed.IsZero() && !at.Before(e.armed) {
		return
	}
	e.armed = at
	d := max(0, time.Until(at))
	if e.timer == nil {
		e.timer = time.AfterFunc(d, e.tick)
		return
	}
	e.timer.Reset(d)
}

func (e *entity) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.armed = time.Time{}
	e.advanceLocked(time.Now())
	e.armLocked()
}

// advanceLocked does everything that time has made due. Every operation begins with it, so that nothing depends on when
// the timer's goroutine runs.
func (e *entity) advanceLocked(now time.Time) {
	for e.deadlines.len() > 0 {
		m := e.deadlines.first()
		if m.deadline.After(now) {
			return
		}
		e.deadlines.remove(m)
		s := m.home
		switch {
		case m.locked:
			s.lockEndedLocked(m, now)
		case m.state == scheduled:
			e.activateLocked(m, now)
		default:
			s.expireLocked(m, now)
		}
		s.dispatchLocked(now)
	}
}

// lockEndedLocked counts a delivery that was never settled. The client is told nothing.
func (s *store) lockEndedLocked(m *message, now time.Time) {
	s.recordLocked(effect(history.LockExpired), m)
	s.unlockLocked(m)
	s.failedLocked(m, now)
}

// failedLocked counts a delivery without success, and dead-letters the message when there have been enough.
func (s *store) failedLocked(m *message, now time.Time) {
	if s.dead { // dead letters are not counted, or they would have nowhere to go
		s.settleDownLocked(m, now)
		return
	}
	m.failed++
	if limit := s.entity.cfg.MaxDeliveryCount; int(m.failed) >= limit {
		s.entity.buryLocked(m, "MaxDeliveryCountExceeded", "Message could not be consumed after "+strconv.Itoa(limit)+" delivery attempts.", now)
		return
	}
	s.settleDownLocked(m, now)
}

// activateLocked enqueues a scheduled message, under a new sequence number.
func (e *entity) activateLocked(m *message, now time.Time) {
	e.main.removeLocked(m)
	m.limitLife(now, e.cfg.DefaultMessageTimeToLive)
	e.storeLocked(m, now)
	e.main.recordLocked(effect(history.Send), m)
	e.main.settleDownLocked(m, now)
}

// expireLocked ends the life of a message whose time has come, and reports whether it did.
func (s *store) expireLocked(m *message, now time.Time) bool {
	if s.dead || m.expires.IsZero() || m.expires.After(now) {
		return false
	}
	if s.entity.cfg.DeadLetteringOnMessageExpiration {
		s.entity.buryLocked(m, "TTLExpiredException", "The message expired and was dead lettered.", now)
		return true
	}
	s.recordLocked(effect(history.Expired), m)
	s.removeLocked(m)
	return true
}

// buryLocked moves a message to the dead-letter queue for a reason of the broker's own.
func (e *entity) buryLocked(m *message, reason, description string, now time.Time) {
	application, err := m.modified(deadLetterProperties(reason, description))
	if err == nil {
		e.replaceApplicationLocked(m, application)
	}
	e.moveToDeadLocked(m, reason, now)
}

func deadLetterProperties(reason, description string) amqp.Map {
	return amqp.Map{{Key: "DeadLetterReason", Value: reason}, {Key: "DeadLetterErrorDescription", Value: description}}
}

func (e *entity) replaceApplicationLocked(m *message, section []byte) {
	grown := int64(len(section) - len(m.application))
	m.application = section
	m.size += grown
	e.bytes += grown
}

func (e *entity) moveToDeadLocked(m *message, reason string, now time.Time) {
	ev := effect(history.DeadLetter)
	ev.Note = reason
	e.main.recordLocked(ev, m)
	e.main.removeLocked(m)
	m.source = e.cfg.Name
	e.dead.addLocked(m)
	e.dead.settleDownLocked(m, now)
	e.dead.dispatchLocked(now)
}

// A duplicates remembers message ids for a window of time.
type duplicates struct {
	window time.Duration
	seen   map[string]time.Time // by id: when it is forgotten
	order  []string             // by age
}

// repeated reports whether the id was seen within the window, and remembers it if not.
func (d *duplicates) repeated(id string, now time.Time) bool {
	for len(d.order) > 0 && !d.seen[d.order[0]].After(now) {
		delete(d.seen, d.order[0])
		d.order = d.order[1:]
	}
	if _, ok := d.seen[id]; ok {
		return true
	}
	d.seen[id] = now.Add(d.window)
	d.order = append(d.order, id)
	return false
}

func lower(path string) string { return strings.ToLower(strings.Trim(path, "/")) }
