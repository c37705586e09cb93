package amqp

// Sections are the encoded sections of one message, each with its descriptor, as they were received. A section that the
// message does not have is nil. Body holds all body sections one after the other. The slices are parts of the input.
type Sections struct {
	Header                []byte
	DeliveryAnnotations   []byte
	Annotations           []byte
	Properties            []byte
	ApplicationProperties []byte
	Body                  []byte
	Kind                  BodyKind
	BodySections          int
	Footer                []byte
}

// Split splits an encoded message into its sections, and checks that each is well-formed, has the type that the standard
// gives it, and is there once, data and sequence sections excepted. Their order may be any: the service takes a footer
// before the body too, which qpid-proton and rhea can be made to send.
func Split(b []byte) (Sections, error) {
	var s Sections
	r := NewReader(b)
	bodyEnd := 0
	for r.Len() > 0 {
		start := len(b) - r.Len()
		d, err := r.descriptor()
		if err != nil {
			return Sections{}, err
		}
		if s.has(d) {
			return Sections{}, malformed("a second section %#x", d)
		}
		if err := checkSection(d, r); err != nil {
			return Sections{}, err
		}
		end := len(b) - r.Len()
		if err := s.set(d, b[start:end:end]); err != nil {
			return Sections{}, err
		}
		if descData <= d && d <= descValue {
			s.join(b, start, end, bodyEnd)
			bodyEnd = end
		}
	}
	return s, nil
}

// has reports whether there is a section already that can be there only once.
func (s *Sections) has(descriptor uint64) bool {
	switch descriptor {
	case descHeader:
		return s.Header != nil
	case descDeliveryAnnotations:
		return s.DeliveryAnnotations != nil
	case descMessageAnnotations:
		return s.Annotations != nil
	case descProperties:
		return s.Properties != nil
	case descApplicationProperties:
		return s.ApplicationProperties != nil
	case descValue:
		return s.Kind == BodyValue
	case descFooter:
		return s.Footer != nil
	}
	return false
}

// join adds a body section to the body, which is copied only when something else came between.
func (s *Sections) join(b []byte, start, end, bodyEnd int) {
	if len(s.Body) == 0 || bodyEnd == start {
		s.Body = b[start-len(s.Body) : end : end]
		return
	}
	s.Body = append(s.Body[:len(s.Body):len(s.Body)], b[start:end]...)
}

// checkSection reads the value of a section and checks its kind.
func checkSection(descriptor uint64, r *Reader) error {
	v, err := r.Skip()
	if err != nil {
		return err
	}
	ok := true
	switch descriptor {
	case descHeader, descProperties, descSequence:
		ok = v[0] == codeList0 || v[0] == codeList8 || v[0] == codeList32
	case descDeliveryAnnotations, descMessageAnnotations, descApplicationProperties, descFooter:
		ok = v[0] == codeMap8 || v[0] == codeMap32
	case descData:
		ok = v[0] == codeBin8 || v[0] == codeBin32
	}
	if !ok {
		return malformed("section %#x with the constructor %#02x", descriptor, v[0])
	}
	return nil
}

func (s *Sections) set(descriptor uint64, b []byte) error {
	switch descriptor {
	case descHeader:
		s.Header = b
	case descDeliveryAnnotations:
		s.DeliveryAnnotations = b
	case descMessageAnnotations:
		s.Annotations = b
	case descProperties:
		s.Properties = b
	case descApplicationProperties:
		s.ApplicationProperties = b
	case descData, descSequence, descValue:
		return s.body(BodyKind(descriptor-descData) + BodyData)
	case descFooter:
		s.Footer = b
	default:
		return malformed("unknown section %#x", descriptor)
	}
	return nil
}

func (s *Sections) body(kind BodyKind) error {
	if s.Kind != BodyNone && s.Kind != kind {
		return malformed("body of %v and %v sections", s.Kind, kind)
	}
	s.Kind = kind
	s.BodySections++
	return nil
}

// Size returns the number of bytes of all sections.
func (s *Sections) Size() int {
	return len(s.Header) + len(s.DeliveryAnnotations) + len(s.Annotations) + len(s.Properties) +
		len(s.ApplicationProperties) + len(s.Body) + len(s.Footer)
}

// DecodeHeader decodes a header section; nil gives the zero header.
func DecodeHeader(section []byte) (Header, error) {
	var h Header
	f, err := openSection(section)
	if f == nil || err != nil {
		return h, err
	}
	f.bool(&h.Durable)
	f.u8p(&h.Priority)
	f.u32p(&h.TTL)
	f.bool(&h.FirstAcquirer)
	f.u32(&h.DeliveryCount)
	return h, f.close()
}

