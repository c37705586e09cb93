package admission

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// key finds the key of a message. The content is needed only by the sources that look into it.
func (a *Admitter) key(m *azservicebus.ReceivedMessage, envelope, content []byte) (identity.Key, *reason.Refusal) {
	var k identity.Key
	var problem string
	var refusal *reason.Refusal
	switch s := a.cfg.KeySource; s.form {
	case formProperty:
		k.Kind = identity.String
		k.Value, problem = propertyText(m, s.name)
	case formBody:
		k.Value, k.Kind, problem = pointerText(content, s.name)
	case formCloudEvents:
		k, refusal = eventKey(m, envelope)
	default:
		k, refusal = a.messageIDKey(m)
	}
	switch {
	case problem != "":
		refusal = noKey(reason.MissingMessageID, a.cfg.KeySource.describe(), problem)
	case refusal == nil:
		refusal = a.checkKey(k)
	}
	if refusal != nil {
		return identity.Key{}, refusal
	}
	k.Consumer = a.cfg.Consumer
	return k, nil
}

// checkKey holds the value of a key to what every source must give.
func (a *Admitter) checkKey(k identity.Key) *reason.Refusal {
	parts := [][2]string{{a.cfg.KeySource.describe(), k.Value}}
	if k.Kind == identity.CloudEvent {
		parts = [][2]string{{"CloudEvent's source", k.Source}, {"CloudEvent's id", k.Value}, {"CloudEvent's source and id", k.Source + k.Value}}
	}
	for _, part := range parts {
		if code, problem := unusable(part[1], a.cfg.MaxKeyBytes); problem != "" {
			return noKey(code, part[0], problem)
		}
	}
	return nil
}

// noKey is the refusal of a message that has no key at a place.
func noKey(code, place, problem string) *reason.Refusal {
	return reason.Refuse(code, "The key of the message is its %s, and %s. The sender must set it: without a key nobody can tell this message from "+
		"another.", place, problem)
}

// unusable says why a text can be neither a key nor a partition, with the reason code of a key.
func unusable(text string, most int) (code, problem string) {
	switch {
	case text == "":
		return reason.MissingMessageID, "it is missing or empty"
	case !utf8.ValidString(text):
		return reason.InvalidKey, "it is not UTF-8 text, so it cannot be kept in a document"
	case identity.Blank(text):
		return reason.MissingMessageID, fmt.Sprintf("it has no visible character (length %d)", len(text))
	case len(text) > most:
		return reason.KeyTooLong, fmt.Sprintf("it has %d bytes, and at most %d are allowed", len(text), most)
	}
	return "", ""
}

// describe names the place in a sentence.
func (s source) describe() string {
	switch s.form {
	case "":
		return "MessageId"
	case formProperty:
		return "application property " + strconv.QuoteToASCII(s.name)
	case formBody:
		return "body's value at " + strconv.QuoteToASCII(s.name)
	}
	return s.form
}

// messageIDKey reads the MessageId. The SDK's own field is empty for ids that are not strings, so the raw message decides.
func (a *Admitter) messageIDKey(m *azservicebus.ReceivedMessage) (identity.Key, *reason.Refusal) {
	var id any
	if raw := m.RawAMQPMessage; raw != nil && raw.Properties != nil {
		id = raw.Properties.MessageID
	}
	if id == nil {
		id = m.MessageID
	}
	if s, ok := id.(string); ok {
		if s == "" {
			return identity.Key{}, noKey(reason.MissingMessageID, "MessageId", "the message has no MessageId"+a.eventHint(m))
		}
		return identity.Text(s), nil
	}
	k, ok := typedID(id)
	switch {
	case !ok:
		return k, reason.Refuse(reason.UnsupportedMessageIDType, "The MessageId is of type %s, which AMQP does not allow as an id. "+
			"The sender must use a string.", body.TypeName(id))
	case a.cfg.RefuseTypedIDs:
		return k, reason.Refuse(reason.UnsupportedMessageIDType, "The MessageId is an AMQP %s, and this consumer is configured to refuse ids "+
			"that are not strings. The sender must use a string.", k.Kind)
	}
	return k, nil
}

// typedID returns the key of an AMQP id that is not a string.
func typedID(id any) (identity.Key, bool) {
	switch id := id.(type) {
	case uint64:
		return identity.Key{Kind: identity.Ulong, Value: strconv.FormatUint(id, 10)}, true
	case amqp.UUID:
		return identity.Key{Kind: identity.UUID, Value: id.String()}, true
	case [16]byte:
		return identity.Key{Kind: identity.UUID, Value: amqp.UUID(id).String()}, true
	case []byte:
		return identity.Key{Kind: identity.Binary, Value: hex.EncodeToString(id)}, true
	}
	return identity.Key{}, false
}

// propertyText reads an application property that is a string.
func propertyText(m *azservicebus.ReceivedMessage, name string) (value, problem string) {
	switch v := properties(m)[name].(type) {
	case nil:
		return "", "there is no application property of this name" + otherCase(properties(m), name)
	case string:
		return v, ""
	default:
		return "", fmt.Sprintf("it is of type %s and not a string", body.TypeName(v))
	}
}

// otherCase describes a property that differs from the wanted one only in case, as bridges over HTTP make them.
func otherCase(props map[string]any, name string) string {
	found := ""
	for other, v := range props {
		if v != nil && strings.EqualFold(other, name) && (found == "" || other < found) {
			found = other
		}
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf(". It has %+q, and names are compared with their case", found)
}

// pointerText reads a string or a whole number of checked JSON.
func pointerText(content []byte, pointer string) (value string, kind identity.Kind, problem string) {
	raw, ok := fingerprint.Extract(content, pointer)
	if !ok {
		return "", "", "the body has no such value"
	}
	if s, ok := fingerprint.Unquote(raw); ok {
		return string(s), identity.String, ""
	}
	if n, ok := fingerprint.WholeNumber(raw); ok {
		return n, identity.Number, ""
	}
	return "", "", "it is neither a string nor a whole number"
}
