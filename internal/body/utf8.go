package body

import (
	"bytes"
	"unicode/utf8"

	"github.com/orderworker/orderworker/worker/reason"
)

// checkText requires UTF-8, and names what the bytes look like when they are something else.
// Text that was compressed and begins like gzip was compressed twice.
func checkText(text []byte, gunzipped bool) *reason.Refusal {
	if encoding := wide(text); encoding != "" {
		return reason.Refuse(reason.InvalidUTF8, "The body is %s, not UTF-8 (offset 0). The sender must encode its text as UTF-8.", encoding)
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
	case bytes.HasPrefix(text, []byte("\x78\x01")), bytes.HasPrefix(text, []byte("\x78\x9c")), bytes.HasPrefix(text, []byte("\x78\xda")):
		hint = "It begins like zlib: the sender must compress with gzip or not at all, and set the application property Content-Encoding"
	case bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd")):
		hint = "It begins like zstd: the sender must compress with gzip or not at all, and set the application property Content-Encoding"
	case bytes.HasPrefix(text, []byte("\xac\xed\x00\x05")):
		hint = "It begins like a serialised Java object: the sender must send JSON text"
	}
	return reason.Refuse(reason.InvalidUTF8, "The body is not UTF-8 text (offset %d of %d). %s.", offset, len(text), hint)
}

// gzipMagic is what every gzip member begins with.
var gzipMagic = []byte("\x1f\x8b")

// wide names the encoding, UTF-16 or UTF-32, when the text carries its mark or begins with an ASCII character that is filled
// up with zeros. Such a beginning is valid UTF-8, but no text: it holds a NUL.
func wide(text []byte) string {
	for _, encoding := range []struct{ mark, name string }{
		{"\xff\xfe\x00\x00", "UTF-32 (little endian, with a byte order mark)"},
		{"\x00\x00\xfe\xff", "UTF-32 (big endian, with a byte order mark)"},
		{"\xff\xfe", "UTF-16 (little endian, with a byte order mark)"},
		{"\xfe\xff", "UTF-16 (big endian, with a byte order mark)"},
	} {
		if bytes.HasPrefix(text, []byte(encoding.mark)) {
			return encoding.name
		}
	}
	zeros := func(part []byte) bool { return len(bytes.Trim(part, "\x00")) == 0 }
	switch n := len(text); {
	case n >= 4 && ascii(text[0]) && zeros(text[1:4]):
		return "UTF-32 (little endian, without a byte order mark)"
	case n >= 4 && zeros(text[:3]) && ascii(text[3]):
		return "UTF-32 (big endian, without a byte order mark)"
	case n >= 2 && ascii(text[0]) && text[1] == 0:
		return "UTF-16 (little endian, without a byte order mark)"
	case n >= 2 && text[0] == 0 && ascii(text[1]):
		return "UTF-16 (big endian, without a byte order mark)"
	}
	return ""
}

// ascii reports whether text may begin with the character. Binary formats begin with others.
func ascii(c byte) bool { return ' ' <= c && c < 0x7F || c == '\t' || c == '\r' || c == '\n' }

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
