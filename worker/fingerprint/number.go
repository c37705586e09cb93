package fingerprint

import (
	"bytes"
	"strconv"
)

// maxExponentDigits bounds the exponent of a number to what an int64 can hold with room to spare. A number beyond it cannot
// be compared, nor can any program use it.
const maxExponentDigits = 17

// overflowMagnitude is the count of digits before the point from which a number may be too large for a double: the largest
// double has 309.
const overflowMagnitude = 309

// appendNumber appends the canonical form of a JSON number, and reports false for a number that no double comes near: one
// that is too large, or whose exponent is beyond all use. A number that a double merely rounds is written exactly.
func appendNumber(dst, raw []byte) ([]byte, bool) {
	if plainInteger(raw) {
		return append(dst, raw...), true
	}
	start := len(dst)
	text := raw
	if text[0] == '-' {
		dst, text = append(dst, '-'), text[1:]
	}
	mantissa, exponentText := text, []byte(nil)
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponentText = text[:i], text[i+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	digits := len(dst)
	dst = append(append(dst, whole...), fraction...)
	dst = trimLeadingZeros(dst, digits)
	if len(dst) == digits {
		return append(dst[:start], '0'), true
	}
	exponent, ok := parseExponent(exponentText)
	if !ok {
		return dst[:start], false
	}
	exponent -= int64(len(fraction))
	if magnitude := int64(len(dst)-digits) + exponent; magnitude >= overflowMagnitude {
		if _, err := strconv.ParseFloat(string(raw), 64); magnitude > overflowMagnitude || err != nil {
			return dst[:start], false
		}
	}
	for dst[len(dst)-1] == '0' {
		dst, exponent = dst[:len(dst)-1], exponent+1
	}
	if exponent != 0 {
		dst = strconv.AppendInt(append(dst, 'e'), exponent, 10)
	}
	return dst, true
}

// plainInteger reports whether the number is a short whole one that ends in a digit other than zero: the commonest numbers
// are their own canonical form.
func plainInteger(raw []byte) bool {
	if len(raw) > 19 || raw[len(raw)-1] == '0' {
		return false
	}
	for i, c := range raw {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return true
}

// trimLeadingZeros removes the zeros that dst has from position start on.
func trimLeadingZeros(dst []byte, start int) []byte {
	zeros := 0
	for start+zeros < len(dst) && dst[start+zeros] == '0' {
		zeros++
	}
	if zeros == 0 {
		return dst
	}
	return append(dst[:start], dst[start+zeros:]...)
}

func parseExponent(text []byte) (int64, bool) {
	if len(text) == 0 {
		return 0, true
	}
	negative := text[0] == '-'
	text = bytes.TrimLeft(bytes.TrimLeft(text, "+-"), "0")
	if len(text) > maxExponentDigits {
		return 0, false
	}
	var n int64
	for _, c := range text {
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
