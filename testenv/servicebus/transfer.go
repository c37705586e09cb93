package servicebus

import (
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

func (s *store) dispatch() {
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	now := time.Now()
	s.entity.advanceLocked(now)
	s.dispatchLocked(now)
}

// Message implements [amqp.Handler].
func (b *Broker) Message(l *amqp.Link, m amqp.Incoming) {
	n := nodeOf(l)
	n.touch()
	if n.kind != nodeEntity {
		if !m.Settled {
			l.Settle(m.ID, &amqp.Accepted{})
		}
		b.request(l, n, m.Payload)
		return
	}
	b.receive(l, n, m)
}

// receive stores what a sender sent, and answers with an outcome.
func (b *Broker) receive(l *amqp.Link, n *node, in amqp.Incoming) {
	e := n.store.entity
	ms, err := b.unpack(in.Format, in.Payload)
	answer := func() {
		switch {
		case in.Settled:
		case err != nil:
			l.Settle(in.ID, &amqp.Rejected{Error: err})
		default:
			l.Settle(in.ID, &amqp.Accepted{})
		}
	}
	if err != nil {
		b.opts.History.Add(history.Event{Op: history.Send, Entity: e.cfg.Name, Error: err.Error()})
		answer()
		return
	}
	key := ""
	if len(ms) > 0 {
		key = ms[0].key
	}
	b.perform(step{
		point: fault.Point{Op: history.Send, Key: key, Entity: n.store.path},
		link:  l,
		line:  &n.line,
		do:    func() { _, err = e.accept(ms) },
		answer: func() {
			answer()
		},
		refuse: func(a fault.Action) {
			l.Settle(in.ID, &amqp.Rejected{Error: planned(a, condServerBusy)})
		},
	})
}

// Decided implements [amqp.Handler].
func (b *Broker) Decided(s *amqp.Session, d amqp.Decision) {
	if d.Link == nil {
		if !d.Settled {
			s.Settle(d.ID, &amqp.Rejected{Error: amqp.Errorf(condLockLost, "delivery %d is not known", d.ID)})
		}
		return
	}
	n := nodeOf(d.Link)
	n.touch()
	if n.kind != nodeEntity {
		return // a reply needs no settlement
	}
	b.decide(d, n)
}

// decide settles a delivery and answers with exactly one disposition.
func (b *Broker) decide(d amqp.Decision, n *node) {
	token := tokenOf(d.Tag)
	v, err := verdictOf(d.State)
	if err != nil {
		b.refuse(err.Description)
		d.Link.Settle(d.ID, &amqp.Rejected{Error: err})
		return
	}
	settle := func(st amqp.State) {
		if d.Settled {
			return
		}
		d.Link.Settle(d.ID, st)
		if b.opts.RepeatAnswers {
			d.Link.Settle(d.ID, st)
		}
	}
	b.perform(step{
		point: fault.Point{Op: v.op, Key: n.store.keyOf(token), Entity: n.store.path},
		link:  d.Link,
		do:    func() { err = n.store.settle(token, v) },
		answer: func() {
			if err != nil {
				settle(&amqp.Rejected{Error: err})
				return
			}
			settle(outcome(d.State))
		},
		refuse: func(a fault.Action) { settle(&amqp.Rejected{Error: planned(a, condServerBusy)}) },
	})
}

// outcome returns the state with which a settlement is confirmed: the one that the client chose, and for a dead-lettering
// rejected without an error. Python and Java compare the states, and take another one for a lost lock.
func outcome(st amqp.State) amqp.State {
	switch st.(type) {
	case *amqp.Modified:
		return &amqp.Modified{}
	case *amqp.Rejected:
		return &amqp.Rejected{}
	case *amqp.Released, nil:
		return &amqp.Released{}
	}
	return &amqp.Accepted{}
}
