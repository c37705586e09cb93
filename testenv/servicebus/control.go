package servicebus

import (
	"fmt"
	"time"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// SetStatus lets a queue be used, or not. Links that it no longer allows are detached with
// com.microsoft:entity-disabled.
func (b *Broker) SetStatus(queue string, st Status) error {
	s, err := b.find(queue)
	if err != nil {
		return err
	}
	e := s.entity
	e.mu.Lock()
	e.status = st
	e.mu.Unlock()
	for _, l := range b.linksOf(e, func(l *amqp.Link, n *node) bool { return e.open(n.kind, l.PeerReceives()) != nil }) {
		l.Detach(e.disabledError())
	}
	e.main.dispatch()
	e.dead.dispatch()
	return nil
}

// SetRights limits what tokens allow on a queue. Links that it no longer allows are detached with
// amqp:unauthorized-access.
func (b *Broker) SetRights(queue string, r Rights) error {
	s, err := b.find(queue)
	if err != nil {
		return err
	}
	e := s.entity
	e.mu.Lock()
	e.rights = r
	e.mu.Unlock()
	for _, l := range b.linksOf(e, func(_ *amqp.Link, n *node) bool { return n.kind == nodeEntity }) {
		need := Send
		if l.PeerReceives() {
			need = Listen
		}
		if err := peerOf(l).authorize(nodeOf(l), need); err != nil {
			l.Detach(err)
		}
	}
	return nil
}

// linksOf returns the attached links of a queue and its dead-letter queue that f selects.
func (b *Broker) linksOf(e *entity, f func(*amqp.Link, *node) bool) []*amqp.Link {
	var ls []*amqp.Link
	for _, p := range b.connections() {
		ls = append(ls, p.links(func(l *amqp.Link, n *node) bool { return n.store != nil && n.store.entity == e && f(l, n) })...)
	}
	return ls
}

// EndSessionLock lets the lock of a session end now, as if it had not been renewed in time: its holder is detached with
// com.microsoft:session-lock-lost. It fails when nobody has locked the session.
func (b *Broker) EndSessionLock(path, session string) error {
	s, err := b.find(path)
	if err != nil {
		return err
	}
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	now := time.Now()
	s.entity.advanceLocked(now)
	if s.sessions == nil || s.sessions.byID[session] == nil || s.sessions.byID[session].holder == nil {
		return fmt.Errorf("servicebus: session %q of %s is not locked", session, s.path)
	}
	s.sessions.byID[session].fallDueLocked(now)
	return nil
}

// LinkKind selects links by what a client uses them for.
type LinkKind int

// The kinds of links.
const (
	Receivers LinkKind = iota
	Senders
	ManagementLinks
)

// Detach detaches the links of a kind at a path, with an error condition such as "amqp:link:detach-forced", and returns
// how many they were.
func (b *Broker) Detach(path string, kind LinkKind, condition string) (int, error) {
	s, err := b.find(path)
	if err != nil {
		return 0, err
	}
	ls := b.linksOf(s.entity, func(l *amqp.Link, n *node) bool {
		switch {
		case n.store != s:
			return false
		case kind == ManagementLinks:
			return n.kind == nodeManagement
		}
		return n.kind == nodeEntity && l.PeerReceives() == (kind == Receivers)
	})
	for _, l := range ls {
		l.Detach(amqp.Errorf(condition, "The link '%s' is detached by the test.", l.Name()))
	}
	return len(ls), nil
}

// Links returns how many links of a kind are attached at a path.
func (b *Broker) Links(path string, kind LinkKind) (int, error) {
	s, err := b.find(path)
	if err != nil {
		return 0, err
	}
	return len(b.linksOf(s.entity, func(l *amqp.Link, n *node) bool {
		if kind == ManagementLinks {
			return n.store == s && n.kind == nodeManagement
		}
		return n.store == s && n.kind == nodeEntity && l.PeerReceives() == (kind == Receivers)
	})), nil
}

// Connections returns how many connections are open.
func (b *Broker) Connections() int { return len(b.connections()) }

// CloseConnections closes every connection with an error condition such as "amqp:connection:forced".
func (b *Broker) CloseConnections(condition string) {
	for _, p := range b.connections() {
		p.conn.Close(amqp.Errorf(condition, "The connection is closed by the test."))
	}
}

// DropConnections cuts every connection without a word.
func (b *Broker) DropConnections() {
	for _, p := range b.connections() {
		p.conn.Drop()
	}
}

// EndSessions ends every session that has a link at a path, with an error condition.
func (b *Broker) EndSessions(path, condition string) error {
	s, err := b.find(path)
	if err != nil {
		return err
	}
	for _, l := range b.linksOf(s.entity, func(_ *amqp.Link, n *node) bool { return n.store == s }) {
		l.Session().End(amqp.Errorf(condition, "The session is ended by the test."))
	}
	return nil
}

// SetMute makes every connection, the ones to come included, keep back what it would send. What was kept back is sent when
// they speak again.
func (b *Broker) SetMute(m amqp.Mute) {
	b.mu.Lock()
	b.mute = m
	b.mu.Unlock()
	for _, p := range b.connections() {
		p.conn.SetMute(m)
	}
}

// GrantCredit gives every sender of a queue so much credit, for brokers that withhold it.
func (b *Broker) GrantCredit(queue string, n int) error {
	s, err := b.find(queue)
	if err != nil {
		return err
	}
	for _, l := range b.linksOf(s.entity, func(l *amqp.Link, n *node) bool { return n.kind == nodeEntity && !l.PeerReceives() }) {
		l.Grant(uint32(max(0, n)))
	}
	return nil
}
