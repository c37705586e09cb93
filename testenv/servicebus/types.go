package servicebus

import "github.com/orderworker/orderworker/testenv/internal/amqp"

// What a test sends straight into a queue, as it goes over the wire.
type (
	Message    = amqp.Message
	Header     = amqp.Header
	Properties = amqp.Properties
	Map        = amqp.Map
	List       = amqp.List
	Symbol     = amqp.Symbol
	Char       = amqp.Char
	Decimal32  = amqp.Decimal32
	Decimal64  = amqp.Decimal64
	Decimal128 = amqp.Decimal128
)

// BodyData is a body of data sections.
const BodyData = amqp.BodyData

// A Mute says which frames a connection of the broker keeps to itself.
type Mute = amqp.Mute

// The ways to be mute.
const (
	Speaking   = amqp.Speaking
	MuteAll    = amqp.MuteAll
	MuteFrames = amqp.MuteFrames
)
