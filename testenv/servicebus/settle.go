package servicebus

import (
	"time"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// The error conditions of Service Bus.
const (
	condLockLost       = "com.microsoft:message-lock-lost"
	condNotFound       = "com.microsoft:message-not-found"
	condEntityDisabled = "com.microsoft:entity-disabled"
	condServerBusy     = "com.microsoft:server-busy"
	condDeadLetter     = "com.microsoft:dead-letter"
	condOutOfRange     = "com.microsoft:argument-out-of-range"
)

// The bounds of the properties of a message, in bytes and characters.
const (
	maxPropertiesSize  = 64 << 10
	maxDeadLetterChars = 4096
)

// A verdict is what a receiver decided about a message it holds. op is one of the settlements of package history.
type verdict struct {
	op      string
	changes amqp.Map
	// reason is the dead-letter reason, for the history.
	reason string
}

// verdictOf reads a delivery state of a client.
func verdictOf(st amqp.State) (verdict, *amqp.Error) {
	switch st := st.(type) {
	case *amqp.Accepted:
		return verdict{op: history.Complete}, nil
	case *amqp.Modified:
		if st.UndeliverableHere {
			return verdict{op: history.Defer, changes: st.Annotations}, nil
		}
		return verdict{op: history.Abandon, changes: st.Annotations}, nil
	case *amqp.Rejected:
		return deadLetterVerdict(st.Error), nil
	case *amqp.Released, nil:
		return verdict{op: history.Release}, nil
	}
	return verdict{}, amqp.Errorf(amqp.NotImplemented, "the embedded Service Bus does not implement the delivery state %T", st)
}

// deadLetterVerdict reads reason and description from the info of the error, where the clients put them, or from the error
// itself when another condition was sent.
func deadLetterVerdict(e *amqp.Error) verdict {
	v := verdict{op: history.DeadLetter}
	if e == nil {
		return v
	}
	v.changes = e.Info
	if len(e.Info) == 0 && e.Condition != condDeadLetter {
		v.changes = deadLetterProperties(e.Condition, e.Description)
	}
	reason, _ := v.changes.Get("DeadLetterReason")
	v.reason, _ = reason.(string)
	return v
}

// lockedLocked returns the message that a token holds in this store, while the lock lasts.
func (s *store) lockedLocked(token amqp.UUID) *message {
	m := s.entity.locks[token]
	if m == nil || m.home != s {
		return nil
	}
	return m
}

// lockLost is what a client is told whose lock has ended: that of the message, or that of its session.
func (s *store) lockLost(token amqp.UUID) *amqp.Error {
	condition := condLockLost
	if s.sessions != nil {
		condition = condSessionLockLost
	}
	return amqp.Errorf(condition, "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue. Lock token: %s, entity: %s.", token, s.path)
}

// keyOf returns the message id of a lock token, or "".
func (s *store) keyOf(token amqp.UUID) string {
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	if m := s.entity.locks[token]; m != nil {
		return m.key
	}
	return ""
}

// settle carries out a verdict on the message that a token holds. The error is what the client is told.
func (s *store) settle(token amqp.UUID, v verdict) *amqp.Error {
	e := s.entity
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.advanceLocked(now)
	m := s.lockedLocked(token)
	if m == nil {
		err := s.lockLost(token)
		s.recordLocked(history.Event{Op: v.op, Lock: token.String(), Error: err.Condition}, nil)
		return err
	}
	if err := s.applyLocked(m, v, now); err != nil {
		s.recordLocked(history.Event{Op: v.op, Error: err.Error()}, m)
		return err
	}
	s.dispatchLocked(now)
	return nil
}

// applyLocked changes the state of a locked message. On an error nothing has changed.
func (s *store) applyLocked(m *message, v verdict, now time.Time) *amqp.Error {
	application, err := s.changeLocked(m, v)
	if err != nil {
		return err
	}
	s.entity.replaceApplicationLocked(m, application)
	if v.op == history.DeadLetter {
		s.entity.moveToDeadLocked(m, v.reason, now)
		return nil
	}
	s.recordLocked(effect(v.op), m)
	switch v.op {
	case history.Complete:
		s.removeLocked(m)
	case history.Abandon:
		s.unlockLocked(m)
		s.failedLocked(m, now)
	case history.Defer:
		s.unlockLocked(m)
		m.failed++ // the service counts the delivery that ended so
		s.setStateLocked(m, deferred)
		s.settleDownLocked(m, now)
	case history.Release:
		s.unlockLocked(m)
		s.settleDownLocked(m, now)
	}
	return nil
}

// changeLocked returns the application properties after the verdict, or why it cannot be carried out.
func (s *store) changeLocked(m *message, v verdict) ([]byte, *amqp.Error) {
	if v.op == history.DeadLetter && s.dead {
		return nil, amqp.Errorf(amqp.NotAllowed, "a message in %s cannot be dead-lettered again", s.path)
	}
	for _, name := range []string{"DeadLetterReason", "DeadLetterErrorDescription"} {
		value, _ := v.changes.Get(name)
		if text, ok := value.(string); ok && v.op == history.DeadLetter && len([]rune(text)) > maxDeadLetterChars {
			return nil, amqp.Errorf(condOutOfRange, "%s has %d characters; at most %d are allowed", name, len([]rune(text)), maxDeadLetterChars)
		}
	}
	application, err := m.modified(v.changes)
	if err != nil {
		return nil, amqp.Errorf(amqp.DecodeError, "the properties to modify cannot be applied: %v", err)
	}
	if len(application)+len(m.properties) > maxPropertiesSize {
		return nil, amqp.Errorf(condOutOfRange, "the properties would have %d bytes; at most %d are allowed", len(application)+len(m.properties), maxPropertiesSize)
	}
	return application, nil
}

// renew extends the locks of all tokens, or of none when one of them is lost.
func (s *store) renew(tokens []amqp.UUID) ([]time.Time, *amqp.Error) {
	e := s.entity
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.advanceLocked(now)
	for _, t := range tokens {
		if s.lockedLocked(t) == nil {
			err := s.lockLost(t)
			s.recordLocked(history.Event{Op: history.Renew, Lock: t.String(), Error: err.Condition, Status: 410}, nil)
			return nil, err
		}
	}
	until := make([]time.Time, len(tokens))
	for i, t := range tokens {
		m := e.locks[t]
		m.lockedUntil = now.Add(e.cfg.LockDuration)
		e.watchLocked(m, m.lockedUntil)
		until[i] = m.lockedUntil
		s.recordLocked(effect(history.Renew), m)
	}
	return until, nil
}
