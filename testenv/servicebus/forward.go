package servicebus

import (
	"fmt"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// maxHops is how often a message is forwarded; the service allows four.
const maxHops = 4

// forwardRetry is how long a message waits whose target cannot take it. The service moves it to the transfer dead-letter
// queue in the end, which this broker does not have.
const forwardRetry = 10 * time.Second

// forwardPath returns the path of a target, which administration clients give as a whole URL.
func forwardPath(target string) string {
	if strings.Contains(target, "://") {
		return audiencePath(target)
	}
	return lower(target)
}

// target is the path to which the messages of a log go, or "" where they stay.
func (s *store) target() string {
	if s.dead {
		return forwardPath(s.entity.cfg.ForwardDeadLetteredMessagesTo)
	}
	return forwardPath(s.entity.cfg.ForwardTo)
}

// forwardLocked moves a message on where its log forwards, and reports whether it is gone. Where the target cannot take it
// now, it is tried again later.
func (s *store) forwardLocked(m *message, now time.Time) bool {
	path := s.target()
	if path == "" {
		return false
	}
	if m.hops >= maxHops {
		if !s.dead {
			s.entity.buryLocked(m, "MaxTransferHopCountExceeded", "The maximum number of allowed hops when forwarding between queues exceeded the limit. This value is set to 4.", now)
		}
		return !s.dead
	}
	c := m.copy()
	c.hops = m.hops + 1
	target := s.entity.entities[path]
	if target == nil || target.main.direction(false) != nil || target.admitLocked([]*message{c}) != nil {
		s.entity.watchLocked(m, now.Add(forwardRetry))
		return false
	}
	ev := effect(history.Forward)
	ev.Note = target.cfg.Name
	s.recordLocked(ev, m)
	s.removeLocked(m)
	target.enqueueLocked(c, now)
	target.main.dispatchLocked(now)
	return true
}

// forwards says why nobody can receive here.
func (s *store) forwards() *amqp.Error {
	if s.target() == "" {
		return nil
	}
	return amqp.Errorf(amqp.NotAllowed, "Cannot create a message receiver on an entity with auto-forwarding enabled. Entity: %s.", s.path)
}

// forwardFaults says what is wrong with the targets of an entity; known reports whether a path is one of a queue or a topic.
func (q Queue) forwardFaults(known func(path string) bool) []string {
	var faults []string
	for name, target := range map[string]string{"ForwardTo": q.ForwardTo, "ForwardDeadLetteredMessagesTo": q.ForwardDeadLetteredMessagesTo} {
		if target != "" && !known(forwardPath(target)) {
			faults = append(faults, fmt.Sprintf("%s: there is no queue or topic %q", name, target))
		}
	}
	if q.ForwardTo != "" && q.RequiresSession {
		faults = append(faults, "ForwardTo is not for entities that require sessions")
	}
	return faults
}
