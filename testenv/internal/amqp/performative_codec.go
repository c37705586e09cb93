package amqp

// The field tables of the frame bodies, in the order of amqp-core-transport section 2.7 and amqp-core-security 5.3.

func (o *Open) append(dst []byte) []byte {
	w := compose(dst, descOpen)
	w.dst, _ = Append(w.dst, o.ContainerID)
	w.set()
	w.text(o.Hostname)
	w.part(o.MaxFrameSize != 0, func(b []byte) []byte { return appendU32(b, o.MaxFrameSize) })
	w.u16(o.ChannelMax)
	w.ms(o.IdleTimeout)
	w.null() // outgoing-locales
	w.null() // incoming-locales
	w.null() // offered-capabilities
	w.null() // desired-capabilities
	w.fields(o.Properties)
	return w.done()
}

func (o *Open) decode(f *compositeReader) {
	o.ChannelMax = 65535
	read(f, &o.ContainerID)
	read(f, &o.Hostname)
	f.u32(&o.MaxFrameSize)
	read(f, &o.ChannelMax)
	f.ms(&o.IdleTimeout)
	for range 4 {
		f.skip()
	}
	read(f, &o.Properties)
}

func (b *Begin) append(dst []byte) []byte {
	w := compose(dst, descBegin)
	if b.RemoteChannel != nil {
		w.u16(*b.RemoteChannel)
	} else {
		w.null()
	}
	w.u32(b.NextOutgoingID)
	w.u32(b.IncomingWindow)
	w.u32(b.OutgoingWindow)
	w.u32(b.HandleMax)
	w.null() // offered-capabilities
	w.null() // desired-capabilities
	w.fields(b.Properties)
	return w.done()
}

func (b *Begin) decode(f *compositeReader) {
	b.HandleMax = 4294967295
	f.u16p(&b.RemoteChannel)
	f.u32(&b.NextOutgoingID)
	f.u32(&b.IncomingWindow)
	f.u32(&b.OutgoingWindow)
	f.u32(&b.HandleMax)
	f.skip()
	f.skip()
	read(f, &b.Properties)
}

func (f *compositeReader) u16p(dst **uint16) {
	if f.err != nil || f.count == 0 || len(f.r.b) > 0 && f.r.b[0] == codeNull {
		f.next()
		return
	}
	v := new(uint16)
	read(f, v)
	*dst = v
}

func (f *compositeReader) u8p(dst **uint8) {
	if f.err != nil || f.count == 0 || len(f.r.b) > 0 && f.r.b[0] == codeNull {
		f.next()
		return
	}
	v := new(uint8)
	read(f, v)
	*dst = v
}

func (a *Attach) append(dst []byte) []byte {
	w := compose(dst, descAttach)
	w.dst, _ = Append(w.dst, a.Name)
	w.set()
	w.u32(a.Handle)
	w.role(a.Receiver)
	w.mode(a.SenderSettleMode)
	w.mode(a.ReceiverSettleMode)
	w.part(a.Source != nil, func(b []byte) []byte { return a.Source.append(b) })
	w.part(a.Target != nil, func(b []byte) []byte { return a.Target.append(b) })
	w.null() // unsettled
	w.null() // incomplete-unsettled
	w.u32p(a.InitialDeliveryCount)
	w.part(a.MaxMessageSize != 0, func(b []byte) []byte { b, _ = Append(b, a.MaxMessageSize); return b })
	w.null() // offered-capabilities
	w.null() // desired-capabilities
	w.fields(a.Properties)
	return w.done()
}

// role writes a mandatory boolean: true is the receiver.
func (w *compositeWriter) role(receiver bool) {
	if receiver {
		w.dst = append(w.dst, codeTrue)
	} else {
		w.dst = append(w.dst, codeFalse)
	}
	w.set()
}

func (w *compositeWriter) mode(m *uint8) {
	if m == nil {
		w.null()
		return
	}
	w.u8(*m)
}

func (a *Attach) decode(f *compositeReader) {
	read(f, &a.Name)
	f.u32(&a.Handle)
	f.bool(&a.Receiver)
	f.u8p(&a.SenderSettleMode)
	f.u8p(&a.ReceiverSettleMode)
	f.described(func(d uint64, r *Reader) error {
		a.Source = &Source{}
		return a.Source.decode(d, r)
	})
	f.described(func(d uint64, r *Reader) error {
		if d == descCoordinator {
			a.Coordinator = true
			c := r.composite()
			return c.close()
		}
		a.Target = &Target{}
		return a.Target.decode(d, r)
	})
	f.skip() // unsettled
	f.skip() // incomplete-unsettled
	f.u32p(&a.InitialDeliveryCount)
	read(f, &a.MaxMessageSize)
	f.skip() // offered-capabilities
	f.skip() // desired-capabilities
	read(f, &a.Properties)
}

