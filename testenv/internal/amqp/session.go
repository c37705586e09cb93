package amqp

// handleMax is the highest link handle that is accepted in a session.
const handleMax = 4095

// Session is the server's end of one session. Its fields are guarded by the connection's mutex.
type Session struct {
	conn    *Conn
	channel uint16
	closed  bool
	links   map[uint32]*Link
	// detachesDue counts the Detach frames that the peer still owes for links that we detached, by handle.
	detachesDue map[uint32]int

	// The windows of amqp-core-transport section 2.5.6.
	nextIncoming uint32
	sinceFlow    uint32 // transfers received since the last flow
	nextOutgoing uint32
	peerWindow   uint32
	nextDelivery uint32

	unsettled map[uint32]delivery // by delivery id: what the peer has not decided on
	waiting   []waitingFrame      // frames that wait for the peer's window
}

type delivery struct {
	link *Link
	tag  []byte
}

type waitingFrame struct {
	link     *Link
	transfer Transfer
}

func newSession(c *Conn, channel uint16, b *Begin) *Session {
	return &Session{
		conn: c, channel: channel, links: map[uint32]*Link{}, detachesDue: map[uint32]int{},
		nextIncoming: b.NextOutgoingID, peerWindow: b.IncomingWindow, unsettled: map[uint32]delivery{},
	}
}

// End ends the session with an error.
func (s *Session) End(e *Error) {
	c := s.conn
	c.mu.Lock()
	if s.closed || c.closing || c.ended {
		c.mu.Unlock()
		return
	}
	links := s.closeLocked()
	delete(c.sessions, s.channel)
	c.endsDue[s.channel]++
	c.sendLocked(s.channel, &End{Error: e})
	c.mu.Unlock()
	for _, l := range links {
		c.cfg.Handler.Detached(l)
	}
}

// Settle answers the peer's decision on a delivery whose link is unknown. A delivery of a known link is answered by
// [Link.Settle].
func (s *Session) Settle(id uint32, st State) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if !s.closed {
		s.conn.sendLocked(s.channel, &Disposition{First: id, Settled: true, State: st})
	}
}

// closeLocked marks the session and its links as gone, and returns the links that had been accepted.
func (s *Session) closeLocked() []*Link {
	s.closed = true
	var accepted []*Link
	for _, l := range s.links {
		if l.state == linkAttached {
			accepted = append(accepted, l)
		}
		l.state = linkGone
		delete(s.conn.starved, l)
	}
	s.links, s.unsettled, s.waiting = nil, nil, nil
	return accepted
}

func (s *Session) handle(b Body) error {
	switch b := b.(type) {
	case *Attach:
		return s.onAttach(b)
	case *Flow:
		return s.onFlow(b)
	case *Transfer:
		return s.onTransfer(b)
	case *Disposition:
		return s.onDisposition(b)
	case *Detach:
		return s.onDetach(b)
	}
	return Errorf(NotImplemented, "frame %T", b)
}

func (s *Session) onAttach(a *Attach) error {
	c := s.conn
	c.mu.Lock()
	if a.Handle > handleMax || s.links[a.Handle] != nil {
		c.mu.Unlock()
		s.End(Errorf(HandleInUse, "handle %d of link %q is in use, or above the maximum %d", a.Handle, a.Name, handleMax))
		return nil
	}
	l := newLink(s, a)
	s.links[a.Handle] = l
	c.mu.Unlock()
	c.cfg.Handler.Attach(l)
	return nil
}

func (s *Session) onFlow(f *Flow) error {
	c := s.conn
	c.mu.Lock()
	if s.closed {
		c.mu.Unlock()
		return nil
	}
	next := uint32(0)
	if f.NextIncomingID != nil {
		next = *f.NextIncomingID
	}
	s.peerWindow = next + f.IncomingWindow - s.nextOutgoing
	s.pumpLocked()
	var l *Link
	if f.Handle != nil {
		if l = s.links[*f.Handle]; l == nil {
			due := s.detachesDue[*f.Handle] > 0
			c.mu.Unlock()
			if !due {
				s.End(Errorf(UnattachedHandle, "flow for handle %d, which is not attached", *f.Handle))
			}
			return nil
		}
		l.creditLocked(f)
	}
	if f.Echo && (l == nil || l.state == linkAttached) {
		s.flowLocked(l)
	}
	ready := l != nil && l.attach.Receiver && l.state == linkAttached
	c.mu.Unlock()
	if ready {
		c.cfg.Handler.Credit(l)
		l.endDrain()
	}
	c.feed()
	return nil
}

