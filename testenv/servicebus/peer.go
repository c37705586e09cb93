package servicebus

import (
	"cmp"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// A peer is what the broker knows of one connection.
type peer struct {
	broker *Broker
	conn   *amqp.Conn

	mu     sync.Mutex
	grants map[string]*grant         // guarded by mu; by lower-case path
	nodes  map[*amqp.Link]*node      // guarded by mu; the links that are attached
	reply  map[*amqp.Link]*replyLink // guarded by mu
	closed bool                      // guarded by mu
}

func newPeer(b *Broker) *peer {
	return &peer{
		broker: b, grants: map[string]*grant{}, nodes: map[*amqp.Link]*node{}, reply: map[*amqp.Link]*replyLink{},
	}
}

func peerOf(l *amqp.Link) *peer { return l.Conn().Data.(*peer) }

// close stops the timers of a connection that has ended.
func (p *peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, g := range p.grants {
		g.timer.Stop()
	}
	for _, n := range p.nodes {
		n.stop()
	}
}

// nodeKind is what is at an address.
type nodeKind int

const (
	nodeEntity nodeKind = iota
	nodeManagement
	nodeCBS
)

// A node is what one link is attached to.
type node struct {
	kind  nodeKind
	path  string // lower case, without the management suffix
	store *store // nil for $cbs
	line  line
	used  atomic.Int64 // Unix nanoseconds
	idle  *time.Timer  // nil without an idle time-out; guarded by the peer's mutex
}

// touch tells that something has passed over the link.
func (n *node) touch() { n.used.Store(time.Now().UnixNano()) }

func (n *node) stop() {
	if n.idle != nil {
		n.idle.Stop()
	}
}

func nodeOf(l *amqp.Link) *node {
	n, _ := l.Data.(*node)
	return n
}

// add registers an attached link, and watches it for being idle. It reports false when the connection has ended.
func (p *peer) add(l *amqp.Link, n *node) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.nodes[l] = n
	n.touch()
	if limit := p.broker.opts.IdleLinkTimeout; limit > 0 && n.kind == nodeEntity {
		n.idle = time.AfterFunc(limit, func() { p.checkIdle(l, n, limit) })
	}
	return true
}

func (p *peer) remove(l *amqp.Link) *node {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[l]
	if n != nil {
		n.stop()
		delete(p.nodes, l)
	}
	return n
}

func (p *peer) checkIdle(l *amqp.Link, n *node, limit time.Duration) {
	idle := time.Duration(time.Now().UnixNano() - n.used.Load())
	if idle >= limit {
		l.Detach(amqp.Errorf(amqp.DetachForced, "The link '%s' is force detached by the broker because it was idle for %v.", l.Name(), limit))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.nodes[l] != nil {
		n.idle.Reset(limit - idle)
	}
}

// touchNamed tells that a management request was sent on behalf of a link.
func (p *peer) touchNamed(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l, n := range p.nodes {
		if l.Name() == name {
			n.touch()
		}
	}
}

// links returns the attached links that f selects.
func (p *peer) links(f func(*amqp.Link, *node) bool) []*amqp.Link {
	p.mu.Lock()
	nodes := maps.Clone(p.nodes)
	p.mu.Unlock()
	var ls []*amqp.Link
	for l, n := range nodes {
		if f(l, n) {
			ls = append(ls, l)
		}
	}
	return ls
}

// A replyLink sends replies, and keeps them until the client gives credit, which may come after the request.
type replyLink struct {
	link    *amqp.Link
	node    *node
	address string // of its target, which the client chooses freely
	settled bool
	mu      sync.Mutex
	waiting [][]byte // guarded by mu
	count   uint64   // guarded by mu
}

func (r *replyLink) send(payload []byte) {
	r.mu.Lock()
	r.waiting = append(r.waiting, payload)
	r.mu.Unlock()
	r.pump()
}

// pump sends what waits, as far as there is credit.
func (r *replyLink) pump() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) > 0 && r.link.Reserve() {
		r.count++
		tag := []byte{
			byte(r.count >> 56), byte(r.count >> 48), byte(r.count >> 40), byte(r.count >> 32),
			byte(r.count >> 24), byte(r.count >> 16), byte(r.count >> 8), byte(r.count),
		}
		r.link.Deliver(tag, r.settled, r.waiting[0])
		r.waiting[0] = nil
		r.waiting = r.waiting[1:]
	}
}

// replyLink returns the link over which a request is answered: the one of its session whose target address the request
// names. JavaScript gives its link at $cbs no target address and names the link itself, and Python names nothing: then it
// is the link of that name, or else the one from the node that was asked.
func (p *peer) replyLink(asked *amqp.Link, n *node, replyTo string) *replyLink {
	p.mu.Lock()
	defer p.mu.Unlock()
	var named, same *replyLink
	for _, r := range p.reply {
		switch {
		case r.link.Session() != asked.Session():
		case replyTo != "" && r.address == replyTo:
			return r
		case replyTo != "" && r.link.Name() == replyTo:
			named = r
		case r.node.kind == n.kind && r.node.path == n.path:
			same = r
		}
	}
	return cmp.Or(named, same)
}
