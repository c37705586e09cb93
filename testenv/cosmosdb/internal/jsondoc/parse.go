package jsondoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep the service lets objects and arrays be nested, the document itself counted as one.
const MaxDepth = 128

// ErrTooDeep is returned for a text that is nested more than [MaxDepth] levels.
var ErrTooDeep = errors.New("jsondoc: nested more than 128 levels")

// Parse reads one JSON value. Of members with the same name the last one counts, as in the service. A number that no
// double can hold is refused; one that a double cannot hold exactly is rounded.
func Parse(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("jsondoc: the text is not UTF-8")
	}
	// Half of a surrogate pair, escaped, is read as U+FFFD.
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("jsondoc: something follows the value")
	}
	return v, nil
}

// ParseObject reads a text that is one JSON object.
func ParseObject(text []byte) (*Object, error) {
	v, err := Parse(text)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, errors.New("jsondoc: the value is not an object")
	}
	return o, nil
}

func parseValue(d *jsontext.Decoder, depth int) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, fmt.Errorf("jsondoc: %w", err)
	}
	switch t.Kind() {
	case jsontext.KindBeginObject:
		return parseMembers(d, depth+1)
	case jsontext.KindBeginArray:
		return parseElements(d, depth+1)
	case jsontext.KindString:
		return t.String(), nil
	case jsontext.KindNumber:
		return parseNumber(t.String())
	case jsontext.KindNull:
		return nil, nil
	default:
		return t.Bool(), nil
	}
}

func parseNumber(text string) (any, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("jsondoc: the number %s is outside the range of a double", text)
	}
	return f, nil
}

func parseMembers(d *jsontext.Decoder, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	o := NewObject()
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("jsondoc: %w", err)
		}
		key := name.String() // the token is gone with the next one
		v, err := parseValue(d, depth)
		if err != nil {
			return nil, err
		}
		o.Set(key, v)
	}
	_, err := d.ReadToken()
	return o, err
}

func parseElements(d *jsontext.Decoder, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	list := []any{}
	for d.PeekKind() != jsontext.KindEndArray {
		v, err := parseValue(d, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.ReadToken()
	return list, err
}
