package messagejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/go-json-experiment/json/jsontext"
)

type message = azservicebus.AMQPAnnotatedMessage

const defaultPriority = 4

// complete returns a message with a header and properties, which it makes where there are none.
func complete(m message) *message {
	if m.Header == nil {
		m.Header = &azservicebus.AMQPAnnotatedMessageHeader{Priority: defaultPriority}
	}
	if m.Properties == nil {
		m.Properties = &azservicebus.AMQPAnnotatedMessageProperties{}
	}
	return &m
}

// Members returns the names that a line can have, in the order in which they are written.
func Members() []string {
	var names []string
	for _, m := range members(complete(message{})) {
		names = append(names, m.name)
	}
	return names
}

// Encode writes a message as one line without its newline. What the broker adds at each delivery (the lock token, the
// delivery tag, the delivery count) is left out.
func Encode(m *azservicebus.AMQPAnnotatedMessage) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, member := range members(complete(*m)) {
		value, err := member.write()
		if err == nil && value != nil {
			fmt.Fprintf(&out, ",%q:", member.name)
			err = enc.Encode(value)
			out.Truncate(out.Len() - len("\n"))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member.name, err)
		}
	}
	return slices.Concat([]byte("{"), bytes.TrimPrefix(out.Bytes(), []byte(",")), []byte("}")), nil
}

// Decode reads one line. Its error names the member that is wrong.
func Decode(text []byte) (*azservicebus.AMQPAnnotatedMessage, error) {
	values, err := split(text)
	if err != nil {
		return nil, err
	}
	m := complete(message{})
	for _, member := range members(m) {
		raw, given := values[member.name]
		delete(values, member.name)
		// A body that is null is that text; any other member that is null says nothing.
		if !given || raw.Kind() == 'n' && member.name != "body" {
			continue
		}
		if err := member.read(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", member.name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		return nil, fmt.Errorf("there is no member %q. The members are %s", name, strings.Join(Members(), ", "))
	}
	if *m.Header == *complete(message{}).Header {
		m.Header = nil
	}
	return m, nil
}

// split returns the values of a line by their exact names. It refuses what a decoder would silently drop or replace: a name
// that is given twice, of which the last would count, and text that UTF-8 cannot hold, which would become U+FFFD. A body that
// is JSON of its own is taken by its bytes, so it may hold both.
func split(text []byte) (map[string]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if kind := dec.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return nil, fmt.Errorf("not a message line: a line is one object, and this is %s", kindName(kind))
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, notJSON(err)
	}
	values := map[string]jsontext.Value{}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, notJSON(err)
		}
		name := token.String()
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, notJSON(err)
		}
		if _, again := values[name]; again {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		values[name] = raw.Clone()
		if name == "body" && raw.Kind() != '"' {
			continue
		}
		if err := lossless(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, notJSON(err)
	}
	if dec.PeekKind() != jsontext.KindInvalid || dec.InputOffset() < int64(len(bytes.TrimRight(text, " \t\r\n"))) {
		return nil, errors.New("not a message line: something follows the object. A message stands on a line of its own")
	}
	return values, nil
}

// lossless reports what a value holds that would be lost.
func lossless(value jsontext.Value) error {
	_, err := jsontext.NewDecoder(bytes.NewReader(value)).ReadValue()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("an object has one name twice")
	}
	return errors.New("a text has bytes or half a surrogate pair that UTF-8 cannot hold; give it in a form in base64")
}

// notJSON says in the words of a line what the tokeniser found.
func notJSON(err error) error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not a message line: it ends too early. A message stands on one line")
	}
	return fmt.Errorf("not a message line: it is no JSON from byte %d on. A message is one object on one line", syntax.ByteOffset+1)
}
