package admission

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// A PartitionSource says in which logical partition the record and the effects of a message are. The zero value is the
// message's own partition, named by its key. It is a pure function of the message, so that every delivery and every review
// look for the record in the same place.
type PartitionSource struct {
	kind partitionKind
	name string
}

type partitionKind int

const (
	partitionKey partitionKind = iota
	partitionProperty
	partitionPointer
	partitionSession
	partitionBroker
)

// partitionForms is what [ParsePartitionSource] takes.
const partitionForms = "key, property:NAME, body:/json/pointer, session-id or partition-key"

// ParsePartitionSource reads the textual form: "key", "property:NAME", "body:/json/pointer", "session-id" or "partition-key".
// The empty text is the key.
func ParsePartitionSource(text string) (PartitionSource, error) {
	kind, name, named := strings.Cut(text, ":")
	var s PartitionSource
	switch {
	case text == "" || text == "key":
	case text == "session-id":
		s.kind = partitionSession
	case text == "partition-key":
		s.kind = partitionBroker
	case named && kind == "property":
		s = PartitionSource{partitionProperty, name}
	case named && kind == "body":
		s = PartitionSource{partitionPointer, name}
	default:
		return s, fmt.Errorf("partition source %q is not %s", text, partitionForms)
	}
	return s, s.validate()
}

// String returns the textual form.
func (s PartitionSource) String() string {
	switch s.kind {
	case partitionProperty:
		return "property:" + s.name
	case partitionPointer:
		return "body:" + s.name
	case partitionSession:
		return "session-id"
	case partitionBroker:
		return "partition-key"
	}
	return "key"
}

// IsKey reports whether every message has a partition of its own.
func (s PartitionSource) IsKey() bool { return s.kind == partitionKey }

// FromBody reports whether the partition is read from the body. A copy of a message with a changed body is then looked for
// elsewhere, so that the reuse of its key is not seen.
func (s PartitionSource) FromBody() bool { return s.kind == partitionPointer }

func (s PartitionSource) validate() error {
	switch s.kind {
	case partitionProperty:
		if strings.TrimSpace(s.name) == "" {
			return errors.New("partition source property: needs the name of an application property, such as property:orderId")
		}
	case partitionPointer:
		if s.name == "" {
			return errors.New("partition source body: needs a JSON pointer, such as body:/orderId")
		}
		if err := fingerprint.ValidatePointer(s.name); err != nil {
			return fmt.Errorf("partition source %s: %w", s, err)
		}
	}
	return nil
}

// partition finds the partition of a message. The content is needed only by the source that looks into it.
func (a *Admitter) partition(m *azservicebus.ReceivedMessage, key identity.Key, content []byte) (string, *reason.Refusal) {
	s := a.cfg.Partition
	var value, problem string
	switch s.kind {
	case partitionProperty:
		value, problem = propertyText(m, s.name)
	case partitionPointer:
		value, problem = pointerText(content, s.name)
	case partitionSession:
		value, problem = text(m.SessionID), "the message has no session id"
	case partitionBroker:
		value, problem = text(m.PartitionKey), "the message has no partition key"
	default:
		return key.DocumentID(), nil
	}
	switch {
	case value != "":
		problem = ""
	case problem == "":
		problem = "it is empty"
	}
	if problem == "" && identity.Blank(value) {
		problem = fmt.Sprintf("it has no visible character (length %d)", len(value))
	}
	if problem == "" && !utf8.ValidString(value) {
		problem = "it is not UTF-8 text"
	}
	if problem == "" && len(value) > a.cfg.MaxKeyBytes {
		problem = fmt.Sprintf("it has %d bytes, and at most %d are allowed", len(value), a.cfg.MaxKeyBytes)
	}
	if problem != "" {
		return "", reason.Refuse(reason.MissingPartition, "The partition of the message is its %s, and %s. The sender must set it: it says where "+
			"the record of this message is kept.", s, problem)
	}
	return identity.Text(value).DocumentID(), nil
}

func propertyText(m *azservicebus.ReceivedMessage, name string) (value, problem string) {
	switch v := properties(m)[name].(type) {
	case nil:
		return "", "there is no such application property" + otherCase(properties(m), name)
	case string:
		return v, ""
	default:
		return "", fmt.Sprintf("it is of type %s and not a string", body.TypeName(v))
	}
}

// pointerText reads a string or a whole number of checked JSON. A number is the text of its digits: 913 and "913" are one
// partition, since the key and not the partition tells messages apart.
func pointerText(content []byte, pointer string) (value, problem string) {
	raw, ok := fingerprint.Extract(content, pointer)
	if !ok {
		return "", "the body has no such value"
	}
	if s, ok := fingerprint.Unquote(raw); ok {
		return string(s), ""
	}
	if n, ok := fingerprint.WholeNumber(raw); ok {
		return n, ""
	}
	return "", "it is neither a string nor a whole number"
}
