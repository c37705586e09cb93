package amqp

// transferOverhead is more than the header and the fields of a transfer frame ever take.
const transferOverhead = 128

// creditLocked takes over the credit that a receiving peer gives.
func (l *Link) creditLocked(f *Flow) {
	if !l.attach.Receiver || f.LinkCredit == nil {
		return
	}
	count := uint32(0)
	if f.DeliveryCount != nil {
		count = *f.DeliveryCount
	}
	// Counts are serial numbers, and credit may be anything up to the largest uint: what is under way is taken off it.
	underWay := l.deliveryCount - count
	l.credit = 0
	if int32(underWay) < 0 || *f.LinkCredit > underWay {
		l.credit = *f.LinkCredit - underWay
	}
	l.drain = f.Drain
}

// endDrain uses up the credit that a draining peer gave and that no message used.
func (l *Link) endDrain() {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !l.drain || l.state != linkAttached {
		return
	}
	l.deliveryCount += l.credit
	l.credit = 0
	l.session.flowLocked(l)
	l.drain = false
}

// Reserve takes one credit of a receiving peer, for one message that will follow. It reports false without credit, and
// while more is queued than the peer takes; then the handler's Credit is called again later.
func (l *Link) Reserve() bool {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state != linkAttached || l.credit == 0 || c.closing || c.ended {
		return false
	}
	if len(c.out) >= highWater || len(l.session.waiting) > 0 {
		c.starved[l] = struct{}{}
		return false
	}
	l.credit--
	l.deliveryCount++
	return true
}

// Unreserve returns a credit that no message used.
func (l *Link) Unreserve() {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	l.credit++
	l.deliveryCount--
}

// Deliver sends a message for which a credit was reserved. It reports false, and sends nothing, when the link is gone. The
// payload is copied.
func (l *Link) Deliver(tag []byte, settled bool, payload []byte) bool {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state != linkAttached || c.closing || c.ended {
		return false
	}
	s := l.session
	id, format := s.nextDelivery, uint32(0)
	s.nextDelivery++
	if !settled {
		s.unsettled[id] = delivery{link: l, tag: tag}
	}
	t := Transfer{Handle: l.attach.Handle, DeliveryID: &id, DeliveryTag: tag, MessageFormat: &format, Settled: settled}
	size := int(c.peerMaxFrame) - transferOverhead
	for {
		n := min(size, len(payload))
		t.Payload, t.More = payload[:n], n < len(payload)
		payload = payload[n:]
		s.transferLocked(l, t)
		if !t.More {
			return true
		}
		t.DeliveryID, t.DeliveryTag, t.MessageFormat = nil, nil, nil
	}
}

// transferLocked sends a frame when the peer's window is open, and keeps it otherwise.
func (s *Session) transferLocked(l *Link, t Transfer) {
	if len(s.waiting) > 0 || int32(s.peerWindow) <= 0 {
		t.Payload = append([]byte(nil), t.Payload...)
		s.waiting = append(s.waiting, waitingFrame{link: l, transfer: t})
		return
	}
	s.peerWindow--
	s.nextOutgoing++
	s.conn.sendLocked(s.channel, &t)
}

// pumpLocked sends waiting frames as far as the window allows.
func (s *Session) pumpLocked() {
	waiting := s.waiting
	s.waiting = nil
	for i, w := range waiting {
		if int32(s.peerWindow) <= 0 {
			s.waiting = waiting[i:]
			return
		}
		s.transferLocked(w.link, w.transfer)
	}
}
