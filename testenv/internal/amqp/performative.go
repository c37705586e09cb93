package amqp

import "time"

// The descriptors of the frame bodies.
const (
	descOpen           = 0x10
	descBegin          = 0x11
	descAttach         = 0x12
	descFlow           = 0x13
	descTransfer       = 0x14
	descDisposition    = 0x15
	descDetach         = 0x16
	descEnd            = 0x17
	descClose          = 0x18
	descError          = 0x1d
	descSASLMechanisms = 0x40
	descSASLInit       = 0x41
	descSASLOutcome    = 0x44
)

// A Body is the body of a frame: one of the performatives, or of the SASL frames.
type Body interface {
	// append appends the encoding of the body, without a transfer's payload.
	append(dst []byte) []byte
	decode(f *compositeReader)
}

// Open begins a connection.
type Open struct {
	ContainerID  string
	Hostname     string
	MaxFrameSize uint32 // 0 means the default, which has no bound
	ChannelMax   uint16
	IdleTimeout  time.Duration
	Properties   Map
}

// Begin begins a session.
type Begin struct {
	RemoteChannel  *uint16
	NextOutgoingID uint32
	IncomingWindow uint32
	OutgoingWindow uint32
	HandleMax      uint32
	Properties     Map
}

// Attach attaches a link. Receiver tells that the sender of the frame is the receiver of messages.
type Attach struct {
	Name                 string
	Handle               uint32
	Receiver             bool
	SenderSettleMode     *uint8 // 0 unsettled, 1 settled, 2 mixed
	ReceiverSettleMode   *uint8 // 0 first, 1 second
	Source               *Source
	Target               *Target
	Coordinator          bool // the target is a transaction coordinator
	InitialDeliveryCount *uint32
	MaxMessageSize       uint64
	Properties           Map
}

// Flow updates the windows of a session, and of a link when Handle is set.
type Flow struct {
	NextIncomingID *uint32
	IncomingWindow uint32
	NextOutgoingID uint32
	OutgoingWindow uint32
	Handle         *uint32
	DeliveryCount  *uint32
	LinkCredit     *uint32
	Available      *uint32
	Drain          bool
	Echo           bool
}

// Transfer carries a message, or a part of one.
type Transfer struct {
	Handle        uint32
	DeliveryID    *uint32
	DeliveryTag   []byte
	MessageFormat *uint32
	Settled       bool
	More          bool
	Aborted       bool
	Payload       []byte
}

// Disposition tells the state of deliveries First to Last.
type Disposition struct {
	Receiver bool
	First    uint32
	Last     *uint32
	Settled  bool
	State    State
}

// Detach detaches a link.
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

// End ends a session.
type End struct{ Error *Error }

// Close ends a connection.
type Close struct{ Error *Error }

// SASLMechanisms announces the mechanisms of a server.
type SASLMechanisms struct{ Mechanisms []Symbol }

// SASLInit chooses a mechanism.
type SASLInit struct {
	Mechanism       Symbol
	InitialResponse []byte
	Hostname        string
}

// SASLOutcome ends the exchange; code 0 is success.
type SASLOutcome struct{ Code uint8 }

// newBody returns an empty body for a descriptor, or nil.
func newBody(descriptor uint64) Body {
	switch descriptor {
	case descOpen:
		return &Open{}
	case descBegin:
		return &Begin{}
	case descAttach:
		return &Attach{}
	case descFlow:
		return &Flow{}
	case descTransfer:
		return &Transfer{}
	case descDisposition:
		return &Disposition{}
	case descDetach:
		return &Detach{}
	case descEnd:
		return &End{}
	case descClose:
		return &Close{}
	case descSASLMechanisms:
		return &SASLMechanisms{}
	case descSASLInit:
		return &SASLInit{}
	case descSASLOutcome:
		return &SASLOutcome{}
	}
	return nil
}

// ParseBody decodes the body of a frame. The payload of a transfer is a part of b, not a copy.
func ParseBody(b []byte) (Body, error) {
	r := NewReader(b)
	d, err := r.descriptor()
	if err != nil {
		return nil, err
	}
	body := newBody(d)
	if body == nil {
		return nil, malformed("frame with the unknown performative %#x", d)
	}
	f := r.composite()
	body.decode(&f)
	if err := f.close(); err != nil {
		return nil, err
	}
	t, ok := body.(*Transfer)
	if ok {
		t.Payload = r.Rest()
	} else if r.Len() > 0 {
		return nil, malformed("%d bytes after a performative", r.Len())
	}
	return body, nil
}

// AppendBody appends the encoding of a body, and the payload when it is a transfer.
func AppendBody(dst []byte, b Body) []byte {
	dst = b.append(dst)
	if t, ok := b.(*Transfer); ok {
		dst = append(dst, t.Payload...)
	}
	return dst
}
