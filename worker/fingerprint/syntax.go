package fingerprint

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// problem says what an error of the tokeniser means. It is the only place that looks into one.
func (c *canonicaliser) problem(err error) error {
	if err == nil {
		return nil
	}
	p := &Problem{Kind: NotJSON, Offset: c.dec.InputOffset(), Cause: "the body ends before its JSON value does"}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		p.Offset, p.Path = syntax.ByteOffset, cutPath(string(syntax.JSONPointer))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			p.Kind, p.Cause = c.explain(p.Offset)
		}
	}
	return p
}

// explain tells the usual causes of bad JSON by the bytes at which it ends.
func (c *canonicaliser) explain(offset int64) (ProblemKind, string) {
	rest := c.body[min(max(offset, 0), int64(len(c.body))):]
	switch {
	case loneSurrogate(rest):
		return InvalidUTF8, `an escape \ud800 to \udfff without its other half`
	case bytes.HasPrefix(rest, []byte("NaN")), bytes.HasPrefix(rest, []byte("Infinity")), bytes.HasPrefix(rest, []byte("-Infinity")),
		bytes.HasPrefix(rest, []byte("Inf")):
		return NotJSON, "NaN and Infinity are not JSON; the sender must write a number, null or a string"
	case bytes.HasPrefix(rest, []byte("<")):
		return NotJSON, "not JSON; it looks like XML or HTML"
	case bytes.HasPrefix(rest, []byte("'")):
		return NotJSON, "not JSON: strings and names take double quotes"
	case bytes.HasPrefix(rest, []byte("\xef\xbb\xbf")):
		return NotJSON, "not JSON: a byte order mark where a value should be"
	case len(rest) > 0 && rest[0] < ' ':
		return NotJSON, "not JSON: a control character that must be escaped"
	}
	return NotJSON, "not JSON from here on"
}

// loneSurrogate reports whether text begins with an escaped surrogate. The tokeniser stops only at one without its half.
func loneSurrogate(text []byte) bool {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' || (text[2] != 'd' && text[2] != 'D') {
		return false
	}
	for i, c := range text[3:6] {
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if !hex || i == 0 && c < '8' {
			return false
		}
	}
	return true
}
