package messagejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// The message annotations that have a field of their own in a line.
const (
	annotationPartitionKey = "x-opt-partition-key"
	annotationScheduled    = "x-opt-scheduled-enqueue-time"
)

// Decode reads one line. Its error names the member that is wrong.
func Decode(text []byte) (*azservicebus.AMQPAnnotatedMessage, error) {
	l, err := readLine(text)
	if err != nil {
		return nil, err
	}
	m := &azservicebus.AMQPAnnotatedMessage{Properties: &azservicebus.AMQPAnnotatedMessageProperties{}}
	for _, part := range []struct {
		name string
		read func(line, *azservicebus.AMQPAnnotatedMessage) error
	}{
		{"message_id", readMessageID}, {"", readProperties}, {"correlation_id", readCorrelationID},
		{"ttl", readHeader}, {"application_properties", readApplicationProperties}, {"", readAnnotations},
		{"body", readBody},
	} {
		err := part.read(l, m)
		if err != nil && part.name != "" {
			err = fmt.Errorf("%s: %w", part.name, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// readLine reads the members of a line by their exact names. The decoder of structs would take Body for body.
func readLine(text []byte) (line, error) {
	var l line
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok && json.NewDecoder(bytes.NewReader(text)).Decode(&members) == nil {
			return l, errors.New("not a message line: something follows the object. A message stands on a line of its own")
		}
		return l, explain(err)
	}
	if members == nil {
		return l, errors.New("not a message line: a line is one object, and this is null")
	}
	known := Members()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			return l, &UnknownMemberError{Name: name}
		}
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, explain(err)
	}
	return l, lossless(text)
}

func readMessageID(l line, m *azservicebus.AMQPAnnotatedMessage) error {
	if l.MessageIDAMQP == nil {
		if l.MessageID != nil {
			m.Properties.MessageID = *l.MessageID
		}
		return nil
	}
	if l.MessageID != nil {
		return fmt.Errorf("give message_id or message_id_amqp, not both")
	}
	var forms map[string]json.RawMessage
	if err := json.Unmarshal(l.MessageIDAMQP, &forms); err != nil || len(forms) != 1 {
		return fmt.Errorf("message_id_amqp is an object with one name: ulong, uuid, binary_hex or string")
	}
	if raw, ok := forms["binary_hex"]; ok {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return errors.New("binary_hex must be a string")
		}
		id, err := decodeHex(text)
		m.Properties.MessageID = id
		return err
	}
	id, err := decodeValue(l.MessageIDAMQP)
	m.Properties.MessageID = id
	return err
}

func readProperties(l line, m *azservicebus.AMQPAnnotatedMessage) error {
	p := m.Properties
	p.Subject, p.ContentType, p.ContentEncoding = l.Subject, l.ContentType, l.Encoding
	p.To, p.ReplyTo, p.ReplyToGroupID = l.To, l.ReplyTo, l.ReplyToGroup
	p.GroupID, p.GroupSequence = l.SessionID, l.GroupSequence
	if l.UserID != nil {
		id, err := decodeBase64(*l.UserID)
		if err != nil {
			return fmt.Errorf("user_id_b64: %w", err)
		}
		p.UserID = id
	}
	var err error
	if p.AbsoluteExpiryTime, err = parseTime(l.ExpiryTime); err != nil {
		return fmt.Errorf("absolute_expiry_time: %w", err)
	}
	if p.CreationTime, err = parseTime(l.CreationTime); err != nil {
		return fmt.Errorf("creation_time: %w", err)
	}
	return nil
}

func parseTime(text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil
	}
	t, err := decodeTime(*text)
	return &t, err
}

func readCorrelationID(l line, m *azservicebus.AMQPAnnotatedMessage) error {
	if l.CorrelationID == nil {
		return nil
	}
	id, err := decodeValue(l.CorrelationID)
	m.Properties.CorrelationID = id
	return err
}

