package fingerprint

import (
	"bytes"
	"fmt"
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

// MaxExactBytes bounds the paths and texts of all numbers that [Inexact] returns. They are kept beside the content, in one
// document of at most 2 MiB, so more than these could never be stored. A long name above a list of numbers makes many of few bytes.
const MaxExactBytes = 2 << 20

// Inexact checks a body like [Check], and returns the numbers that would not come back as they were sent from a store that
// keeps numbers as doubles, such as 12345678901234567890, in the order of the body. Numbers such as 0.1, which come back by
// value, are not among them. The error is a [*Problem]: also of the kind [TooLarge], with the bytes that were needed, when
// their paths and texts have more than [MaxExactBytes]. Work grows with the size of the body, and memory with that and
// MaxExactBytes.
func Inexact(body []byte, limits Limits) ([]Exact, error) {
	var found []Exact
	size := 0
	c := newCanonicaliser(body, limits, true)
	c.visit = func(_ *selection, number []byte) {
		if survivesDouble(number) {
			return
		}
		if size += len(c.path) + len(number); size <= MaxExactBytes {
			found = append(found, Exact{Path: string(c.path), Text: string(number)})
		}
	}
	if err := c.check(limits, nil); err != nil {
		return nil, err
	}
	if size > MaxExactBytes {
		return nil, &Problem{Kind: TooLarge, Offset: -1, Limit: MaxExactBytes, Cause: fmt.Sprintf("numbers that a double cannot hold are kept "+
			"as text with their path beside the document; here that takes %d bytes, and at most %d can be kept", size, MaxExactBytes)}
	}
	return found, nil
}

// Restore puts the original texts back into a body that a store has returned with rounded numbers. A number that is no
// longer the rounded form of its original, because the document was changed, stays as it is. The error is a [*Problem].
// Work and memory grow with the size of the body and of the list.
func Restore(body []byte, exact []Exact) ([]byte, error) {
	if len(exact) == 0 {
		return body, nil
	}
	var out []byte
	copied := 0
	c := newCanonicaliser(body, Limits{}, true)
	c.repeats = true
	c.visit = func(at *selection, number []byte) {
		if at == nil || !roundsTo(at.original, number) {
			return
		}
		end := int(c.dec.InputOffset())
		out = append(append(out, body[copied:end-len(number)]...), at.original...)
		copied = end
	}
	err := c.run(originals(exact))
	return append(out, body[copied:]...), err
}

// originals is the tree of the numbers' pointers. A text that is no pointer names no value.
func originals(exact []Exact) *selection {
	root := &selection{}
	for _, e := range exact {
		if at, err := root.at(e.Path); err == nil && at.original == "" {
			at.original = e.Text
		}
	}
	return root
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

// roundsTo reports whether an original is a JSON number with the same double as a number of the body.
func roundsTo(original string, raw []byte) bool {
	x, errX := strconv.ParseFloat(original, 64)
	y, errY := strconv.ParseFloat(string(raw), 64)
	return errX == nil && errY == nil && x == y && jsontext.Value(original).IsValid()
}
