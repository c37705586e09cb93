package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
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
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
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

func parseValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("jsondoc: %w", err)
	}
	switch t := t.(type) {
	case json.Delim:
		if depth == MaxDepth {
			return nil, ErrTooDeep
		}
		if t == '{' {
			return parseMembers(d, depth+1)
		}
		return parseElements(d, depth+1)
	case json.Number:
		return parseNumber(t)
	default:
		return t, nil
	}
}

func parseNumber(n json.Number) (any, error) {
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return nil, fmt.Errorf("jsondoc: the number %s is outside the range of a double", n)
	}
	return f, nil
}

func parseMembers(d *json.Decoder, depth int) (any, error) {
	o := NewObject()
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("jsondoc: %w", err)
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("jsondoc: a member name is not a string")
		}
		v, err := parseValue(d, depth)
		if err != nil {
			return nil, err
		}
		o.Set(name, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("jsondoc: %w", err)
	}
	return o, nil
}

func parseElements(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := parseValue(d, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("jsondoc: %w", err)
	}
	return list, nil
}
