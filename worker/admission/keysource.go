package admission

import (
	"errors"
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// A KeySource says where the key of a message is found. The zero value is the MessageId.
//
// There is no source for the correlation id, the sequence number, the lock token or a time: none of them stays the same when
// a sender repeats itself.
type KeySource struct {
	kind sourceKind
	name string
}

type sourceKind int

const (
	sourceMessageID sourceKind = iota
	sourceProperty
	sourcePointer
	sourceCloudEvents
)

// FromMessageID takes the key from the MessageId.
func FromMessageID() KeySource { return KeySource{} }

// FromProperty takes the key from an application property that is a string.
func FromProperty(name string) KeySource { return KeySource{kind: sourceProperty, name: name} }

// FromBody takes the key from the string or whole number at a JSON pointer (RFC 6901) in the body that is handed over.
func FromBody(pointer string) KeySource { return KeySource{kind: sourcePointer, name: pointer} }

// FromCloudEvents takes the key from the source and the id of a CloudEvent, in binary or structured mode.
func FromCloudEvents() KeySource { return KeySource{kind: sourceCloudEvents} }

// ParseKeySource reads the textual form: "message-id", "property:NAME", "body:/json/pointer" or "cloudevents". The empty text
// is the MessageId.
func ParseKeySource(text string) (KeySource, error) {
	kind, name, named := strings.Cut(text, ":")
	var s KeySource
	switch {
	case text == "" || text == "message-id":
	case text == "cloudevents":
		s = FromCloudEvents()
	case named && kind == "property":
		s = FromProperty(name)
	case named && kind == "body":
		s = FromBody(name)
	default:
		return s, fmt.Errorf("key source %q is not message-id, property:NAME, body:/json/pointer or cloudevents", text)
	}
	return s, s.validate()
}

// String returns the textual form.
func (s KeySource) String() string {
	switch s.kind {
	case sourceProperty:
		return "property:" + s.name
	case sourcePointer:
		return "body:" + s.name
	case sourceCloudEvents:
		return "cloudevents"
	}
	return "message-id"
}

// UnmarshalText reads the form of [ParseKeySource], for flags and configuration files.
func (s *KeySource) UnmarshalText(text []byte) error {
	parsed, err := ParseKeySource(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}

// MarshalText returns the form of [KeySource.String].
func (s KeySource) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s KeySource) validate() error {
	switch s.kind {
	case sourceProperty:
		if strings.TrimSpace(s.name) == "" {
			return errors.New("key source property: needs the name of an application property, such as property:NServiceBus.MessageId")
		}
	case sourcePointer:
		if s.name == "" {
			return errors.New("key source body: needs a JSON pointer, such as body:/orderId")
		}
		if err := fingerprint.ValidatePointer(s.name); err != nil {
			return fmt.Errorf("key source %s: %w", s, err)
		}
	}
	return nil
}
