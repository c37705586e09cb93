package servicebus

import (
	"strconv"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// fallDueLocked does what the time has come for.
func (m *message) fallDueLocked(now time.Time) {
	s := m.home
	switch {
	case m.locked:
		s.lockEndedLocked(m, now)
	case m.state == scheduled:
		s.entity.activateLocked(m, now)
	default:
		s.settleDownLocked(m, now) // its life has ended, or it is to be forwarded
	}
	s.dispatchLocked(now)
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

// activateLocked lets a scheduled message arrive.
func (e *entity) activateLocked(m *message, now time.Time) {
	e.main.removeLocked(m)
	e.arriveLocked(m, now)
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
