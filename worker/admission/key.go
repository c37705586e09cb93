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
	var refusal *reason.Refusal
	switch a.cfg.KeySource.kind {
	case sourceProperty:
		k, refusal = propertyKey(m, a.cfg.KeySource.name)
	case sourcePointer:
		k, refusal = pointerKey(content, a.cfg.KeySource.name)
	case sourceCloudEvents:
		k, refusal = eventKey(m, envelope)
	default:
		k, refusal = a.messageIDKey(m)
	}
	if refusal != nil {
		return identity.Key{}, refusal
	}
	k.Consumer = a.cfg.Consumer
	return k, a.checkKey(k)
}

// checkKey holds the value of a key to what every source must give.
func (a *Admitter) checkKey(k identity.Key) *reason.Refusal {
	where := a.cfg.KeySource.describe()
	parts := []struct{ name, text string }{{where, k.Value}}
	if k.Kind == identity.CloudEvent {
		parts = []struct{ name, text string }{{"The CloudEvent's source", k.Source}, {"The CloudEvent's id", k.Value}}
	}
	for _, p := range parts {
		switch {
		case p.text == "":
			return missing("%s is empty", p.name)
		case !utf8.ValidString(p.text):
			return reason.Refuse(reason.InvalidKey, "%s is not UTF-8 text, so it cannot be kept in a document. The sender must use text.", p.name)
		case identity.Blank(p.text):
			return missing("%s has no visible character (length %d)", p.name, len(p.text))
		}
	}
	if size := len(k.Value) + len(k.Source); size > a.cfg.MaxKeyBytes {
		return reason.Refuse(reason.KeyTooLong, "%s has %d bytes; at most %d are allowed. The sender must use a shorter id.", where, size, a.cfg.MaxKeyBytes)
	}
	return nil
}

// describe names the source in a sentence.
func (s KeySource) describe() string {
	switch s.kind {
	case sourceProperty:
		return "The application property " + strconv.QuoteToASCII(s.name)
	case sourcePointer:
		return "The body's value at " + strconv.QuoteToASCII(s.name)
	case sourceCloudEvents:
		return "The CloudEvent's source and id"
	}
	return "The MessageId"
}

func missing(format string, args ...any) *reason.Refusal {
	return reason.Refuse(reason.MissingMessageID, "%s. The sender must set it: without a key nobody can tell this message from "+
		"another.", fmt.Sprintf(format, args...))
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
			return identity.Key{}, missing("The message has no MessageId%s", a.eventHint(m))
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

func propertyKey(m *azservicebus.ReceivedMessage, name string) (identity.Key, *reason.Refusal) {
	v, present := properties(m)[name]
	if !present || v == nil {
		return identity.Key{}, missing("The message has no application property %+q, which is the key%s", name, otherCase(properties(m), name))
	}
	s, ok := v.(string)
	if !ok {
		return identity.Key{}, missing("The application property %+q, which is the key, is of type %s and not a string", name, body.TypeName(v))
	}
	return identity.Text(s), nil
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

// pointerKey reads a string, or a whole number, of checked JSON.
func pointerKey(content []byte, pointer string) (identity.Key, *reason.Refusal) {
	raw, ok := fingerprint.Extract(content, pointer)
	if !ok {
		return identity.Key{}, missing("The body has no value at %+q, which is the key", pointer)
	}
	if s, ok := fingerprint.Unquote(raw); ok {
		return identity.Text(string(s)), nil
	}
	if n, ok := fingerprint.WholeNumber(raw); ok {
		return identity.Key{Kind: identity.Number, Value: n}, nil
	}
	return identity.Key{}, missing("The body's value at %+q, which is the key, is neither a string nor a whole number", pointer)
}
