package amqp

const (
	descReceived             = 0x23
	descAccepted             = 0x24
	descRejected             = 0x25
	descReleased             = 0x26
	descModified             = 0x27
	descDeclared             = 0x33
	descTransactional uint64 = 0x34
)

// A State is the state of a delivery: [Received], [Accepted], [Rejected], [Released], [Modified] or [Transactional].
type State interface {
	append(dst []byte) []byte
}

// Received tells how much of a message has arrived; it is no outcome.
type Received struct {
	SectionNumber uint32
	SectionOffset uint64
}

// Accepted is the outcome of a message that was taken.
type Accepted struct{}

// Rejected is the outcome of a message that is invalid, or of an operation that failed.
type Rejected struct{ Error *Error }

// Released is the outcome of a message that was not looked at.
type Released struct{}

// Modified is the outcome of a message that is abandoned or deferred, perhaps changed.
type Modified struct {
	DeliveryFailed    bool
	UndeliverableHere bool
	Annotations       Map
}

// Transactional is a state within a transaction, which this package does not implement.
type Transactional struct{}

func (s *Received) append(dst []byte) []byte {
	w := compose(dst, descReceived)
	w.u32(s.SectionNumber)
	w.u64(s.SectionOffset)
	return w.done()
}

func (*Accepted) append(dst []byte) []byte {
	w := compose(dst, descAccepted)
	return w.done()
}

func (s *Rejected) append(dst []byte) []byte {
	w := compose(dst, descRejected)
	w.error(s.Error)
	return w.done()
}

func (*Released) append(dst []byte) []byte {
	w := compose(dst, descReleased)
	return w.done()
}

func (s *Modified) append(dst []byte) []byte {
	w := compose(dst, descModified)
	w.bool(s.DeliveryFailed)
	w.bool(s.UndeliverableHere)
	w.fields(s.Annotations)
	return w.done()
}

func (*Transactional) append(dst []byte) []byte {
	w := compose(dst, descTransactional)
	return w.done()
}

func decodeState(descriptor uint64, r *Reader) (State, error) {
	f := r.composite()
	switch descriptor {
	case descReceived:
		s := &Received{}
		f.u32(&s.SectionNumber)
		read(&f, &s.SectionOffset)
		return s, f.close()
	case descAccepted:
		return &Accepted{}, f.close()
	case descRejected:
		s := &Rejected{}
		f.error(&s.Error)
		return s, f.close()
	case descReleased:
		return &Released{}, f.close()
	case descModified:
		s := &Modified{}
		f.bool(&s.DeliveryFailed)
		f.bool(&s.UndeliverableHere)
		read(&f, &s.Annotations)
		return s, f.close()
	case descTransactional, descDeclared:
		return &Transactional{}, f.close()
	}
	return nil, malformed("unknown delivery state %#x", descriptor)
}
