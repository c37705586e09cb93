package jsondoc

import (
	"math"
	"strconv"
)

// Encode writes a value as JSON without insignificant space.
func Encode(v any) []byte { return appendValue(nil, v) }

// String returns a value as JSON text.
func String(v any) string { return string(Encode(v)) }

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		return appendNumber(b, v)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case *Object:
		return appendObject(b, v)
	default:
		return append(b, "null"...)
	}
}

func appendObject(b []byte, o *Object) []byte {
	b = append(b, '{')
	for i, n := range o.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, n)
		b = append(b, ':')
		b = appendValue(b, o.values[i])
	}
	return append(b, '}')
}

// appendNumber writes a double with the fewest digits that read back as the same double, without an exponent where
// JavaScript writes none.
func appendNumber(b []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	plain := 0 // from where on nothing had to be escaped
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[plain:i]...)
		plain = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[plain:]...), '"')
}