func (b *Flow) append(dst []byte) []byte {
	w := compose(dst, descFlow)
	w.u32p(b.NextIncomingID)
	w.u32(b.IncomingWindow)
	w.u32(b.NextOutgoingID)
	w.u32(b.OutgoingWindow)
	w.u32p(b.Handle)
	w.u32p(b.DeliveryCount)
	w.u32p(b.LinkCredit)
	w.u32p(b.Available)
	w.bool(b.Drain)
	w.bool(b.Echo)
	return w.done()
}

func (b *Flow) decode(f *compositeReader) {
	f.u32p(&b.NextIncomingID)
	f.u32(&b.IncomingWindow)
	f.u32(&b.NextOutgoingID)
	f.u32(&b.OutgoingWindow)
	f.u32p(&b.Handle)
	f.u32p(&b.DeliveryCount)
	f.u32p(&b.LinkCredit)
	f.u32p(&b.Available)
	f.bool(&b.Drain)
	f.bool(&b.Echo)
	f.skip() // properties
}

func (t *Transfer) append(dst []byte) []byte {
	w := compose(dst, descTransfer)
	w.u32(t.Handle)
	w.u32p(t.DeliveryID)
	w.bytes(t.DeliveryTag)
	w.u32p(t.MessageFormat)
	w.bool(t.Settled)
	w.bool(t.More)
	w.null() // rcv-settle-mode
	w.null() // state
	w.null() // resume
	w.bool(t.Aborted)
	return w.done()
}

func (t *Transfer) decode(f *compositeReader) {
	f.u32(&t.Handle)
	f.u32p(&t.DeliveryID)
	read(f, &t.DeliveryTag)
	f.u32p(&t.MessageFormat)
	f.bool(&t.Settled)
	f.bool(&t.More)
	f.skip() // rcv-settle-mode
	f.skip() // state
	f.skip() // resume
	f.bool(&t.Aborted)
	f.skip() // batchable
}

func (d *Disposition) append(dst []byte) []byte {
	w := compose(dst, descDisposition)
	w.role(d.Receiver)
	w.u32(d.First)
	w.u32p(d.Last)
	w.bool(d.Settled)
	w.part(d.State != nil, func(b []byte) []byte { return d.State.append(b) })
	return w.done()
}

func (d *Disposition) decode(f *compositeReader) {
	f.bool(&d.Receiver)
	f.u32(&d.First)
	f.u32p(&d.Last)
	f.bool(&d.Settled)
	f.described(func(desc uint64, r *Reader) error {
		var err error
		d.State, err = decodeState(desc, r)
		return err
	})
	f.skip() // batchable
}

func (d *Detach) append(dst []byte) []byte {
	w := compose(dst, descDetach)
	w.u32(d.Handle)
	w.bool(d.Closed)
	w.error(d.Error)
	return w.done()
}

func (d *Detach) decode(f *compositeReader) {
	f.u32(&d.Handle)
	f.bool(&d.Closed)
	f.error(&d.Error)
}

func (e *End) append(dst []byte) []byte {
	w := compose(dst, descEnd)
	w.error(e.Error)
	return w.done()
}

func (e *End) decode(f *compositeReader) { f.error(&e.Error) }

func (c *Close) append(dst []byte) []byte {
	w := compose(dst, descClose)
	w.error(c.Error)
	return w.done()
}

func (c *Close) decode(f *compositeReader) { f.error(&c.Error) }

func (w *compositeWriter) error(e *Error) {
	w.part(e != nil, func(b []byte) []byte {
		v := compose(b, descError)
		v.symbol(Symbol(e.Condition))
		v.text(e.Description)
		v.fields(e.Info)
		// The service writes all three fields. The Python client waits for ever after an error with fewer.
		v.set0()
		return v.done()
	})
}

func (f *compositeReader) error(dst **Error) {
	f.described(func(d uint64, r *Reader) error {
		if d != descError {
			return malformed("described type %#x where an error should be", d)
		}
		c := r.composite()
		e := &Error{}
		var condition Symbol
		read(&c, &condition)
		read(&c, &e.Description)
		read(&c, &e.Info)
		e.Condition = string(condition)
		*dst = e
		return c.close()
	})
}

func (m *SASLMechanisms) append(dst []byte) []byte {
	w := compose(dst, descSASLMechanisms)
	w.any(Symbols(m.Mechanisms))
	return w.done()
}

func (m *SASLMechanisms) decode(f *compositeReader) { f.symbols(&m.Mechanisms) }

func (i *SASLInit) append(dst []byte) []byte {
	w := compose(dst, descSASLInit)
	w.symbol(i.Mechanism)
	w.bytes(i.InitialResponse)
	w.text(i.Hostname)
	return w.done()
}

func (i *SASLInit) decode(f *compositeReader) {
	read(f, &i.Mechanism)
	read(f, &i.InitialResponse)
	read(f, &i.Hostname)
}

func (o *SASLOutcome) append(dst []byte) []byte {
	w := compose(dst, descSASLOutcome)
	w.u8(o.Code)
	return w.done()
}

func (o *SASLOutcome) decode(f *compositeReader) {
	read(f, &o.Code)
	f.skip() // additional-data
}
