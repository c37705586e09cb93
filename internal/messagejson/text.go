package messagejson

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// readText reads a string.
func readText(raw jsontext.Value) (text string, err error) {
	err = into(&text, aString)(raw)
	return text, err
}

// base64Into reads a string in base64.
func base64Into(at *[]byte) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		text, err := readText(raw)
		if err == nil {
			*at, err = decodeBase64(text)
		}
		return err
	}
}

func decodeBase64(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not base64", shortened(text))
	}
	return b, nil
}

func decodeHex(text string) ([]byte, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not hexadecimal, two digits for each byte", shortened(text))
	}
	return b, nil
}

func readTime(raw jsontext.Value) (time.Time, error) {
	text, err := readText(raw)
	if err != nil {
		return time.Time{}, err
	}
	return decodeTime(text)
}

func decodeTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%q is not a time such as 2026-11-30T08:15:00Z", shortened(text))
	}
	return t, nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// shortened keeps a fault readable, and a long value out of it.
func shortened(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// kindName names a kind of JSON value in a sentence.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "a boolean"
}
