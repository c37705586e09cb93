package amqp

type linkState int

const (
	linkAttaching linkState = iota // the handler has not decided
	linkAttached
	linkGone
)

// Link is the server's end of one link. Its fields are guarded by the connection's mutex, but for Data and attach.
type Link struct {
	// Data belongs to the handler, which sets it before it accepts the link.
	Data any

	session       *Session
	attach        Attach
	state         linkState
	credit        uint32
	deliveryCount uint32
	drain         bool

	// What follows is for links on which the peer sends.
	grant      uint32 // the credit that is granted anew when half of it is used
	maxMessage uint64
	partial    Incoming // the message whose last frame has not arrived; only the reader touches it
	assembling bool
	oversized  bool // the partial message is above maxMessage, and its payload is dropped
}

// Incoming is a message that arrived on a link.
type Incoming struct {
	ID      uint32
	Tag     []byte
	Format  uint32
	Settled bool
	Payload []byte
}

func newLink(s *Session, a *Attach) *Link {
	l := &Link{session: s, attach: *a}
	if !a.Receiver && a.InitialDeliveryCount != nil {
		l.deliveryCount = *a.InitialDeliveryCount
	}
	return l
}

// Session returns the session of the link.
func (l *Link) Session() *Session { return l.session }

// Conn returns the connection of the link.
func (l *Link) Conn() *Conn { return l.session.conn }

// Attach returns what the peer asked for.
func (l *Link) Attach() Attach { return l.attach }

// Name returns the name of the link.
func (l *Link) Name() string { return l.attach.Name }

// PeerReceives reports whether the peer is the receiver of this link.
func (l *Link) PeerReceives() bool { return l.attach.Receiver }

// Attached reports whether the link is attached.
func (l *Link) Attached() bool {
	c := l.session.conn
	return c.stateOf(l) == linkAttached && !c.isEnded()
}

// Terms are what an accepted link gets.
type Terms struct {
	// Credit is granted to a peer that sends, and granted anew when half of it is used; 0 grants none.
	Credit uint32
	// MaxMessageSize bounds the messages of a peer that sends, in bytes.
	MaxMessageSize uint64
	Properties     Map
	// Filter replaces the filter of the source in the answer, when it is not nil.
	Filter Map
}

// Accept attaches the link. It reports false when the peer has gone meanwhile.
func (l *Link) Accept(t Terms) bool {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state != linkAttaching || c.closing || c.ended {
		return false
	}
	l.state = linkAttached
	l.attach.Properties = t.Properties
	if t.Filter != nil && l.attach.Source != nil {
		source := *l.attach.Source
		source.Filter = t.Filter
		l.attach.Source = &source
	}
	l.maxMessage = t.MaxMessageSize
	l.replyLocked(l.attach.Source, l.attach.Target, t.MaxMessageSize)
	if !l.attach.Receiver && t.Credit > 0 {
		l.grant, l.credit = t.Credit, t.Credit
		l.session.flowLocked(l)
	}
	return true
}

// replyLocked answers an attach. Without source and target it announces a refusal.
func (l *Link) replyLocked(src *Source, dst *Target, maxMessage uint64) {
	a := l.attach
	reply := &Attach{
		Name: a.Name, Handle: a.Handle, Receiver: !a.Receiver, SenderSettleMode: a.SenderSettleMode,
		ReceiverSettleMode: a.ReceiverSettleMode, Source: src, Target: dst,
	}
	if l.state == linkAttached {
		reply.Properties, reply.MaxMessageSize = a.Properties, maxMessage
	}
	if a.Receiver {
		zero := uint32(0)
		reply.InitialDeliveryCount = &zero
	}
	l.session.conn.sendLocked(l.session.channel, reply)
}

// Refuse refuses the link: it is attached without a terminus and detached with the error at once.
func (l *Link) Refuse(e *Error) {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state != linkAttaching {
		return
	}
	l.replyLocked(nil, nil, 0)
	l.detachLocked(e)
}

