package servicebus

import (
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/internal/sqlrule"
)

// A view is a message as rules see it and change it. What a sender wrote with a wrong type in its place is not there.
type view struct {
	m       *message
	read    bool
	system  amqp.Properties
	user    amqp.Map
	changes amqp.Map // of user
	sets    bool     // system has changed
}

func newView(m *message) *view { return &view{m: m} }

// decode looks into the message when a rule asks for the first time.
func (v *view) decode() {
	if v.read {
		return
	}
	v.read = true
	if p, err := amqp.DecodeProperties(v.m.properties); err == nil {
		v.system = p
	}
	if m, err := amqp.DecodeMap(v.m.application); err == nil {
		v.user = m
	}
}

// Value implements [sqlrule.Message].
func (v *view) Value(n sqlrule.Name) (any, bool) {
	if !n.System {
		i := v.index(n.Text)
		if i < 0 {
			return nil, false
		}
		return plain(v.user[i].Value), true
	}
	s := v.systemText(n.Text)
	if s == nil {
		return nil, false
	}
	return *s, true
}

// index is the place of a user property, whose name does not depend on case, or -1.
func (v *view) index(name string) int {
	v.decode()
	for i, p := range v.user {
		if k, ok := p.Key.(string); ok && strings.EqualFold(k, name) {
			return i
		}
	}
	return -1
}

// systemText returns a system property, or nil where the message has none.
func (v *view) systemText(name string) *string {
	v.decode()
	p := &v.system
	switch name {
	case "Subject", "Label":
		return p.Subject
	case "SessionId":
		return p.GroupID
	case "ReplyToSessionId":
		return p.ReplyToGroupID
	case "ContentType":
		return (*string)(p.ContentType)
	}
	values := map[string]any{"CorrelationId": p.CorrelationID, "MessageId": p.MessageID, "ReplyTo": p.ReplyTo, "To": p.To}
	switch value := values[name].(type) {
	case nil:
		return nil
	case string:
		return &value
	default:
		text, _ := idText(value)
		return &text
	}
}

// Set implements [sqlrule.Editable].
func (v *view) Set(n sqlrule.Name, value any) {
	v.decode()
	if n.System {
		v.setSystem(n.Text, value)
		return
	}
	name := n.Text
	if i := v.index(name); i >= 0 {
		name, _ = v.user[i].Key.(string)
	}
	v.user = put(v.user, name, value)
	v.changes = put(v.changes, name, value)
}

// Remove implements [sqlrule.Editable].
func (v *view) Remove(n sqlrule.Name) {
	v.decode()
	if n.System {
		v.setSystem(n.Text, nil)
		return
	}
	if i := v.index(n.Text); i >= 0 {
		v.changes = put(v.changes, v.user[i].Key.(string), removed{})
		v.user = append(v.user[:i:i], v.user[i+1:]...)
	}
}

// put returns a map with one value more or another one.
func put(m amqp.Map, name string, value any) amqp.Map {
	for i, p := range m {
		if p.Key == name {
			m[i].Value = value
			return m
		}
	}
	return append(m, amqp.Pair{Key: name, Value: value})
}

// setSystem sets a system property, which is text, or clears it with nil.
func (v *view) setSystem(name string, value any) {
	v.sets = true
	var text *string
	var id any
	if value != nil {
		s := fmt.Sprint(value)
		text, id = &s, s
	}
	p := &v.system
	switch name {
	case "Subject", "Label":
		p.Subject = text
	case "SessionId":
		p.GroupID = text
	case "ReplyToSessionId":
		p.ReplyToGroupID = text
	case "ContentType":
		p.ContentType = (*amqp.Symbol)(text)
	case "CorrelationId":
		p.CorrelationID = id
	case "MessageId":
		p.MessageID = id
	case "ReplyTo":
		p.ReplyTo = id
	case "To":
		p.To = id
	}
}

// edited returns the message with the changes. What cannot be encoded stays as it was.
func (v *view) edited() *message {
	m := v.m
	before := len(m.properties) + len(m.application)
	if application, err := m.modified(v.changes); err == nil {
		m.application = application
	}
	if v.sets {
		if properties, err := amqp.AppendMessage(nil, amqp.Message{Properties: &v.system}); err == nil {
			m.properties = properties
		}
		m.key, m.id = idText(v.system.MessageID)
		m.hasID = v.system.MessageID != nil
	}
	m.size += int64(len(m.properties) + len(m.application) - before)
	return m
}
