package fingerprint

import (
	"bytes"
	"encoding/base64"
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
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")):
		return NotJSON, "a comment, which JSON does not have"
	case len(rest) > 0 && rest[0] < ' ':
		return NotJSON, "a control character that is not escaped"
	}
	return NotJSON, guess(c.body[:len(c.body)-len(rest)], rest)
}

// guess tells the causes that show by more than the next bytes.
func guess(before, rest []byte) string {
	before = bytes.TrimRight(before, " \t\r\n")
	switch {
	case len(rest) == 0:
	case len(before) == 0 && wrappedBase64(rest):
		return "it looks like JSON or gzip in base64"
	case trailingComma(rest):
		return "a comma before the end of an object or array"
	case letter(rest[0]) && (len(before) == 0 || bytes.IndexByte([]byte("{[:,"), before[len(before)-1]) >= 0):
		return "a word without quotes, of which JSON has only true, false and null"
	}
	return "no JSON from here on"
}

// follows says what follows a complete value. The rest has no blanks before it.
func follows(rest []byte) string {
	switch {
	case bytes.HasPrefix(rest, []byte("{")), bytes.HasPrefix(rest, []byte("[")):
		return "another value follows the first, and each needs a message of its own"
	case len(bytes.Trim(rest, "\x00")) == 0:
		return "NUL characters follow the value"
	}
	return "something follows the value"
}

// wrappedBase64 reports whether text begins like JSON or gzip in base64.
func wrappedBase64(text []byte) bool {
	var head [3]byte
	if len(text) < 4 {
		return false
	}
	if _, err := base64.StdEncoding.Decode(head[:], text[:4]); err != nil {
		return false
	}
	opens := (head[0] == '{' || head[0] == '[') && bytes.IndexByte([]byte("\"{[]} \t\r\n"), head[1]) >= 0
	return opens || bytes.HasPrefix(head[:], []byte("\x1f\x8b"))
}

// trailingComma reports whether text begins with a comma that nothing but the end of its object or array follows.
func trailingComma(text []byte) bool {
	after, comma := bytes.CutPrefix(text, []byte(","))
	after = bytes.TrimLeft(after, " \t\r\n")
	return comma && len(after) > 0 && (after[0] == '}' || after[0] == ']')
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

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