// flowLocked sends the windows of the session, and the credit of a link.
func (s *Session) flowLocked(l *Link) {
	next := s.nextIncoming
	f := &Flow{
		NextIncomingID: &next, IncomingWindow: s.conn.cfg.Window, NextOutgoingID: s.nextOutgoing, OutgoingWindow: s.conn.cfg.Window,
	}
	if l != nil {
		handle, count, credit := l.attach.Handle, l.deliveryCount, l.credit
		f.Handle, f.DeliveryCount, f.LinkCredit, f.Drain = &handle, &count, &credit, l.drain
	}
	s.sinceFlow = 0
	s.conn.sendLocked(s.channel, f)
}

func (s *Session) onTransfer(t *Transfer) error {
	c := s.conn
	c.mu.Lock()
	if s.closed {
		c.mu.Unlock()
		return nil
	}
	s.nextIncoming++
	if s.sinceFlow++; s.sinceFlow >= c.cfg.Window/2 {
		s.flowLocked(nil)
	}
	l := s.links[t.Handle]
	due := s.detachesDue[t.Handle] > 0
	c.mu.Unlock()
	switch {
	case l != nil:
		return l.onTransfer(t)
	case !due:
		s.End(Errorf(UnattachedHandle, "transfer for handle %d, which is not attached", t.Handle))
	}
	return nil
}

// A Decision is what the peer decided about a delivery.
type Decision struct {
	// Link is the link of the delivery, or nil when no such delivery is known.
	Link *Link
	ID   uint32
	Tag  []byte
	// State is nil when the peer settled without an outcome.
	State State
	// Settled tells that the peer wants no answer; otherwise one [Link.Settle] must follow.
	Settled bool
}

func (s *Session) onDisposition(d *Disposition) error {
	if !d.Receiver {
		return nil // we settle what we receive at once, so that the sender has nothing to add
	}
	if _, ok := d.State.(*Received); ok {
		return nil // no outcome
	}
	last := d.First
	if d.Last != nil {
		last = *d.Last
	}
	for _, dec := range s.decisions(d.First, last) {
		dec.State, dec.Settled = d.State, d.Settled
		s.conn.cfg.Handler.Decided(s, dec)
	}
	return nil
}

// decisions takes the deliveries first to last out of the unsettled ones. Ids are serial numbers and may wrap. An unknown
// single id is returned without a link; in a range unknown ids are passed over, because the range may be huge.
func (s *Session) decisions(first, last uint32) []Decision {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	var ds []Decision
	take := func(id uint32) bool {
		u, ok := s.unsettled[id]
		if ok {
			delete(s.unsettled, id)
			ds = append(ds, Decision{Link: u.link, ID: id, Tag: u.tag})
		}
		return ok
	}
	if last-first <= uint32(len(s.unsettled))+1 {
		for id := first; ; id++ {
			if !take(id) && first == last {
				ds = append(ds, Decision{ID: id})
			}
			if id == last {
				return ds
			}
		}
	}
	for id := range s.unsettled {
		if id-first <= last-first {
			take(id)
		}
	}
	return ds
}

func (s *Session) onDetach(d *Detach) error {
	c := s.conn
	c.mu.Lock()
	if s.detachesDue[d.Handle] > 0 {
		if s.detachesDue[d.Handle]--; s.detachesDue[d.Handle] == 0 {
			delete(s.detachesDue, d.Handle)
		}
		c.mu.Unlock()
		return nil
	}
	l := s.links[d.Handle]
	if l == nil {
		c.mu.Unlock()
		s.End(Errorf(UnattachedHandle, "detach of handle %d, which is not attached", d.Handle))
		return nil
	}
	accepted := l.state == linkAttached
	if !accepted { // the peer gave up before our decision: it still waits for an attach
		l.replyLocked(nil, nil, 0)
	}
	l.goneLocked()
	c.sendLocked(s.channel, &Detach{Handle: d.Handle, Closed: true})
	c.mu.Unlock()
	if accepted {
		c.cfg.Handler.Detached(l)
	}
	return nil
}
