package amqp

const (
	descSource      = 0x28
	descTarget      = 0x29
	descCoordinator = 0x30
)

// Source is the terminus from which messages of a link come.
type Source struct {
	Address      string
	Durable      uint32
	ExpiryPolicy Symbol
	Timeout      uint32 // seconds
	Dynamic      bool
	Distribution Symbol
	Filter       Map
	Outcomes     []Symbol
	Capabilities []Symbol
}

// Target is the terminus to which messages of a link go.
type Target struct {
	Address      string
	Durable      uint32
	ExpiryPolicy Symbol
	Timeout      uint32 // seconds
	Dynamic      bool
	Capabilities []Symbol
}

func (s *Source) append(dst []byte) []byte {
	w := compose(dst, descSource)
	w.text(s.Address)
	w.u32(s.Durable)
	w.policy(s.ExpiryPolicy)
	w.u32(s.Timeout)
	w.bool(s.Dynamic)
	w.null() // dynamic-node-properties
	w.policy(s.Distribution)
	w.fields(s.Filter)
	w.null() // default-outcome
	w.symbols(s.Outcomes)
	w.symbols(s.Capabilities)
	return w.done()
}

func (s *Source) decode(descriptor uint64, r *Reader) error {
	if descriptor != descSource {
		return malformed("described type %#x where a source should be", descriptor)
	}
	f := r.composite()
	f.address(&s.Address)
	f.u32(&s.Durable)
	read(&f, &s.ExpiryPolicy)
	f.u32(&s.Timeout)
	f.bool(&s.Dynamic)
	f.skip() // dynamic-node-properties
	read(&f, &s.Distribution)
	read(&f, &s.Filter)
	f.skip() // default-outcome
	f.symbols(&s.Outcomes)
	f.symbols(&s.Capabilities)
	return f.close()
}

func (t *Target) append(dst []byte) []byte {
	w := compose(dst, descTarget)
	w.text(t.Address)
	w.u32(t.Durable)
	w.policy(t.ExpiryPolicy)
	w.u32(t.Timeout)
	w.bool(t.Dynamic)
	w.null() // dynamic-node-properties
	w.symbols(t.Capabilities)
	return w.done()
}

func (t *Target) decode(descriptor uint64, r *Reader) error {
	if descriptor != descTarget {
		return malformed("described type %#x where a target should be", descriptor)
	}
	f := r.composite()
	f.address(&t.Address)
	f.u32(&t.Durable)
	read(&f, &t.ExpiryPolicy)
	f.u32(&t.Timeout)
	f.bool(&t.Dynamic)
	f.skip() // dynamic-node-properties
	f.symbols(&t.Capabilities)
	return f.close()
}

// address reads an address, which the standard leaves open and every client here sends as a string.
func (f *compositeReader) address(dst *string) { read(f, dst) }

func (w *compositeWriter) policy(p Symbol) {
	if p == "" {
		w.null()
		return
	}
	w.symbol(p)
}

func (w *compositeWriter) symbols(s []Symbol) {
	if len(s) == 0 {
		w.null()
		return
	}
	w.any(Symbols(s))
}
