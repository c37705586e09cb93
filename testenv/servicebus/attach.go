package servicebus

import (
	"cmp"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

const (
	cbsAddress       = "$cbs"
	managementSuffix = "/$management"
	sessionFilter    = "com.microsoft:session-filter"
)

// resolve finds what is at an address. The error is what the client is told; loud tells that the broker knows the
// thing and does not implement it.
func (b *Broker) resolve(address string) (n *node, err *amqp.Error, loud bool) {
	path := lower(address)
	if strings.Contains(path, "://") { // Python and Proton name a node by its whole URL
		path = audiencePath(path)
	}
	if path == cbsAddress {
		return &node{kind: nodeCBS, path: path}, nil, false
	}
	n = &node{path: path}
	if p, ok := strings.CutSuffix(path, managementSuffix); ok {
		n.kind, n.path = nodeManagement, p
	}
	if n.store = b.namespace.lookup(n.path); n.store != nil {
		return n, nil, false
	}
	if what := unimplementedPath(n.path); what != "" {
		return nil, amqp.Errorf(amqp.NotAllowed, "the embedded Service Bus does not implement %s: %s", what, address), true
	}
	return nil, amqp.Errorf(amqp.NotFound, "The messaging entity '%s' could not be found.", address), false
}

// unimplementedPath names what a path asks for that the service has and this broker does not.
func unimplementedPath(path string) string {
	if strings.Contains(path, "/$transfer") {
		return "transfer dead-letter queues"
	}
	return ""
}

// Opened implements [amqp.Handler].
func (b *Broker) Opened(c *amqp.Conn) {
	b.opts.History.Add(effect(history.Connect))
	b.admitKey(c)
	a := b.opts.Faults.At(fault.Point{Op: history.Connect, Phase: fault.After})
	if isNone(a) || !b.endure(a) {
		return
	}
	switch a.Kind {
	case fault.None, fault.Silence:
		if a.Kind == fault.Silence {
			c.SetMute(amqp.MuteFrames)
		}
	case fault.Drop:
		c.Drop()
	case fault.Garble:
		c.SendRaw([]byte{0, 0, 0, 12, 2, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef})
	case fault.Lag:
		b.refuse("fault of kind Lag at a connection")
	default:
		c.Close(planned(a, amqp.ConnectionForced))
	}
}

// Attach implements [amqp.Handler].
func (b *Broker) Attach(l *amqp.Link) {
	a := l.Attach()
	address := ""
	switch {
	case a.Receiver && a.Source != nil:
		address = a.Source.Address
	case !a.Receiver && a.Target != nil:
		address = a.Target.Address
	}
	b.perform(step{
		point:  fault.Point{Op: history.Attach, Key: address, Entity: address},
		link:   l,
		do:     func() { b.attach(l, a, address) },
		answer: func() {},
		refuse: func(f fault.Action) {
			l.Refuse(planned(f, condServerBusy))
			l.Detach(planned(f, condServerBusy)) // after the effect it is attached already
		},
	})
}

// attach decides on a link.
func (b *Broker) attach(l *amqp.Link, a amqp.Attach, address string) {
	n, err := b.admit(l, a, address)
	ev := history.Event{Op: history.Attach, Entity: address, Effect: err == nil}
	if err != nil {
		ev.Error = err.Error()
		b.opts.History.Add(ev)
		l.Refuse(err)
		return
	}
	b.opts.History.Add(ev)
	l.Data = n
	p := peerOf(l)
	if !p.add(l, n) {
		return
	}
	if id, session := sessionWanted(a); session && n.kind == nodeEntity && l.PeerReceives() {
		n.store.acceptSession(newConsumer(l, a, n), id, sessionWait(a))
		return
	}
	terms := amqp.Terms{}
	switch {
	case !l.PeerReceives():
		terms.MaxMessageSize = uint64(b.maxMessage(n))
		if terms.Credit = uint32(b.opts.SenderCredit); b.opts.WithholdCredit && n.kind == nodeEntity {
			terms.Credit = 0
		}
	case n.kind == nodeEntity:
		b.consume(l, a, n)
	default:
		b.replyOver(l, a, n)
	}
	if !l.Accept(terms) {
		b.Detached(l)
		return
	}
	b.Credit(l)
}

// admit says what a link may be attached to, or why it may not.
func (b *Broker) admit(l *amqp.Link, a amqp.Attach, address string) (*node, *amqp.Error) {
	if a.Coordinator {
		b.refuse("transactions")
		return nil, amqp.Errorf(amqp.NotAllowed, "the embedded Service Bus does not implement transactions")
	}
	n, err, loud := b.resolve(address)
	if err != nil {
		if loud {
			b.refuse(err.Description)
		}
		return nil, err
	}
	if n.kind == nodeCBS {
		return n, b.admitCBS(l)
	}
	if n.kind == nodeEntity {
		if err := n.store.direction(l.PeerReceives()); err != nil {
			return nil, err
		}
		_, session := sessionWanted(a)
		if err := cmp.Or(n.store.fits(session), n.store.forwards()); l.PeerReceives() && err != nil {
			return nil, err
		}
	}
	need := Listen
	if n.kind == nodeManagement {
		need = 0 // each request is checked
	} else if !l.PeerReceives() {
		need = Send
	}
	if err := peerOf(l).authorize(n, need); err != nil {
		return nil, err
	}
	return n, n.store.entity.open(n.kind, l.PeerReceives())
}

// direction says why messages cannot go this way: nothing is received from a topic, and nothing is sent to a subscription or
// to dead letters.
func (s *store) direction(receives bool) *amqp.Error {
	switch {
	case receives && s.entity.kind == kindTopic:
		return amqp.Errorf(amqp.NotAllowed, "Nothing can be received from the topic %s; its subscriptions have the messages.", s.path)
	case receives:
		return nil
	case s.dead:
		return amqp.Errorf(amqp.NotAllowed, "Cannot send to the dead-letter queue %s; only the service puts messages there.", s.path)
	case s.entity.kind == kindSubscription:
		return amqp.Errorf(amqp.NotAllowed, "Cannot send to the subscription %s; messages are sent to its topic.", s.path)
	}
	return nil
}

// maxMessage bounds what a sender to a node may send, in bytes.
func (b *Broker) maxMessage(n *node) int {
	if n.store == nil {
		return b.opts.MaxMessageSize
	}
	n.store.entity.mu.Lock()
	defer n.store.entity.mu.Unlock()
	return n.store.entity.cfg.MaxMessageSize
}

// admitCBS refuses a second pair of links in the strict mode.
func (b *Broker) admitCBS(l *amqp.Link) *amqp.Error {
	if !b.opts.OneCBSLink {
		return nil
	}
	others := peerOf(l).links(func(o *amqp.Link, n *node) bool {
		return n.kind == nodeCBS && o.PeerReceives() == l.PeerReceives()
	})
	if len(others) > 0 {
		return amqp.Errorf(amqp.NotAllowed, "the $cbs node has already been opened on this connection")
	}
	return nil
}

// open says whether the queue's status lets a link be attached.
func (e *entity) open(kind nodeKind, receives bool) *amqp.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if kind == nodeEntity && (receives && !e.mayReceiveLocked() || !receives && !e.maySendLocked()) || e.status == Disabled {
		return e.disabledError()
	}
	e.accessed = time.Now()
	return nil
}

