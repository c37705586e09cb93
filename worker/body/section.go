package body

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/worker/reason"
)

// section finds the bytes in the AMQP body. The SDK's own Body field is set only for a single data section, so the raw
// message decides; a message without one, as tests make them, has the field alone.
func section(m *azservicebus.ReceivedMessage, o Options) (Decoded, *reason.Refusal) {
	if m.RawAMQPMessage == nil {
		return Decoded{Bytes: m.Body, Section: "data"}, nil
	}
	raw := m.RawAMQPMessage.Body
	kinds := 0
	for _, present := range []bool{len(raw.Data) > 0, raw.Value != nil, len(raw.Sequence) > 0} {
		if present {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return Decoded{}, unsupported("mixed sections", "more than one kind of AMQP body section")
	case len(raw.Data) > 0:
		return Decoded{Bytes: join(raw.Data), Section: "data"}, nil
	case raw.Value != nil:
		return value(raw.Value, o)
	case len(raw.Sequence) > 0:
		return Decoded{}, unsupported("sequence", fmt.Sprintf("%d AMQP sequence section(s), a list of values", len(raw.Sequence)))
	}
	return Decoded{Bytes: m.Body, Section: "data"}, nil
}

func join(sections [][]byte) []byte {
	if len(sections) == 1 {
		return sections[0]
	}
	return bytes.Join(sections, nil)
}

func value(v any, o Options) (Decoded, *reason.Refusal) {
	var d Decoded
	switch v := v.(type) {
	case string:
		d = Decoded{Bytes: []byte(v), Section: "value(string)"}
	case []byte:
		d = Decoded{Bytes: v, Section: "value(binary)"}
	case amqp.Null, *amqp.Null:
		return Decoded{Section: "value(null)"}, nil
	default:
		return Decoded{}, unsupported("value("+typeName(v)+")", "an AMQP value that is neither text nor binary")
	}
	if o.RefuseValue {
		return Decoded{}, unsupported(d.Section, "an AMQP value, which this consumer is configured to refuse")
	}
	return d, nil
}

func unsupported(kind, what string) *reason.Refusal {
	return reason.Refuse(reason.UnsupportedBody, "The body is of the kind %s: %s. Only data sections and AMQP values of text or "+
		"binary carry a body here. The sender must send its content as one data section.", kind, what)
}

// typeName is the AMQP name of a value's type, as far as Go's type tells it.
func typeName(v any) string {
	if name, ok := amqpTypes[reflect.TypeOf(v)]; ok {
		return name
	}
	switch t := reflect.TypeOf(v); t.Kind() {
	case reflect.Map:
		return "map"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Interface {
			return "list"
		}
		return "array"
	default:
		return strings.TrimPrefix(t.String(), "encoding.")
	}
}

// amqpTypes names the AMQP types that go-amqp decodes to a Go type of their own.
var amqpTypes = map[reflect.Type]string{
	reflect.TypeFor[bool]():        "boolean",
	reflect.TypeFor[int8]():        "byte",
	reflect.TypeFor[int16]():       "short",
	reflect.TypeFor[int32]():       "int",
	reflect.TypeFor[int64]():       "long",
	reflect.TypeFor[uint8]():       "ubyte",
	reflect.TypeFor[uint16]():      "ushort",
	reflect.TypeFor[uint32]():      "uint",
	reflect.TypeFor[uint64]():      "ulong",
	reflect.TypeFor[float32]():     "float",
	reflect.TypeFor[float64]():     "double",
	reflect.TypeFor[amqp.UUID]():   "uuid",
	reflect.TypeFor[amqp.Symbol](): "symbol",
}
