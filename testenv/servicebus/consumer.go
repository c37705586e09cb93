package servicebus

import (
	"sync"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// A consumer is a receiver link of a client on a queue.
type consumer struct {
	link *amqp.Link
	node *node
	// takes tells that messages are deleted as they are sent (receive-and-delete).
	takes bool
	// session is the one that the link has locked, where sessions are required; nil when the lock was lost.
	session *session
}

// payloads lends buffers for encoding messages.
type payloads struct{ pool sync.Pool }

func (p *payloads) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

func (p *payloads) put(b *[]byte) {
	if cap(*b) <= 64<<10 {
		*b = (*b)[:0]
		p.pool.Put(b)
	}
}

// newConsumer returns a receiver that gets nothing yet.
func newConsumer(l *amqp.Link, a amqp.Attach, n *node) *consumer {
	return &consumer{link: l, node: n, takes: a.SenderSettleMode != nil && *a.SenderSettleMode == 1}
}

func (s *store) addConsumerLocked(c *consumer) { s.consumers = append(s.consumers, c) }

func (s *store) removeConsumerLocked(l *amqp.Link) *consumer {
	for i, c := range s.consumers {
		if c.link == l {
			s.consumers = append(s.consumers[:i:i], s.consumers[i+1:]...)
			return c
		}
	}
	return nil
}

// detached forgets a receiver that has gone, and gives up its session.
func (s *store) detached(l *amqp.Link) {
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	c := s.removeConsumerLocked(l)
	if c != nil && c.session != nil && !s.entity.closed {
		now := time.Now()
		s.entity.advanceLocked(now)
		if c.session != nil { // the lock may have ended right now
			c.session.releaseLocked(now)
		}
	}
}

// nextLocked finds the next consumer with credit for which there is a message, in turn, and takes one credit of it. It
// returns nil when there is no such consumer.
func (s *store) nextLocked() (*consumer, *message) {
	n := len(s.consumers)
	for range n {
		s.next = (s.next + 1) % n
		c := s.consumers[s.next]
		if ready := s.readyFor(c); ready != nil && c.link.Reserve() {
			return c, ready.first()
		}
	}
	return nil, nil
}

// readyFor returns the messages that a consumer can get, or nil when there are none.
func (s *store) readyFor(c *consumer) *heap[*message] {
	ready := &s.ready
	if s.sessions != nil {
		if c.session == nil || c.session.sending > 0 {
			return nil
		}
		ready = &c.session.ready
	}
	if ready.len() == 0 {
		return nil
	}
	return ready
}

// dispatchLocked delivers available messages for as long as there are messages and credit.
func (s *store) dispatchLocked(now time.Time) {
	if s.entity.closed || !s.entity.mayReceiveLocked() {
		return
	}
	for {
		c, m := s.nextLocked()
		if c == nil {
			return
		}
		s.readyOf(m).remove(m)
		c.deliverLocked(s, m, now)
	}
}

func (e *entity) mayReceiveLocked() bool { return e.status == Active || e.status == SendDisabled }

func (e *entity) maySendLocked() bool { return e.status == Active || e.status == ReceiveDisabled }

func (c *consumer) op() string {
	if c.takes {
		return history.Take
	}
	return history.Lock
}

// deliverLocked asks the fault plan and delivers one message, for which a credit is reserved.
func (c *consumer) deliverLocked(s *store, m *message, now time.Time) {
	b := s.entity.broker
	before := b.opts.Faults.At(fault.Point{Op: c.op(), Key: m.key, Entity: s.path, Phase: fault.Before})
	if isNone(before) {
		c.lockAndSendLocked(s, m, now)
		return
	}
	s.entity.watchLocked(m, time.Time{}) // neither available nor locked meanwhile
	holds := c.session
	holds.beginLocked()
	b.later(before, func() {
		s.entity.mu.Lock()
		defer s.entity.mu.Unlock()
		now := time.Now()
		s.entity.advanceLocked(now)
		holds.doneLocked()
		if before.Kind == fault.None && c.link.Attached() && c.session == holds {
			c.lockAndSendLocked(s, m, now)
			s.dispatchLocked(now)
			return
		}
		c.back(s, m, now)
		b.spawn(func() { b.applyFault(c.link, before, nil) })
	})
}

// back returns a message that was not locked after all. The credit stays used: the client never hears of it.
func (c *consumer) back(s *store, m *message, now time.Time) {
	s.settleDownLocked(m, now)
	s.dispatchLocked(now)
}

// lockAndSendLocked has the effect of a delivery, asks the plan again, and sends the message.
func (c *consumer) lockAndSendLocked(s *store, m *message, now time.Time) {
	if s.expireLocked(m, now) {
		c.link.Unreserve()
		return
	}
	if c.takes {
		s.recordLocked(effect(history.Take), m)
	} else {
		s.lockLocked(m, now)
		s.recordLocked(effect(history.Lock), m)
	}
	b := s.entity.broker
	buf := b.payloads.get()
	*buf = m.encodeTo(*buf, !c.takes)
	tag := netToken(newToken())
	if c.takes {
		s.removeLocked(m)
	} else {
		tag = netToken(m.token)
	}
	c.node.touch()
	after := b.opts.Faults.At(fault.Point{Op: c.op(), Key: m.key, Entity: s.path, Phase: fault.After})
	if isNone(after) {
		c.link.Deliver(tag, c.takes, *buf)
		b.payloads.put(buf)
		return
	}
	holds := c.session
	holds.beginLocked()
	b.later(after, func() {
		if after.Kind == fault.None {
			c.link.Deliver(tag, c.takes, *buf)
		} else {
			b.applyFault(c.link, after, nil)
		}
		s.entity.mu.Lock()
		defer s.entity.mu.Unlock()
		holds.doneLocked()
		s.dispatchLocked(time.Now())
	})
}
