package identity

import (
	"strconv"
	"strings"
)

// A Kind is the type of a key's value, so that the AMQP number 42 never meets the text "42".
type Kind string

// The kinds of keys.
const (
	String     Kind = "string"     // text: the normal case
	Ulong      Kind = "ulong"      // an AMQP unsigned long, in decimal
	UUID       Kind = "uuid"       // an AMQP uuid, in the usual form of five groups in lower case
	Binary     Kind = "binary"     // AMQP binary, in lower-case hexadecimal
	Number     Kind = "number"     // a whole number of a JSON body, in decimal
	CloudEvent Kind = "cloudevent" // the id of a CloudEvent, with its source
)

// A Key identifies a message for one consumer. Keys are compared with ==.
type Key struct {
	// Consumer tells apart consumers that share one container. Usually empty.
	Consumer string
	Kind     Kind
	// Value is the id exactly as the sender gave it, or the standard text of a typed id.
	Value string
	// Source is the source of a CloudEvent, and empty for every other kind.
	Source string
}

// Text returns the key of a text id.
func Text(value string) Key { return Key{Kind: String, Value: value} }

// String returns the key as a person should see it: an ordinary id as it is, and everything that the eye could mistake in
// quotes and escaped, such as "12345 " or ulong(42). It is ASCII, no two keys have the same text, and it is what is stored in
// the document to be compared.
func (k Key) String() string {
	text := k.bare()
	if k.Consumer != "" {
		return text + " for " + quoteUnlessPlain(k.Consumer)
	}
	return text
}

// bare is the text without the consumer: kind(value) or kind(source value), and for the normal case the value alone.
func (k Key) bare() string {
	switch {
	case k.Kind == String && k.Source == "":
		return quoteUnlessPlain(k.Value)
	case k.Kind != CloudEvent && k.Source == "":
		return quoteUnlessPlain(string(k.Kind)) + "(" + quoteUnlessPlain(k.Value) + ")"
	}
	return quoteUnlessPlain(string(k.Kind)) + "(" + quoteUnlessPlain(k.Source) + " " + quoteUnlessPlain(k.Value) + ")"
}

// quoteUnlessPlain leaves text alone when it is visible ASCII without quotes, parentheses and backslashes, so that the
// forms of [Key.String] cannot be imitated by a value.
func quoteUnlessPlain(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'`\\()", r)
	})
	if plain {
		return s
	}
	return strconv.QuoteToASCII(s)
}
