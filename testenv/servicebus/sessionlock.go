package servicebus

import (
	"time"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

const (
	condSessionLockLost     = "com.microsoft:session-lock-lost"
	condSessionCannotLocked = "com.microsoft:session-cannot-be-locked"
	condTimeout             = "com.microsoft:timeout"
)

// recordLocked appends an event about a session.
func (n *session) recordLocked(op string) {
	n.store.recordLocked(history.Event{Op: op, Effect: true, Key: n.id, Session: n.id}, nil)
}

// lockLocked locks a session for a receiver and tells it. It reports false when the receiver has gone.
func (n *session) lockLocked(c *consumer, now time.Time) bool {
	n.holder, c.session = c, n
	n.extendLocked(now)
	n.store.sessions.reviewLocked(n, now)
	n.store.addConsumerLocked(c)
	n.recordLocked(history.AcceptSession)
	accepted := c.link.Accept(amqp.Terms{
		Properties: amqp.Map{{Key: amqp.Symbol("com.microsoft:locked-until-utc"), Value: ticks(n.lockedUntil)}},
		Filter:     answerFilter(c.link.Attach(), n.id),
	})
	if !accepted {
		n.store.removeConsumerLocked(c.link)
		n.releaseLocked(now)
	}
	return accepted
}

// ticks is a time as .NET counts it: in steps of 100 ns since the year 1.
func ticks(t time.Time) int64 {
	const unixEpoch = 621_355_968_000_000_000
	return unixEpoch + t.UnixMilli()*10_000
}

// extendLocked lets the lock of a session, and of what is locked under it, last for its duration from now.
func (n *session) extendLocked(now time.Time) {
	n.lockedUntil = now.Add(n.store.entity.cfg.LockDuration)
	n.store.entity.watchLocked(n, n.lockedUntil)
	for _, m := range n.held {
		m.lockedUntil = n.lockedUntil
	}
}

// renewLocked extends the lock of a session.
func (n *session) renewLocked(now time.Time) {
	n.extendLocked(now)
	n.recordLocked(history.RenewSession)
	for _, m := range n.heldInOrder() {
		n.store.recordLocked(effect(history.Renew), m)
	}
}

// fallDueLocked ends the lock that was not renewed. Every message that its holder has counts as delivered without success,
// and the link is detached: the service tells the holder so.
func (n *session) fallDueLocked(now time.Time) {
	s := n.store
	n.recordLocked(history.SessionLockExpired)
	lost := n.holder.link
	for _, m := range n.heldInOrder() {
		s.lockEndedLocked(m, now)
	}
	n.freeLocked(now)
	s.entity.broker.spawn(func() {
		lost.Detach(amqp.Errorf(condSessionLockLost, "The session lock has expired on the MessageSession. Session: '%s', entity: %s.", n.id, s.path))
	})
}

// releaseLocked gives up a session whose receiver has gone. Its messages are available again, and no delivery is counted,
// as the service documents it for a session that is closed.
func (n *session) releaseLocked(now time.Time) {
	s := n.store
	n.recordLocked(history.ReleaseSession)
	for _, m := range n.heldInOrder() {
		s.recordLocked(effect(history.Release), m)
		s.unlockLocked(m)
		s.settleDownLocked(m, now)
	}
	n.freeLocked(now)
}

// freeLocked takes a session from its holder, who gets nothing over the link any more. It comes last, so that the next
// holder finds all messages in their places.
func (n *session) freeLocked(now time.Time) {
	n.holder.session = nil
	n.holder = nil
	n.store.entity.watchLocked(n, time.Time{})
	n.store.sessions.reviewLocked(n, now)
}