func (b *Broker) consume(l *amqp.Link, a amqp.Attach, n *node) {
	n.store.entity.mu.Lock()
	defer n.store.entity.mu.Unlock()
	n.store.addConsumerLocked(newConsumer(l, a, n))
}

func (b *Broker) replyOver(l *amqp.Link, a amqp.Attach, n *node) {
	r := &replyLink{link: l, node: n, settled: a.SenderSettleMode != nil && *a.SenderSettleMode == 1}
	if a.Target != nil {
		r.address = a.Target.Address
	}
	p := peerOf(l)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply[l] = r
}

// Credit implements [amqp.Handler].
func (b *Broker) Credit(l *amqp.Link) {
	n := nodeOf(l)
	if n == nil || !l.PeerReceives() {
		return
	}
	if n.kind != nodeEntity {
		p := peerOf(l)
		p.mu.Lock()
		r := p.reply[l]
		p.mu.Unlock()
		if r != nil {
			r.pump()
		}
		return
	}
	n.touch()
	n.store.dispatch()
}

// Detached implements [amqp.Handler].
func (b *Broker) Detached(l *amqp.Link) {
	p := peerOf(l)
	n := p.remove(l)
	if n == nil {
		return
	}
	if n.kind == nodeEntity {
		n.store.detached(l)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.reply, l)
}
