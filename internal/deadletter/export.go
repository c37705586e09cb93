package deadletter

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/messagejson"
	"github.com/orderworker/orderworker/internal/wire"
)

// encodedLine is the form of an exported message that has no form for people.
type encodedLine struct {
	// Encoded is the message as the broker keeps it.
	Encoded []byte `json:"encoded_b64"`
	Why     string `json:"why,omitempty"`
}

// ExportLine writes a message as one line of JSON without its newline, losing nothing but its delivery count. The line is
// one of package messagejson, which people can read and fix and the send command takes, unless something in the message
// has no such form: then it holds the encoded message.
func ExportLine(l *DeadLetter) ([]byte, error) {
	if len(l.Damage)+len(l.Foreign) == 0 {
		line, err := messagejson.Encode(annotated(l.Message))
		if line = VisibleJSON(line); err == nil && faithful(l, line) {
			return line, nil
		}
	}
	why := "something in this message has no form in JSON"
	if odd := slices.Concat(l.Damage, l.Foreign); len(odd) > 0 {
		why = odd[0]
	}
	return json.Marshal(encodedLine{Encoded: l.Encoded, Why: Visible(why)})
}

// faithful reports whether a line brings the message back.
func faithful(l *DeadLetter, line []byte) bool {
	back, err := ImportLine(line)
	if err != nil {
		return false
	}
	sections, err := wire.Split(l.Encoded)
	nullBody := slices.ContainsFunc(sections, func(s wire.Section) bool { return s.Code == wire.Value }) && l.Message.Value == nil
	return err == nil && !nullBody && reflect.DeepEqual(normalised(l.Message), normalised(back.Message))
}

// normalised returns a message without what makes no difference: the delivery, and whether an empty section is there.
func normalised(m *amqp.Message) amqp.Message {
	out := amqp.Message{
		Header: &amqp.MessageHeader{Priority: 4}, Properties: m.Properties, Annotations: amqp.Annotations{},
		ApplicationProperties: map[string]any{}, Footer: amqp.Annotations{}, Data: m.Data, Value: m.Value, Sequence: m.Sequence,
	}
	if h := m.Header; h != nil {
		out.Header = &amqp.MessageHeader{Durable: h.Durable, Priority: h.Priority, TTL: h.TTL, FirstAcquirer: h.FirstAcquirer}
	}
	if out.Properties == nil {
		out.Properties = &amqp.MessageProperties{}
	}
	for k, v := range m.Annotations {
		out.Annotations[k] = v
	}
	for k, v := range m.ApplicationProperties {
		out.ApplicationProperties[k] = v
	}
	for k, v := range m.Footer {
		out.Footer[k] = v
	}
	return out
}

// ImportLine reads a line of either form.
func ImportLine(line []byte) (*DeadLetter, error) {
	var e encodedLine
	if json.Unmarshal(line, &e) == nil && len(e.Encoded) > 0 {
		l := Parse(e.Encoded)
		if _, err := wire.Split(e.Encoded); err != nil {
			return nil, fmt.Errorf("encoded_b64: %w", err)
		}
		return l, nil
	}
	m, err := messagejson.Decode(line)
	if err != nil {
		return nil, err
	}
	return fromAnnotated(m)
}
