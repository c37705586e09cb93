package messagejson

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// lossless refuses a line of which the decoder would silently drop or replace something: a name that stands twice, of which
// the last would count, and text that UTF-8 cannot hold, which would become U+FFFD. A body that is JSON of its own is taken
// by its bytes, so it may hold both. The text is a JSON object.
func lossless(text []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%s stands twice", name)
		}
		seen[name] = true
		if name == "body" && value.Kind() != '"' {
			continue
		}
		if err := whole(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// whole reports what a value holds that would be lost.
func whole(value jsontext.Value) error {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	_, err := dec.ReadValue()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("an object has one name twice")
	}
	return errors.New("a text has bytes or half a surrogate pair that UTF-8 cannot hold; give it in a form in base64")
}