func readHeader(l line, m *azservicebus.AMQPAnnotatedMessage) error {
	if l.TTL == nil && !l.Durable && !l.FirstAcquirer && l.Priority == nil {
		return nil
	}
	h := &azservicebus.AMQPAnnotatedMessageHeader{Durable: l.Durable, FirstAcquirer: l.FirstAcquirer, Priority: 4}
	if l.Priority != nil {
		h.Priority = *l.Priority
	}
	if l.TTL != nil {
		ttl, err := ParseDuration(*l.TTL)
		if err != nil {
			return err
		}
		h.TTL = ttl
	}
	m.Header = h
	return nil
}

func readApplicationProperties(l line, m *azservicebus.AMQPAnnotatedMessage) error {
	if l.Properties == nil {
		return nil
	}
	m.ApplicationProperties = make(map[string]any, len(l.Properties))
	for name, raw := range l.Properties {
		v, err := decodeValue(raw)
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		m.ApplicationProperties[name] = v
	}
	return nil
}

func readAnnotations(l line, m *azservicebus.AMQPAnnotatedMessage) error {
	for _, part := range []struct {
		name string
		raw  json.RawMessage
		into *map[any]any
	}{
		{"message_annotations", l.Annotations, &m.MessageAnnotations}, {"delivery_annotations", l.Delivery, &m.DeliveryAnnotations}, {"footer", l.Footer, &m.Footer},
	} {
		if part.raw == nil {
			continue
		}
		v, err := decodeValue(part.raw)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		pairs, ok := v.(map[any]any)
		if !ok {
			return fmt.Errorf("%s: want a map such as {\"map\":[[{\"symbol\":\"x\"},1]]}", part.name)
		}
		*part.into = pairs
	}
	if l.PartitionKey != nil {
		annotate(m, annotationPartitionKey, *l.PartitionKey)
	}
	at, err := parseTime(l.ScheduledAt)
	if err != nil {
		return fmt.Errorf("scheduled_enqueue_time: %w", err)
	}
	if at != nil {
		annotate(m, annotationScheduled, *at)
	}
	return nil
}

func annotate(m *azservicebus.AMQPAnnotatedMessage, name string, v any) {
	if m.MessageAnnotations == nil {
		m.MessageAnnotations = map[any]any{}
	}
	m.MessageAnnotations[name] = v
}

func readBody(l line, m *azservicebus.AMQPAnnotatedMessage) error {
	given := 0
	for _, present := range []bool{l.Body != nil, l.BodyB64 != nil, l.Sections != nil, l.SectionsB64 != nil, l.Value != nil, l.Sequence != nil} {
		if present {
			given++
		}
	}
	if given > 1 {
		return fmt.Errorf("give one of body, body_b64, data_sections, data_sections_b64, amqp_value and amqp_sequence")
	}
	switch {
	case l.Body != nil:
		return readTextBody(l.Body, m)
	case l.BodyB64 != nil:
		return readBase64(m, *l.BodyB64)
	case l.SectionsB64 != nil:
		return readBase64(m, l.SectionsB64...)
	case l.Value != nil:
		v, err := decodeValue(l.Value)
		m.Body.Value = v
		return err
	case l.Sequence != nil:
		return readSequence(l.Sequence, m)
	}
	for _, s := range l.Sections {
		m.Body.Data = append(m.Body.Data, []byte(s))
	}
	return nil
}

// readTextBody takes a string by value, and anything else by the bytes of the line.
func readTextBody(raw json.RawMessage, m *azservicebus.AMQPAnnotatedMessage) error {
	if raw[0] != '"' {
		m.Body.Data = [][]byte{append([]byte(nil), raw...)}
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	m.Body.Data = [][]byte{[]byte(text)}
	return nil
}

func readBase64(m *azservicebus.AMQPAnnotatedMessage, sections ...string) error {
	for _, s := range sections {
		data, err := decodeBase64(s)
		if err != nil {
			return err
		}
		m.Body.Data = append(m.Body.Data, data)
	}
	return nil
}

func readSequence(rows []json.RawMessage, m *azservicebus.AMQPAnnotatedMessage) error {
	for _, raw := range rows {
		v, err := decodeValue(raw)
		if err != nil {
			return err
		}
		row, ok := v.([]any)
		if !ok {
			return fmt.Errorf("amqp_sequence is an array of arrays")
		}
		m.Body.Sequence = append(m.Body.Sequence, row)
	}
	return nil
}
