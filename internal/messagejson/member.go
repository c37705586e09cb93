package messagejson

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A member is one member of a line, bound to the part of a message that it describes.
type member struct {
	name string
	read func(raw jsontext.Value) error
	// write returns what the encoder is to write, and nil for a member that is left out.
	write func() (any, error)
}

// members are the members of a message that has a header and properties, in the order in which they are written.
func members(m *message) []member {
	p, h := m.Properties, m.Header
	return append([]member{
		{"message_id", messageID(&p.MessageID), func() (any, error) { return plainID(p.MessageID), nil }},
		{"message_id_amqp", amqpID(&p.MessageID), func() (any, error) { return typedID(p.MessageID) }},
		optional("subject", &p.Subject, aString), optional("content_type", &p.ContentType, aString),
		optional("content_encoding", &p.ContentEncoding, aString),
		{"correlation_id", valueInto(&p.CorrelationID), func() (any, error) { return encodeValue(p.CorrelationID) }},
		optional("to", &p.To, aString), optional("reply_to", &p.ReplyTo, aString), optional("reply_to_session_id", &p.ReplyToGroupID, aString),
		optional("session_id", &p.GroupID, aString), optional("group_sequence", &p.GroupSequence, "a whole number from 0 to 4294967295"),
		{"user_id_b64", base64Into(&p.UserID), func() (any, error) { return unless(p.UserID == nil, p.UserID), nil }},
		moment("absolute_expiry_time", &p.AbsoluteExpiryTime), moment("creation_time", &p.CreationTime),
		{"ttl", durationInto(&h.TTL), func() (any, error) { return unless(h.TTL <= 0, h.TTL.String()), nil }},
		{"durable", into(&h.Durable, "true or false"), func() (any, error) { return unless(!h.Durable, true), nil }},
		{"first_acquirer", into(&h.FirstAcquirer, "true or false"), func() (any, error) { return unless(!h.FirstAcquirer, true), nil }},
		{"priority", into(&h.Priority, "a whole number from 0 to 255"), func() (any, error) { return unless(h.Priority == defaultPriority, h.Priority), nil }},
		{"application_properties", propertiesInto(&m.ApplicationProperties), func() (any, error) { return encodeProperties(m.ApplicationProperties) }},
		annotations("message_annotations", &m.MessageAnnotations), annotations("delivery_annotations", &m.DeliveryAnnotations),
		annotations("footer", &m.Footer),
		annotation(m, "partition_key", "x-opt-partition-key", readText), annotation(m, "scheduled_enqueue_time", "x-opt-scheduled-enqueue-time", readTime),
	}, bodies(m)...)
}

// into reads plain JSON of the kind that want names.
func into(at any, want string) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		if json.Unmarshal(raw, at) != nil {
			return fmt.Errorf("must be %s, and is %s", want, kindName(raw.Kind()))
		}
		return nil
	}
}

const aString = "a string"

func optional[T any](name string, at **T, want string) member {
	return member{name, into(at, want), func() (any, error) {
		if *at == nil {
			return nil, nil
		}
		return *at, nil
	}}
}

// unless returns what is to be written, and nothing when it goes without saying.
func unless(absent bool, v any) any {
	if absent {
		return nil
	}
	return v
}

// messageID reads an id that is text.
func messageID(at *any) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		id, err := readText(raw)
		if err != nil {
			return fmt.Errorf("%w; for an id that is no text use message_id_amqp, such as {\"ulong\":42}", err)
		}
		*at = id
		return nil
	}
}

func plainID(id any) any {
	text, ok := id.(string)
	return unless(!ok || !utf8.ValidString(text), text)
}

// amqpID reads a typed id in place of the text.
func amqpID(at *any) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		if *at != nil {
			return errors.New("give message_id or message_id_amqp, not both")
		}
		var forms map[string]jsontext.Value
		if json.Unmarshal(raw, &forms) != nil || len(forms) != 1 {
			return errors.New("is an object with one name: ulong, uuid, binary_hex or string")
		}
		digits, ok := forms["binary_hex"]
		if !ok {
			return valueInto(at)(raw)
		}
		text, err := readText(digits)
		if err != nil {
			return fmt.Errorf("binary_hex: %w", err)
		}
		*at, err = decodeHex(text)
		return err
	}
}

func typedID(id any) (any, error) {
	if b, ok := id.([]byte); ok {
		return typed("binary_hex", fmt.Sprintf("%x", b)), nil
	}
	if plainID(id) != nil {
		return nil, nil
	}
	return encodeValue(id)
}

func moment(name string, at **time.Time) member {
	read := func(raw jsontext.Value) error {
		t, err := readTime(raw)
		*at = &t
		return err
	}
	return member{name, read, func() (any, error) {
		if *at == nil {
			return nil, nil
		}
		return formatTime(**at), nil
	}}
}

func durationInto(at *time.Duration) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		text, err := readText(raw)
		if err != nil {
			return err
		}
		*at, err = ParseDuration(text)
		return err
	}
}

func propertiesInto(at *map[string]any) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		var values map[string]jsontext.Value
		if err := into(&values, "an object")(raw); err != nil {
			return err
		}
		*at = make(map[string]any, len(values))
		for name, raw := range values {
			v, err := decodeValue(raw)
			if err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			(*at)[name] = v
		}
		return nil
	}
}

func encodeProperties(properties map[string]any) (any, error) {
	out := make(map[string]any, len(properties))
	for name, v := range properties {
		plain, err := encodeValue(v)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		out[name] = plain
	}
	return unless(len(out) == 0, out), nil
}

func annotations(name string, at *map[any]any) member {
	read := func(raw jsontext.Value) error {
		v, err := decodeValue(raw)
		pairs, ok := v.(map[any]any)
		if err == nil && !ok {
			err = errors.New("want a map such as {\"map\":[[{\"symbol\":\"x\"},1]]}")
		}
		*at = pairs
		return err
	}
	return member{name, read, func() (any, error) {
		if len(*at) == 0 {
			return nil, nil
		}
		return encodeValue(*at)
	}}
}

// annotation is a message annotation with a member of its own. It is written among the annotations.
func annotation[T any](m *message, name, annotation string, read func(jsontext.Value) (T, error)) member {
	return member{name, func(raw jsontext.Value) error {
		v, err := read(raw)
		if m.MessageAnnotations == nil {
			m.MessageAnnotations = map[any]any{}
		}
		m.MessageAnnotations[annotation] = v
		return err
	}, func() (any, error) { return nil, nil }}
}
