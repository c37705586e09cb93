package fingerprint

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// appendString appends to the output the canonical form of a JSON string, given as a valid one with its quotes. One without a
// backslash is canonical as it is, since JSON lets no character stand bare that must be escaped.
func (c *canonicaliser) appendString(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(c.out, raw...)
	}
	c.text = appendUnquoted(c.text[:0], raw)
	return appendQuoted(c.out, c.text)
}

// appendUnquoted appends the value of a valid JSON string.
func appendUnquoted(dst, raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw[1:len(raw)-1]...)
	}
	// The tokeniser has accepted the string, so there is no error to come.
	dst, _ = jsontext.AppendUnquote(dst, raw)
	return dst
}

// appendQuoted appends text as a JSON string with the fewest escapes. Its result is part of parameters version 1 and never
// changes.
func appendQuoted(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(dst, '"')
}