// openSection opens the list of a section; it returns nil for a section that is not there.
func openSection(section []byte) (*compositeReader, error) {
	if section == nil {
		return nil, nil
	}
	r := NewReader(section)
	if _, err := r.descriptor(); err != nil {
		return nil, err
	}
	f := r.composite()
	return &f, f.err
}

// DecodeProperties decodes a properties section; nil gives the zero properties.
func DecodeProperties(section []byte) (Properties, error) {
	var p Properties
	f, err := openSection(section)
	if f == nil || err != nil {
		return p, err
	}
	read(f, &p.MessageID)
	read(f, &p.UserID)
	read(f, &p.To)
	readp(f, &p.Subject)
	read(f, &p.ReplyTo)
	read(f, &p.CorrelationID)
	readp(f, &p.ContentType)
	readp(f, &p.ContentEncoding)
	readp(f, &p.AbsoluteExpiryTime)
	readp(f, &p.CreationTime)
	readp(f, &p.GroupID)
	readp(f, &p.GroupSequence)
	readp(f, &p.ReplyToGroupID)
	if err := f.close(); err != nil {
		return p, err
	}
	return p, checkID(p.MessageID)
}

// DecodeMessageID decodes only the message id of a properties section, which is its first field.
func DecodeMessageID(section []byte) (any, error) {
	f, err := openSection(section)
	if f == nil || err != nil {
		return nil, err
	}
	var id any
	read(f, &id)
	if f.err != nil {
		return nil, f.err
	}
	return id, checkID(id)
}

func checkID(id any) error {
	switch id.(type) {
	case nil, string, uint64, UUID, []byte:
		return nil
	}
	return malformed("message-id is %T", id)
}

func readp[T any](f *compositeReader, dst **T) {
	if f.err != nil || f.count == 0 || len(f.r.b) > 0 && f.r.b[0] == codeNull {
		f.next()
		return
	}
	v := new(T)
	read(f, v)
	*dst = v
}

// DecodeMap decodes a section that holds a map; nil gives nil.
func DecodeMap(section []byte) (Map, error) {
	v, err := sectionValue(section)
	if v == nil || err != nil {
		return nil, err
	}
	m, ok := v.(Map)
	if !ok {
		return nil, malformed("section holds %T, not a map", v)
	}
	return m, nil
}

func sectionValue(section []byte) (any, error) {
	if section == nil {
		return nil, nil
	}
	r := NewReader(section)
	if _, err := r.descriptor(); err != nil {
		return nil, err
	}
	return r.Value()
}

// DecodeMessage decodes a whole message.
func DecodeMessage(b []byte) (Message, error) {
	s, err := Split(b)
	if err != nil {
		return Message{}, err
	}
	return s.Decode()
}

// Decode decodes all sections.
func (s *Sections) Decode() (Message, error) {
	m := Message{BodyKind: s.Kind}
	if s.Header != nil {
		h, err := DecodeHeader(s.Header)
		if err != nil {
			return m, err
		}
		m.Header = &h
	}
	if s.Properties != nil {
		p, err := DecodeProperties(s.Properties)
		if err != nil {
			return m, err
		}
		m.Properties = &p
	}
	for _, part := range []struct {
		dst *Map
		src []byte
	}{
		{&m.DeliveryAnnotations, s.DeliveryAnnotations},
		{&m.Annotations, s.Annotations},
		{&m.ApplicationProperties, s.ApplicationProperties},
		{&m.Footer, s.Footer},
	} {
		v, err := DecodeMap(part.src)
		if err != nil {
			return m, err
		}
		*part.dst = v
	}
	return m, s.decodeBody(&m)
}

func (s *Sections) decodeBody(m *Message) error {
	r := NewReader(s.Body)
	for r.Len() > 0 {
		if _, err := r.descriptor(); err != nil {
			return err
		}
		v, err := r.Value()
		if err != nil {
			return err
		}
		switch v := v.(type) {
		case []byte:
			if s.Kind == BodyData {
				m.Data = append(m.Data, v)
			}
		case List:
			if s.Kind == BodySequence {
				m.Sequence = append(m.Sequence, v)
			}
		}
		if s.Kind == BodyValue {
			m.Value = v
		}
	}
	return nil
}
