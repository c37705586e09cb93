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
	p := &Problem{Kind: NotJSON, Offset: c.dec.InputOffset(), Cause: "it ends too early"}
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
	case bytes.HasPrefix(rest, []byte("NaN")), bytes.HasPrefix(rest, []byte("Inf")), bytes.HasPrefix(rest, []byte("-Inf")):
		return NotJSON, "NaN or Infinity, which JSON does not have"
	case bytes.HasPrefix(rest, []byte("<")):
		return NotJSON, "it looks like XML or HTML"
	case bytes.HasPrefix(rest, []byte("'")):
		return NotJSON, "a single quote, where JSON takes double quotes"
	case bytes.HasPrefix(rest, []byte("\xef\xbb\xbf")):
		return NotJSON, "a byte order mark within the text"
	case len(rest) > 0 && rest[0] < ' ':
		return NotJSON, "a control character that is not escaped"
	}
	return NotJSON, "no JSON from here on"
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
