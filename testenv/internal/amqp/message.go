package amqp

import "time"

// The descriptors of the sections of a message (amqp-core-messaging section 3.2).
const (
	descHeader                = 0x70
	descDeliveryAnnotations   = 0x71
	descMessageAnnotations    = 0x72
	descProperties            = 0x73
	descApplicationProperties = 0x74
	descData                  = 0x75
	descSequence              = 0x76
	descValue                 = 0x77
	descFooter                = 0x78
)

// Header is the header section.
type Header struct {
	Durable       bool
	Priority      *uint8
	TTL           *uint32 // milliseconds
	FirstAcquirer bool
	DeliveryCount uint32
}

// Properties is the properties section. Ids keep their AMQP type: string, uint64, [UUID] or []byte.
type Properties struct {
	MessageID          any
	UserID             []byte
	To                 any
	Subject            *string
	ReplyTo            any
	CorrelationID      any
	ContentType        *Symbol
	ContentEncoding    *Symbol
	AbsoluteExpiryTime *time.Time
	CreationTime       *time.Time
	GroupID            *string
	GroupSequence      *uint32
	ReplyToGroupID     *string
}

// Message is a decoded message, to build one or to look into one. A section that is nil is left out; the body is Data, or
// Sequence, or Value, whichever BodyKind tells.
type Message struct {
	Header                *Header
	DeliveryAnnotations   Map
	Annotations           Map
	Properties            *Properties
	ApplicationProperties Map
	BodyKind              BodyKind
	Data                  [][]byte
	Sequence              []List
	Value                 any
	Footer                Map
}

// BodyKind is the kind of body section that a message has.
type BodyKind int

// The kinds of bodies. The standard allows several sections of the kinds data and sequence.
const (
	BodyNone BodyKind = iota
	BodyData
	BodySequence
	BodyValue
)

// String returns the name of the kind.
func (k BodyKind) String() string {
	return [...]string{"none", "data", "amqp-sequence", "amqp-value"}[k]
}

// AppendHeader appends an encoded header section.
func AppendHeader(dst []byte, h Header) []byte {
	w := compose(dst, descHeader)
	w.bool(h.Durable)
	w.mode(h.Priority)
	w.u32p(h.TTL)
	w.bool(h.FirstAcquirer)
	w.u32(h.DeliveryCount) // zero too: Java reads the field without asking for it
	return w.done()
}

// AppendMessage appends the encoding of a message. It fails on values that are no AMQP values.
func AppendMessage(dst []byte, m Message) ([]byte, error) {
	if m.Header != nil {
		dst = AppendHeader(dst, *m.Header)
	}
	var err error
	section := func(present bool, descriptor uint64, v any) {
		if err == nil && present {
			dst, err = Append(dst, Described{Descriptor: descriptor, Value: v})
		}
	}
	section(m.DeliveryAnnotations != nil, descDeliveryAnnotations, m.DeliveryAnnotations)
	section(m.Annotations != nil, descMessageAnnotations, m.Annotations)
	section(m.Properties != nil, descProperties, m.Properties.list())
	section(m.ApplicationProperties != nil, descApplicationProperties, m.ApplicationProperties)
	for _, d := range m.Data {
		section(m.BodyKind == BodyData, descData, d)
	}
	for _, s := range m.Sequence {
		section(m.BodyKind == BodySequence, descSequence, s)
	}
	section(m.BodyKind == BodyValue, descValue, m.Value)
	section(m.Footer != nil, descFooter, m.Footer)
	return dst, err
}

// list returns the fields in order, without the null ones at the end.
func (p *Properties) list() List {
	if p == nil {
		return nil
	}
	var user any
	if p.UserID != nil {
		user = p.UserID
	}
	l := List{
		p.MessageID, user, p.To, deref(p.Subject), p.ReplyTo, p.CorrelationID, deref(p.ContentType), deref(p.ContentEncoding),
		deref(p.AbsoluteExpiryTime), deref(p.CreationTime), deref(p.GroupID), deref(p.GroupSequence), deref(p.ReplyToGroupID),
	}
	for len(l) > 0 && l[len(l)-1] == nil {
		l = l[:len(l)-1]
	}
	return l
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
