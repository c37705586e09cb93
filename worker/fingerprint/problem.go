package fingerprint

import "fmt"

// A ProblemKind says what is wrong with a body.
type ProblemKind int

// The kinds of problems.
const (
	// NotJSON: the body is not one JSON value (RFC 8259).
	NotJSON ProblemKind = iota + 1
	// InvalidUTF8: the body is not UTF-8, or an escape names half a surrogate pair, which no UTF-8 text can hold.
	InvalidUTF8
	// DuplicateName: an object names one member twice.
	DuplicateName
	// TooDeep: objects and arrays are nested deeper than the limit.
	TooDeep
	// TooLarge: the body has more bytes than the limit.
	TooLarge
	// NumberOutOfRange: a number is too large for a double, or its exponent for any number.
	NumberOutOfRange
	// NothingSelected: the parameters leave nothing of this body to compare.
	NothingSelected
)

// A Problem is the error for a body that has no fingerprint. Trying again gives the same answer.
type Problem struct {
	Kind ProblemKind
	// Offset is the position in bytes, and -1 when the problem has none.
	Offset int64
	// Path is the JSON pointer of the value, cut to [MaxPath] bytes; empty for the whole body.
	Path string
	// Limit is the bound that was passed, for TooDeep and TooLarge.
	Limit int
	// Cause tells more, and holds no value of the body.
	Cause string
}

// Error describes the problem by position, path and bound.
func (p *Problem) Error() string {
	text := "fingerprint: " + p.Cause
	if p.Path != "" {
		text += fmt.Sprintf(" at %+q", p.Path)
	}
	if p.Offset >= 0 {
		text += fmt.Sprintf(", byte %d", p.Offset)
	}
	return text
}

// MaxPath bounds the length in bytes of the paths that this package reports, without the mark of a cut.
const MaxPath = 200

// cutPath bounds a path at a character, since names of members may be of any length.
func cutPath(path string) string {
	if len(path) <= MaxPath {
		return path
	}
	end := MaxPath
	for end > 0 && path[end]&0xC0 == 0x80 {
		end--
	}
	return path[:end] + "…"
}
