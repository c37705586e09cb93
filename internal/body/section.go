package body

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

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
		return Decoded{}, unsupported("value("+TypeName(v)+")", "an AMQP value that is neither text nor binary")
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

// TypeName returns the AMQP name of a value's type, as far as its Go type tells it.
func TypeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int8:
		return "byte"
	case int16:
		return "short"
	case int32:
		return "int"
	case int64:
		return "long"
	case uint8:
		return "ubyte"
	case uint16:
		return "ushort"
	case uint32:
		return "uint"
	case uint64:
		return "ulong"
	case float32:
		return "float"
	case float64:
		return "double"
	case []byte:
		return "binary"
	case time.Time:
		return "timestamp"
	case amqp.UUID:
		return "uuid"
	case amqp.Symbol:
		return "symbol"
	case interface{ AMQPType() string }: // of a type that the client library cannot decode
		return v.AMQPType()
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
		return t.String()
	}
}
