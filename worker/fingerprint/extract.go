package fingerprint

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Extract returns the text of the value at a JSON pointer exactly as the body has it, and false when the body has no such
// value or is not JSON up to it. It does not check the rest of the body: see [Check]. The result shares the body's memory.
func Extract(body []byte, pointer string) ([]byte, bool) {
	tokens, err := parsePointer(pointer)
	if err != nil {
		return nil, false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	for _, token := range tokens {
		switch dec.PeekKind() {
		case jsontext.KindBeginObject:
			if !seekMember(dec, token) {
				return nil, false
			}
		case jsontext.KindBeginArray:
			if !seekElement(dec, token) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return nil, false
	}
	end := dec.InputOffset()
	return body[end-int64(len(raw)) : end], true
}

// seekMember reads up to the value of a member of the object that comes next.
func seekMember(dec *jsontext.Decoder, name string) bool {
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() == jsontext.KindString {
		read, err := dec.ReadToken()
		if err != nil {
			return false
		}
		if read.String() == name {
			return true
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
	return false
}

// seekElement reads up to an element of the array that comes next.
func seekElement(dec *jsontext.Decoder, token string) bool {
	index, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(index) != token || index < 0 {
		return false
	}
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for range index {
		if dec.PeekKind() == jsontext.KindEndArray || dec.SkipValue() != nil {
			return false
		}
	}
	return dec.PeekKind() != jsontext.KindEndArray
}

// jsonSpace is what JSON takes for blanks, and no more.
const jsonSpace = " \t\r\n"

// Unquote returns the value of a JSON string, and false when the text is not one JSON string that UTF-8 can hold.
func Unquote(text []byte) ([]byte, bool) {
	text = bytes.Trim(text, jsonSpace)
	if len(text) < 2 || text[0] != '"' || Check(text, Limits{}) != nil {
		return nil, false
	}
	return appendUnquoted(nil, text), true
}

// WholeNumber returns a JSON number in plain decimal digits, so that 42, 42.0 and 4.2e1 are one text, and false when the
// text is not one whole number within the range of a double.
func WholeNumber(text []byte) (string, bool) {
	text = bytes.Trim(text, jsonSpace)
	if len(text) == 0 || (text[0] != '-' && (text[0] < '0' || text[0] > '9')) || Check(text, Limits{}) != nil {
		return "", false
	}
	number, ok := appendNumber(nil, text)
	digits, exponent, scaled := bytes.Cut(number, []byte{'e'})
	if !ok || !scaled {
		return string(digits), ok
	}
	zeros, err := strconv.Atoi(string(exponent))
	if err != nil || zeros < 0 {
		return "", false
	}
	return string(digits) + strings.Repeat("0", zeros), true
}
