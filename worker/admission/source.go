package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// A source is a place in a message. Its form is "property" or "body" with a name, or a word; the zero value is the default.
type source struct{ form, name string }

// The forms of sources. Those of a property and of a body have a name.
const (
	formProperty     = "property"
	formBody         = "body"
	formMessageID    = "message-id"
	formCloudEvents  = "cloudevents"
	formKey          = "key"
	formSession      = "session-id"
	formPartitionKey = "partition-key"
)

// A KeySource says where the key of a message is found. The zero value is the MessageId.
//
// There is no source for the correlation id, the sequence number, the lock token or a time: none of them stays the same when
// a sender repeats itself.
type KeySource struct{ source }

// FromMessageID takes the key from the MessageId.
func FromMessageID() KeySource { return KeySource{} }

// FromProperty takes the key from an application property that is a string.
func FromProperty(name string) KeySource { return KeySource{source{formProperty, name}} }

// FromBody takes the key from the string or whole number at a JSON pointer (RFC 6901) in the body that is handed over.
func FromBody(pointer string) KeySource { return KeySource{source{formBody, pointer}} }

// FromCloudEvents takes the key from the source and the id of a CloudEvent, in binary or structured mode.
func FromCloudEvents() KeySource { return KeySource{source{form: formCloudEvents}} }

// ParseKeySource reads the textual form: "message-id", "property:NAME", "body:/json/pointer" or "cloudevents". The empty text
// is the MessageId.
func ParseKeySource(text string) (KeySource, error) {
	s, err := parseSource("key source", text, formMessageID, formCloudEvents)
	return KeySource{s}, err
}

// String returns the textual form.
func (s KeySource) String() string { return s.text(formMessageID) }

// A PartitionSource says in which logical partition the record and the effects of a message are. The zero value is the
// message's own partition, named by its key. It is a pure function of the message, so that every delivery and every review
// look for the record in the same place.
type PartitionSource struct{ source }

// ParsePartitionSource reads the textual form: "key", "property:NAME", "body:/json/pointer", "session-id" or "partition-key".
// The empty text is the key.
func ParsePartitionSource(text string) (PartitionSource, error) {
	s, err := parseSource("partition source", text, formKey, formSession, formPartitionKey)
	return PartitionSource{s}, err
}

// String returns the textual form.
func (s PartitionSource) String() string { return s.text(formKey) }

// IsKey reports whether every message has a partition of its own.
func (s PartitionSource) IsKey() bool { return s.source == source{} }

// FromBody reports whether the partition is read from the body. A copy of a message with a changed body is then looked for
// elsewhere, so that the reuse of its key is not seen.
func (s PartitionSource) FromBody() bool { return s.form == formBody }

// parseSource reads a source of one of these words, of which the first is the default, or of a form with a name.
func parseSource(setting, text string, words ...string) (source, error) {
	form, name, named := strings.Cut(text, ":")
	switch {
	case text == "" || text == words[0]:
		return source{}, nil
	case named && (form == formProperty || form == formBody):
		s := source{form, name}
		return s, s.validate(setting)
	case slices.Contains(words, text):
		return source{form: text}, nil
	}
	return source{}, fmt.Errorf("%s %q is not %s, property:NAME or body:/json/pointer", setting, text, strings.Join(words, ", "))
}

func (s source) text(byDefault string) string {
	switch {
	case s == source{}:
		return byDefault
	case s.name == "":
		return s.form
	}
	return s.form + ":" + s.name
}

func (s source) validate(setting string) error {
	var err error
	switch {
	case s.form == formProperty && strings.TrimSpace(s.name) == "":
		err = errors.New("needs the name of an application property, such as property:orderId")
	case s.form == formBody && s.name == "":
		err = errors.New("needs a JSON pointer, such as body:/orderId")
	case invisible(s.name):
		err = errInvisible
	case s.form == formBody:
		err = fingerprint.ValidatePointer(s.name)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", setting, s.text(""), err)
	}
	return nil
}

var errInvisible = errors.New("has a line feed or another character that nobody sees, perhaps from the file it was copied from")

// invisible reports whether text has a control character, a line break or another character without a shape, or is not UTF-8.
// A setting with one would match nothing, and nobody could see why.
func invisible(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) })
}
