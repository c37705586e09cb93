package amqp

import (
	"encoding/hex"
	"fmt"
)

// The Go forms of AMQP values are: nil, bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float32, float64,
// [Decimal32], [Decimal64], [Decimal128], [Char], time.Time (a timestamp, in milliseconds), [UUID], []byte (binary),
// string, [Symbol], [List], [Map], [Array] and [Described].

// Symbol is an AMQP symbol, which is a type of its own beside string.
type Symbol string

// Char is an AMQP char, one Unicode code point.
type Char uint32

// Decimal32 is an IEEE 754 decimal in its encoded form; it is passed on and never computed with.
type Decimal32 [4]byte

// Decimal64 is an IEEE 754 decimal in its encoded form.
type Decimal64 [8]byte

// Decimal128 is an IEEE 754 decimal in its encoded form.
type Decimal128 [16]byte

// UUID is an AMQP uuid in the byte order of RFC 4122.
type UUID [16]byte

// String returns the text form with dashes.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// List is an AMQP list.
type List []any

// Pair is one entry of a [Map].
type Pair struct{ Key, Value any }

// Map is an AMQP map in the order of its encoding, because AMQP maps may be ordered and their keys may have any type.
type Map []Pair

// Get returns the value of the first key that is the string or the symbol name.
func (m Map) Get(name string) (any, bool) {
	for _, p := range m {
		if k, ok := keyText(p.Key); ok && k == name {
			return p.Value, true
		}
	}
	return nil, false
}

func keyText(k any) (string, bool) {
	switch k := k.(type) {
	case string:
		return k, true
	case Symbol:
		return string(k), true
	}
	return "", false
}

// Array is an AMQP array: all items have the constructor Code, after Descriptor when that is not nil.
type Array struct {
	Code       byte
	Descriptor any
	Items      []any
}

// Described is a value with a descriptor.
type Described struct{ Descriptor, Value any }

// Longs returns an array of long.
func Longs(vs []int64) Array { return arrayOf(codeLong, vs) }

// Timestamps returns an array of timestamp, from milliseconds since the Unix epoch held as time.Time.
func Timestamps[T any](vs []T) Array { return arrayOf(codeTimestamp, vs) }

// Symbols returns an array of symbol.
func Symbols(vs []Symbol) Array { return arrayOf(codeSym8, vs) }

// Strings returns an array of string.
func Strings(vs []string) Array { return arrayOf(codeStr32, vs) }

func arrayOf[T any](code byte, vs []T) Array {
	a := Array{Code: code, Items: make([]any, len(vs))}
	for i, v := range vs {
		a.Items[i] = v
	}
	return a
}

// An Error is an AMQP error, as links, sessions, connections and rejected deliveries carry it.
type Error struct {
	Condition   string
	Description string
	Info        Map
}

// Errorf returns an error with a condition and a formatted description.
func Errorf(condition, format string, args ...any) *Error {
	return &Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

// Error returns the condition and the description.
func (e *Error) Error() string {
	if e.Description == "" {
		return e.Condition
	}
	return e.Condition + ": " + e.Description
}

// The error conditions of the standard that this package raises or its users need.
const (
	InternalError         = "amqp:internal-error"
	NotFound              = "amqp:not-found"
	UnauthorizedAccess    = "amqp:unauthorized-access"
	DecodeError           = "amqp:decode-error"
	ResourceLimitExceeded = "amqp:resource-limit-exceeded"
	NotAllowed            = "amqp:not-allowed"
	InvalidField          = "amqp:invalid-field"
	NotImplemented        = "amqp:not-implemented"
	FrameSizeTooSmall     = "amqp:frame-size-too-small"
	ConnectionForced      = "amqp:connection:forced"
	FramingError          = "amqp:connection:framing-error"
	WindowViolation       = "amqp:session:window-violation"
	UnattachedHandle      = "amqp:session:unattached-handle"
	HandleInUse           = "amqp:session:handle-in-use"
	DetachForced          = "amqp:link:detach-forced"
	TransferLimitExceeded = "amqp:link:transfer-limit-exceeded"
	MessageSizeExceeded   = "amqp:link:message-size-exceeded"
)
