package messagejson

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Members returns the names that a line can have, in the order in which they are written.
func Members() []string {
	t := reflect.TypeFor[line]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// An UnknownMemberError is returned by [Decode] for a line with a member that is none of [Members].
type UnknownMemberError struct{ Name string }

func (e *UnknownMemberError) Error() string { return fmt.Sprintf("there is no member %q", e.Name) }

// explain says in the words of a line what the JSON decoder found.
func explain(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return fmt.Errorf("not a message line: a line is one object, and this is %s", article(e.Value))
		}
		member, _, _ := strings.Cut(e.Field, ".")
		text := fmt.Sprintf("%s must be %s, and is %s", member, wanted(member), article(e.Value))
		if member == "message_id" {
			text += "; for an id that is no text use message_id_amqp, such as {\"ulong\":42}"
		}
		return errors.New(text)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		if strings.HasPrefix(e.Error(), "unexpected end") {
			return errors.New("not a message line: it ends too early. A message stands on one line")
		}
		return fmt.Errorf("not a message line: it is no JSON from byte %d on. A message is one object on one line", e.Offset)
	}
	return fmt.Errorf("not a message line: %w", err)
}

// wanted is the type of a member in words.
func wanted(member string) string {
	switch member {
	case "durable", "first_acquirer":
		return "true or false"
	case "priority":
		return "a whole number from 0 to 255"
	case "group_sequence":
		return "a whole number from 0 to 4294967295"
	case "data_sections", "data_sections_b64":
		return "an array of strings"
	case "amqp_sequence":
		return "an array of arrays"
	case "application_properties":
		return "an object"
	}
	return "a string"
}

func article(kind string) string {
	if strings.IndexAny(kind, "aeiou") == 0 {
		return "an " + kind
	}
	return "a " + kind
}

func decodeBase64(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not base64", shortened(text))
	}
	return b, nil
}

func decodeHex(text string) ([]byte, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not hexadecimal, two digits for each byte", shortened(text))
	}
	return b, nil
}

func decodeTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%q is not a time such as 2026-11-30T08:15:00Z", shortened(text))
	}
	return t, nil
}

// shortened keeps a fault readable, and a long value out of it.
func shortened(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
