package servicebus

import "github.com/orderworker/orderworker/testenv/internal/amqp"

// What a test sends straight into a queue, as it goes over the wire.

type (
	// Message is a message with its sections.
	Message = amqp.Message
	// Header is the header section.
	Header = amqp.Header
	// Properties is the properties section.
	Properties = amqp.Properties
	// Map is a map of AMQP.
	Map = amqp.Map
	// List is a list of AMQP.
	List = amqp.List
	// Symbol is a symbol of AMQP.
	Symbol = amqp.Symbol
	// Char is a character of AMQP.
	Char = amqp.Char
	// Decimal32 is a decimal of AMQP, which .NET sends and other clients cannot read.
	Decimal32 = amqp.Decimal32
	// Decimal64 is a wider one.
	Decimal64 = amqp.Decimal64
	// Decimal128 is the widest one.
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
