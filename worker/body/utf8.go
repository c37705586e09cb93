package body

import (
	"bytes"
	"unicode/utf8"

	"github.com/orderworker/orderworker/worker/reason"
)

// checkText requires UTF-8, and names what the bytes look like when they are something else.
// Text that was compressed and begins like gzip was compressed twice.
func checkText(text []byte, gunzipped bool) *reason.Refusal {
	if order := utf16(text); order != "" {
		return reason.Refuse(reason.InvalidUTF8, "The body is UTF-16 (%s), not UTF-8 (offset 0). The sender must encode its text as UTF-8.", order)
	}
	offset := invalidOffset(text)
	if offset < 0 {
		return nil
	}
	hint := "The sender must encode its text as UTF-8"
	switch {
	case gunzipped && bytes.HasPrefix(text, gzipMagic):
		hint = "It is gzip within gzip: the sender must compress it once"
	case bytes.HasPrefix(text, gzipMagic):
		hint = "It begins like gzip: the sender must set the application property Content-Encoding to gzip"
	case bytes.HasPrefix(text, []byte("\xac\xed\x00\x05")):
		hint = "It begins like a serialised Java object: the sender must send JSON text"
	}
	return reason.Refuse(reason.InvalidUTF8, "The body is not UTF-8 text (offset %d of %d). %s.", offset, len(text), hint)
}

// gzipMagic is what every gzip member begins with.
var gzipMagic = []byte("\x1f\x8b")

// utf16 returns the byte order when the text carries the UTF-16 mark, or begins with an ASCII character in two bytes. Such
// a beginning is valid UTF-8, but no text: it holds a NUL.
func utf16(text []byte) string {
	if len(text) < 2 {
		return ""
	}
	switch a, b := text[0], text[1]; {
	case a == 0xFF && b == 0xFE:
		return "little endian, with a byte order mark"
	case a == 0xFE && b == 0xFF:
		return "big endian, with a byte order mark"
	case a != 0 && a < 0x80 && b == 0:
		return "little endian, without a byte order mark"
	case a == 0 && b != 0 && b < 0x80:
		return "big endian, without a byte order mark"
	}
	return ""
}

// invalidOffset returns the offset of the first byte that is not UTF-8, and -1 for valid text.
func invalidOffset(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for offset := 0; offset < len(text); {
		r, size := utf8.DecodeRune(text[offset:])
		if r == utf8.RuneError && size == 1 {
			return offset
		}
		offset += size
	}
	return -1
}
