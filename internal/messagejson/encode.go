package messagejson

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Encode writes a message as one line without its newline. What the broker adds at each delivery (the lock token, the
// delivery tag, the delivery count) is left out.
func Encode(m *azservicebus.AMQPAnnotatedMessage) ([]byte, error) {
	l := line{}
	for _, write := range []func(*azservicebus.AMQPAnnotatedMessage, *line) error{
		writeProperties, writeHeader, writeApplicationProperties, writeAnnotations, writeBody,
	} {
		if err := write(m, &l); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func writeProperties(m *azservicebus.AMQPAnnotatedMessage, l *line) (err error) {
	p := m.Properties
	if p == nil {
		return nil
	}
	switch id := p.MessageID.(type) {
	case nil:
	case string:
		if utf8.ValidString(id) {
			l.MessageID = &id
			break
		}
		l.MessageIDAMQP, err = marshalValue(id)
	case []byte:
		l.MessageIDAMQP, err = marshal(typed("binary_hex", hex.EncodeToString(id)))
	default:
		l.MessageIDAMQP, err = marshalValue(id)
	}
	if err == nil && p.CorrelationID != nil {
		l.CorrelationID, err = marshalValue(p.CorrelationID)
	}
	l.Subject, l.ContentType, l.Encoding = p.Subject, p.ContentType, p.ContentEncoding
	l.To, l.ReplyTo, l.ReplyToGroup = p.To, p.ReplyTo, p.ReplyToGroupID
	l.SessionID, l.GroupSequence = p.GroupID, p.GroupSequence
	if p.UserID != nil {
		text := base64.StdEncoding.EncodeToString(p.UserID)
		l.UserID = &text
	}
	l.ExpiryTime, l.CreationTime = formatTime(p.AbsoluteExpiryTime), formatTime(p.CreationTime)
	return err
}

func formatTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := t.UTC().Format(time.RFC3339Nano)
	return &text
}

func writeHeader(m *azservicebus.AMQPAnnotatedMessage, l *line) error {
	h := m.Header
	if h == nil {
		return nil
	}
	l.Durable, l.FirstAcquirer = h.Durable, h.FirstAcquirer
	if h.Priority != 4 {
		l.Priority = &h.Priority
	}
	if h.TTL > 0 {
		text := h.TTL.String()
		l.TTL = &text
	}
	return nil
}

func writeApplicationProperties(m *azservicebus.AMQPAnnotatedMessage, l *line) error {
	if len(m.ApplicationProperties) == 0 {
		return nil
	}
	l.Properties = make(map[string]json.RawMessage, len(m.ApplicationProperties))
	for name, v := range m.ApplicationProperties {
		raw, err := marshalValue(v)
		if err != nil {
			return fmt.Errorf("application property %q: %w", name, err)
		}
		l.Properties[name] = raw
	}
	return nil
}

func writeAnnotations(m *azservicebus.AMQPAnnotatedMessage, l *line) (err error) {
	for _, part := range []struct {
		from map[any]any
		into *json.RawMessage
	}{{m.MessageAnnotations, &l.Annotations}, {m.DeliveryAnnotations, &l.Delivery}, {m.Footer, &l.Footer}} {
		if len(part.from) == 0 {
			continue
		}
		if *part.into, err = marshalValue(part.from); err != nil {
			return fmt.Errorf("annotations: %w", err)
		}
	}
	return nil
}

func writeBody(m *azservicebus.AMQPAnnotatedMessage, l *line) (err error) {
	switch b := m.Body; {
	case len(b.Data) == 1:
		return writeData(b.Data[0], l)
	case len(b.Data) > 1:
		for _, d := range b.Data {
			l.SectionsB64 = append(l.SectionsB64, base64.StdEncoding.EncodeToString(d))
		}
	case b.Sequence != nil:
		for _, row := range b.Sequence {
			raw, err := marshalValue(row)
			if err != nil {
				return fmt.Errorf("amqp_sequence: %w", err)
			}
			l.Sequence = append(l.Sequence, raw)
		}
	case b.Value != nil:
		if l.Value, err = marshalValue(b.Value); err != nil {
			return fmt.Errorf("amqp_value: %w", err)
		}
	}
	return nil
}

// writeData writes text as text, so that people can read it, and anything else in base64.
func writeData(data []byte, l *line) (err error) {
	if utf8.Valid(data) {
		l.Body, err = marshal(string(data))
		return err
	}
	text := base64.StdEncoding.EncodeToString(data)
	l.BodyB64 = &text
	return nil
}

func marshalValue(v any) (json.RawMessage, error) {
	plain, err := encodeValue(v)
	if err != nil {
		return nil, err
	}
	return marshal(plain)
}

func marshal(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