// Detach detaches the link with an error. The handler's Detached is called before it returns.
func (l *Link) Detach(e *Error) {
	c := l.session.conn
	c.mu.Lock()
	if l.state != linkAttached {
		c.mu.Unlock()
		return
	}
	l.detachLocked(e)
	c.mu.Unlock()
	c.cfg.Handler.Detached(l)
}

func (l *Link) detachLocked(e *Error) {
	s := l.session
	l.goneLocked()
	s.detachesDue[l.attach.Handle]++
	s.conn.sendLocked(s.channel, &Detach{Handle: l.attach.Handle, Closed: true, Error: e})
}

// goneLocked forgets the link and everything that belongs to it.
func (l *Link) goneLocked() {
	s := l.session
	l.state = linkGone
	delete(s.links, l.attach.Handle)
	delete(s.conn.starved, l)
	for id, u := range s.unsettled {
		if u.link == l {
			delete(s.unsettled, id)
		}
	}
	kept := s.waiting[:0]
	for _, w := range s.waiting {
		if w.link != l {
			kept = append(kept, w)
		}
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}

// Settle sends the final state of a delivery: of one that arrived, or as the answer to a decision of the peer. On a link
// that is gone it does nothing, because the peer has forgotten the delivery and would take the frame as a fault.
func (l *Link) Settle(id uint32, st State) {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state == linkAttached {
		c.sendLocked(l.session.channel, &Disposition{Receiver: !l.attach.Receiver, First: id, Settled: true, State: st})
	}
}

// Grant sets the credit of a peer that sends to n and tells it.
func (l *Link) Grant(n uint32) {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state == linkAttached && !l.attach.Receiver {
		l.grant, l.credit = n, n
		l.session.flowLocked(l)
	}
}

func (l *Link) onTransfer(t *Transfer) error {
	if l.attach.Receiver {
		l.session.End(Errorf(NotAllowed, "transfer on link %q, on which the peer receives", l.attach.Name))
		return nil
	}
	if l.Conn().stateOf(l) != linkAttached {
		return nil
	}
	if !l.assembling {
		if t.DeliveryID == nil {
			l.Detach(Errorf(InvalidField, "the first transfer of a message has no delivery-id"))
			return nil
		}
		l.partial = Incoming{ID: *t.DeliveryID, Tag: t.DeliveryTag}
		if t.MessageFormat != nil {
			l.partial.Format = *t.MessageFormat
		}
		l.assembling = true
	}
	if t.Aborted {
		l.assembling, l.oversized, l.partial = false, false, Incoming{}
		return nil
	}
	l.partial.Settled = l.partial.Settled || t.Settled
	l.oversized = l.oversized || l.maxMessage > 0 && uint64(len(l.partial.Payload)+len(t.Payload)) > l.maxMessage
	if !l.oversized {
		l.partial.Payload = append(l.partial.Payload, t.Payload...)
	}
	if t.More {
		return nil
	}
	m, oversized := l.partial, l.oversized
	l.assembling, l.oversized, l.partial = false, false, Incoming{}
	if !l.consume() {
		l.Detach(Errorf(TransferLimitExceeded, "a message arrived on link %q without credit", l.attach.Name))
		return nil
	}
	if oversized {
		l.rejectSize(m)
		return nil
	}
	l.Conn().cfg.Handler.Message(l, m)
	return nil
}

// rejectSize answers a message that is larger than the limit. Python and JavaScript programs were seen to get a rejected
// transfer from the service, older .NET programs a detached link: the evidence is mixed.
func (l *Link) rejectSize(m Incoming) {
	if !m.Settled {
		l.Settle(m.ID, &Rejected{Error: Errorf(MessageSizeExceeded, "The received message is larger than the limit of %d bytes on the link '%s'.", l.maxMessage, l.attach.Name)})
	}
}

func (c *Conn) stateOf(l *Link) linkState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.state
}

// consume takes one credit of a peer that sends, and renews it when half is used.
func (l *Link) consume() bool {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.credit == 0 {
		return false
	}
	l.credit--
	l.deliveryCount++
	if l.state == linkAttached && l.credit <= l.grant/2 {
		l.credit = l.grant
		l.session.flowLocked(l)
	}
	return true
}
