package fingerprint

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// An Exact is a number of a body that a double would round, in its original text.
type Exact struct {
	// Path is a JSON pointer.
	Path string `json:"path"`
	// Text is the number as the sender wrote it.
	Text string `json:"text"`
}

// Inexact returns the numbers that would not come back as they were sent from a store that keeps numbers as doubles, such
// as 12345678901234567890, in the order of the body. Numbers such as 0.1, which come back by value, are not among them. The
// error is a [*Problem].
func Inexact(body []byte) ([]Exact, error) {
	var found []Exact
	err := eachNumber(body, func(dec *jsontext.Decoder, raw []byte) {
		if !survivesDouble(raw) {
			found = append(found, Exact{Path: string(dec.StackPointer()), Text: string(raw)})
		}
	})
	return found, err
}

// Restore puts the original texts back into a body that a store has returned with rounded numbers. A number that is no
// longer the rounded form of its original, because the document was changed, stays as it is. The error is a [*Problem].
func Restore(body []byte, exact []Exact) ([]byte, error) {
	if len(exact) == 0 {
		return body, nil
	}
	originals := make(map[string]string, len(exact))
	for _, e := range exact {
		originals[e.Path] = e.Text
	}
	var out []byte
	copied := 0
	err := eachNumber(body, func(dec *jsontext.Decoder, raw []byte) {
		original, ok := originals[string(dec.StackPointer())]
		if !ok || !sameDouble(original, string(raw)) {
			return
		}
		end := int(dec.InputOffset())
		out = append(append(out, body[copied:end-len(raw)]...), original...)
		copied = end
	})
	return append(out, body[copied:]...), err
}

func eachNumber(body []byte, visit func(dec *jsontext.Decoder, raw []byte)) error {
	c := newReader(body)
	for {
		var err error
		if c.dec.PeekKind() == jsontext.KindNumber {
			var raw jsontext.Value
			if raw, err = c.dec.ReadValue(); err == nil {
				visit(c.dec, raw)
			}
		} else {
			_, err = c.dec.ReadToken()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.problem(err)
		}
	}
}

// newReader returns a canonicaliser that only reads.
func newReader(body []byte) *canonicaliser {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	return &canonicaliser{body: body, dec: dec, maxDepth: deepest}
}

// survivesDouble reports whether the shortest decimal that names the nearest double has the same value as the number.
func survivesDouble(raw []byte) bool {
	if len(raw) <= 15 && !bytes.ContainsAny(raw, "eE") {
		return true // At most 15 digits survive, and without an exponent none is near the ends of the range.
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return false
	}
	original, ok := appendNumber(nil, raw)
	back, _ := appendNumber(nil, strconv.AppendFloat(nil, f, 'e', -1, 64))
	return ok && bytes.Equal(original, back)
}

func sameDouble(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}
