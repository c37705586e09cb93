package fingerprint

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
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
	c, err := check(body, limits)
	if err != nil || !c.rounds {
		return nil, err
	}
	var found []Exact
	size := 0
	err = walk(body, nil, func(w *walker, raw []byte) {
		if survivesDouble(raw) {
			return
		}
		if size += len(w.path) + len(raw); size <= MaxExactBytes {
			found = append(found, Exact{Path: string(w.path), Text: string(raw)})
		}
	})
	if err == nil && size > MaxExactBytes {
		return nil, &Problem{Kind: TooLarge, Offset: -1, Limit: MaxExactBytes, Cause: fmt.Sprintf("numbers that a double cannot hold are kept "+
			"as text with their path beside the document; here that takes %d bytes, and at most %d can be kept", size, MaxExactBytes)}
	}
	return found, err
}

// Restore puts the original texts back into a body that a store has returned with rounded numbers. A number that is no
// longer the rounded form of its original, because the document was changed, stays as it is. The error is a [*Problem].
// Work and memory grow with the size of the body and of the list.
func Restore(body []byte, exact []Exact) ([]byte, error) {
	if len(exact) == 0 {
		return body, nil
	}
	list := slices.Clone(exact)
	slices.SortStableFunc(list, func(a, b Exact) int { return comparePointers(a.Path, b.Path) })
	var out []byte
	copied := 0
	err := walk(body, list, func(w *walker, raw []byte) {
		if len(w.at) == 0 || len(w.at[0].Path) != len(w.path) || !roundsTo(w.at[0].Text, raw) {
			return
		}
		end := int(w.reader.dec.InputOffset())
		out = append(append(out, body[copied:end-len(raw)]...), w.at[0].Text...)
		copied = end
	})
	return append(out, body[copied:]...), err
}

// narrow returns those of a sorted list whose path goes on with a step, a slash and a token, from position base on. All of
// the list have the same path up to there. It compares no more than the step, so a long path costs nothing here.
func narrow(list []Exact, base int, step []byte) []Exact {
	if len(list) == 0 {
		return nil
	}
	from := sort.Search(len(list), func(i int) bool { return comparePointers(list[i].Path[base:], step) >= 0 })
	count := sort.Search(len(list)-from, func(i int) bool {
		rest := list[from+i].Path[base:]
		return len(rest) < len(step) || rest[:len(step)] != string(step) || len(rest) > len(step) && rest[len(step)] != '/'
	})
	return list[from : from+count]
}

// comparePointers orders JSON pointers so that whatever lies below one follows it at once: a slash comes before all bytes.
func comparePointers[T string | []byte](a string, b T) int {
	for i := range min(len(a), len(b)) {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		default:
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
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

// roundsTo reports whether an original is a JSON number with the same double as a number of the body.
func roundsTo(original string, raw []byte) bool {
	x, errX := strconv.ParseFloat(original, 64)
	y, errY := strconv.ParseFloat(string(raw), 64)
	return errX == nil && errY == nil && x == y && jsontext.Value(original).IsValid()
}
