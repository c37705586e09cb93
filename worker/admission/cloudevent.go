package admission

import (
	"bytes"
	"cmp"
	"encoding/base64"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// eventPrefixes stand before the names of a CloudEvent's attributes in application properties: the two of the AMQP binding,
// and those that bridges from HTTP and Kafka leave.
var eventPrefixes = [...]string{"cloudEvents:", "cloudEvents_", "ce-", "ce_"}

// property returns a text attribute of an event in binary mode, empty when it is absent or null. It is an error when two
// prefixes give two values.
func property(props map[string]any, name string) (string, *reason.Refusal) {
	found := ""
	for _, prefix := range eventPrefixes {
		v := props[prefix+name]
		s, ok := v.(string)
		switch {
		case v != nil && !ok:
			return "", notText(name, "of type "+body.TypeName(v))
		case found != "" && s != "" && found != s:
			return "", reason.Refuse(reason.InvalidKey, "The application properties give two values for the CloudEvents attribute %q. "+
				"The sender must set one.", name)
		}
		found = cmp.Or(found, s)
	}
	return found, nil
}

// member returns a text attribute of an event in structured mode, empty when it is absent.
func member(envelope []byte, name string) (string, *reason.Refusal) {
	raw, ok := fingerprint.Extract(envelope, "/"+name)
	if !ok {
		return "", nil
	}
	s, ok := fingerprint.Unquote(raw)
	if !ok {
		return "", notText(name, jsonKind(raw[0]))
	}
	return string(s), nil
}

func notText(name, kind string) *reason.Refusal {
	return noKey(reason.MissingMessageID, "CloudEvent's "+name, "it is "+kind+" and not a string")
}

// binaryEvent reports whether the message is an event in binary mode: its attributes are properties, its body is the data.
func binaryEvent(m *azservicebus.ReceivedMessage) bool {
	props := properties(m)
	for _, prefix := range eventPrefixes {
		for _, name := range []string{"specversion", "id", "source"} {
			if props[prefix+name] != nil {
				return true
			}
		}
	}
	return false
}

// eventKey reads source and id of an event in either mode. Properties that begin an event decide for binary mode, so that an
// event without source is not taken for another that its data might look like.
func eventKey(m *azservicebus.ReceivedMessage, envelope []byte) (identity.Key, *reason.Refusal) {
	read := func(name string) (string, *reason.Refusal) { return property(properties(m), name) }
	if !binaryEvent(m) {
		if !hasVersion(envelope) {
			return identity.Key{}, noKey(reason.MissingMessageID, "CloudEvent's source and id", "the message is no CloudEvent: its body has no "+
				"\"specversion\", which every event has, and its properties have none of an event")
		}
		read = func(name string) (string, *reason.Refusal) { return member(envelope, name) }
	}
	source, wrongSource := read("source")
	id, wrongID := read("id")
	return identity.Key{Kind: identity.CloudEvent, Source: source, Value: id}, cmp.Or(wrongSource, wrongID)
}

// eventHint tells a person that a message without MessageId is a CloudEvent, as Dapr sends them, whose own id can be the key.
func (a *Admitter) eventHint(m *azservicebus.ReceivedMessage) string {
	if !binaryEvent(m) {
		decoded, refusal := body.Decode(m, a.cfg.Body)
		if refusal != nil || !hasVersion(decoded.Bytes) {
			return ""
		}
	}
	return ". It is a CloudEvent, as Dapr sends them: with WORKER_KEY=cloudevents (in Go, FromCloudEvents) the source and id of the event " +
		"are the key, and the message can be reprocessed"
}

// hasVersion reports whether a body is an event in structured mode.
func hasVersion(envelope []byte) bool {
	_, ok := fingerprint.Extract(envelope, "/specversion")
	return ok
}

// eventData returns the data of an event in structured mode. The envelope is checked JSON.
func eventData(envelope []byte) ([]byte, *reason.Refusal) {
	if first := bytes.TrimLeft(envelope, " \t\r\n"); bytes.HasPrefix(first, []byte("[")) {
		return nil, reason.Refuse(reason.MissingSelection, "The body is an array, perhaps a batch of CloudEvents, and only the data of one CloudEvent is "+
			"used here. The sender must send each event as a message of its own.")
	}
	if version, ok := fingerprint.Extract(envelope, "/specversion"); !ok || version[0] != '"' {
		return nil, reason.Refuse(reason.MissingSelection, "The body is no CloudEvent (it has no specversion), and only the data of a CloudEvent is "+
			"used here. The sender must send an event.")
	}
	data, plain := fingerprint.Extract(envelope, "/data")
	encoded, binary := fingerprint.Extract(envelope, "/data_base64")
	switch {
	case plain && binary:
		return nil, reason.Refuse(reason.InvalidEnvelope, "The CloudEvent has both data and data_base64. The sender must use one of them.")
	case plain:
		return data, nil
	case !binary:
		return nil, reason.Refuse(reason.MissingSelection, "The CloudEvent has neither data nor data_base64, and only the data is used here. "+
			"The sender must send the data.")
	}
	text, ok := fingerprint.Unquote(encoded)
	if !ok {
		return nil, reason.Refuse(reason.InvalidEnvelope, "The CloudEvent's data_base64 is not a string. The sender must correct the event.")
	}
	content := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(content, text)
	if err != nil {
		return nil, reason.Refuse(reason.InvalidEnvelope, "The CloudEvent's data_base64 is not base64. The sender must correct the event.")
	}
	return body.Text(content[:n])
}

// EventType returns the type of the CloudEvent that the message is, in either mode, or "".
func (m Message) EventType() string {
	if m.event {
		s, _ := property(m.ApplicationProperties, "type")
		return s
	}
	envelope := m.envelope
	if envelope == nil {
		envelope = m.Body
	}
	s, _ := member(envelope, "type")
	return s
}
