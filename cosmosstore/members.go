package cosmosstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// document is a stored document by its members, as they are written. A struct would take Id and REQUEST for members of its own.
type document map[string]json.RawMessage

// membersOf reads the members of one JSON object, or returns nil when the text is none. Of members with one name the last
// counts. The values are parts of the text. It costs half of what encoding/json takes for the same.
func membersOf(text []byte) document {
	d := document{}
	t := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if begin, err := t.ReadToken(); err != nil || begin.Kind() != '{' {
		return nil
	}
	for t.PeekKind() != '}' {
		name, err := t.ReadToken()
		if err != nil {
			return nil
		}
		member := name.String() // before the next read, which ends the token
		value, err := t.ReadValue()
		if err != nil {
			return nil
		}
		end := t.InputOffset()
		d[member] = text[end-int64(len(value)) : end : end]
	}
	_, end := t.ReadToken()
	_, rest := t.ReadToken()
	if end != nil || !errors.Is(rest, io.EOF) {
		return nil
	}
	return d
}

// encode writes the members in the order of their names, each value as it is: encoding/json would escape and so lengthen it.
func (d document) encode() []byte {
	size := 2
	for name, value := range d {
		size += len(name) + len(value) + len(`"":,`)
	}
	text := make([]byte, 0, size)
	for _, name := range slices.Sorted(maps.Keys(d)) {
		text = append(append(append(append(text, ','), quote(name)...), ':'), d[name]...)
	}
	if len(text) == 0 {
		return []byte("{}")
	}
	text[0] = '{' // in place of the first comma
	return append(text, '}')
}
