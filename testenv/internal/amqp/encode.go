package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// The constructors of the primitive types (amqp-core-types section 1.6).
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeBin8       = 0xa0
	codeStr8       = 0xa1
	codeSym8       = 0xa3
	codeBin32      = 0xb0
	codeStr32      = 0xb1
	codeSym32      = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// Append appends the shortest encoding of v. It fails on a Go type that is no AMQP value.
func Append(dst []byte, v any) ([]byte, error) {
	if d, ok := v.(Described); ok {
		dst, err := Append(append(dst, codeDescribed), d.Descriptor)
		if err != nil {
			return dst, err
		}
		return Append(dst, d.Value)
	}
	code, err := codeOf(v)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst, err = appendBody(append(dst, code), code, v)
	if err == nil && (code == codeList32 || code == codeMap32 || code == codeArray32) {
		dst = shorten(dst, start)
	}
	return dst, err
}

// shorten rewrites the compound value at start from its long form to its short one where it fits.
func shorten(dst []byte, start int) []byte {
	size := binary.BigEndian.Uint32(dst[start+1:]) - 3 // a count of one byte instead of four
	count := binary.BigEndian.Uint32(dst[start+5:])
	if size > math.MaxUint8 || count > math.MaxUint8 {
		return dst
	}
	dst[start] -= codeList32 - codeList8
	dst[start+1], dst[start+2] = byte(size), byte(count)
	return append(dst[:start+3], dst[start+9:]...)
}

// codeOf picks the constructor with the shortest encoding; compound values begin in their long form.
func codeOf(v any) (byte, error) {
	switch v := v.(type) {
	case nil:
		return codeNull, nil
	case bool:
		if v {
			return codeTrue, nil
		}
		return codeFalse, nil
	case uint8:
		return codeUbyte, nil
	case uint16:
		return codeUshort, nil
	case uint32:
		return pick3(v == 0, v <= math.MaxUint8, codeUint0, codeSmallUint, codeUint), nil
	case uint64:
		return pick3(v == 0, v <= math.MaxUint8, codeUlong0, codeSmallUlong, codeUlong), nil
	case int8:
		return codeByte, nil
	case int16:
		return codeShort, nil
	case int32:
		return pick(v >= math.MinInt8 && v <= math.MaxInt8, codeSmallInt, codeInt), nil
	case int64:
		return pick(v >= math.MinInt8 && v <= math.MaxInt8, codeSmallLong, codeLong), nil
	case float32:
		return codeFloat, nil
	case float64:
		return codeDouble, nil
	case Decimal32:
		return codeDecimal32, nil
	case Decimal64:
		return codeDecimal64, nil
	case Decimal128:
		return codeDecimal128, nil
	case Char:
		return codeChar, nil
	case time.Time:
		return codeTimestamp, nil
	case UUID:
		return codeUUID, nil
	case []byte:
		return pick(len(v) <= math.MaxUint8, codeBin8, codeBin32), nil
	case string:
		return pick(len(v) <= math.MaxUint8, codeStr8, codeStr32), nil
	case Symbol:
		return pick(len(v) <= math.MaxUint8, codeSym8, codeSym32), nil
	case List:
		return pick(len(v) == 0, codeList0, codeList32), nil
	case Map:
		return codeMap32, nil
	case Array:
		return codeArray32, nil
	}
	return 0, fmt.Errorf("amqp: encode: %T is not an AMQP value", v)
}

func pick(short bool, a, b byte) byte {
	if short {
		return a
	}
	return b
}

func pick3(zero, short bool, a, b, c byte) byte {
	if zero {
		return a
	}
	return pick(short, b, c)
}

// appendBody appends v without its constructor, in the form that code asks for: this is what array items need too.
func appendBody(dst []byte, code byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, want(code, codeNull)
	case bool:
		return appendBool(dst, code, v)
	case uint8:
		return append(dst, v), want(code, codeUbyte)
	case uint16:
		return binary.BigEndian.AppendUint16(dst, v), want(code, codeUshort)
	case uint32:
		return appendInteger(dst, code, codeUint0, codeSmallUint, codeUint, 4, uint64(v))
	case uint64:
		return appendInteger(dst, code, codeUlong0, codeSmallUlong, codeUlong, 8, v)
	case int8:
		return append(dst, byte(v)), want(code, codeByte)
	case int16:
		return binary.BigEndian.AppendUint16(dst, uint16(v)), want(code, codeShort)
	case int32:
		return appendInteger(dst, code, codeSmallInt, codeSmallInt, codeInt, 4, uint64(v))
	case int64:
		return appendInteger(dst, code, codeSmallLong, codeSmallLong, codeLong, 8, uint64(v))
	case float32:
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), want(code, codeFloat)
	case float64:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), want(code, codeDouble)
	case Decimal32:
		return append(dst, v[:]...), want(code, codeDecimal32)
	case Decimal64:
		return append(dst, v[:]...), want(code, codeDecimal64)
	case Decimal128:
		return append(dst, v[:]...), want(code, codeDecimal128)
	case Char:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), want(code, codeChar)
	case time.Time:
		return binary.BigEndian.AppendUint64(dst, uint64(v.UnixMilli())), want(code, codeTimestamp)
	case UUID:
		return append(dst, v[:]...), want(code, codeUUID)
	case []byte:
		return appendBytes(dst, code, codeBin8, codeBin32, string(v))
	case string:
		return appendBytes(dst, code, codeStr8, codeStr32, v)
	case Symbol:
		return appendBytes(dst, code, codeSym8, codeSym32, string(v))
	case List:
		return appendList(dst, code, v)
	case Map:
		return appendMap(dst, code, v)
	case Array:
		return appendArray(dst, code, v)
	}
	return dst, fmt.Errorf("amqp: encode: %T is not an AMQP value", v)
}

func want(got, code byte) error {
	if got != code {
		return fmt.Errorf("amqp: encode: a value of constructor %#02x stands in an array of %#02x", code, got)
	}
	return nil
}

func appendBool(dst []byte, code byte, v bool) ([]byte, error) {
	switch {
	case code == codeTrue && v, code == codeFalse && !v:
		return dst, nil
	case code == codeBool && v:
		return append(dst, 1), nil
	}
	return append(dst, 0), want(code, codeBool)
}

// appendInteger writes v in the form of code; a form that is too narrow for v is an error.
func appendInteger(dst []byte, code, zero, small, full byte, width int, v uint64) ([]byte, error) {
	signed := full == codeInt || full == codeLong
	switch {
	case code == full && width == 4:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
	case code == full:
		return binary.BigEndian.AppendUint64(dst, v), nil
	case code == small && (v <= math.MaxUint8 && !signed || signed && int64(int8(v)) == int64(v)):
		return append(dst, byte(v)), nil
	case code == zero && !signed && v == 0:
		return dst, nil
	}
	return dst, want(code, full)
}

func appendBytes(dst []byte, code, short, long byte, v string) ([]byte, error) {
	if code == short && len(v) <= math.MaxUint8 {
		return append(append(dst, byte(len(v))), v...), nil
	}
	if uint64(len(v)) > math.MaxUint32 {
		return dst, fmt.Errorf("amqp: encode: %d bytes do not fit one value", len(v))
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...), want(code, long)
}

func appendList(dst []byte, code byte, v List) ([]byte, error) {
	if code == codeList0 && len(v) == 0 {
		return dst, nil
	}
	return appendCompound(dst, code, codeList8, codeList32, len(v), func(dst []byte) ([]byte, error) {
		var err error
		for i := 0; i < len(v) && err == nil; i++ {
			dst, err = Append(dst, v[i])
		}
		return dst, err
	})
}

func appendMap(dst []byte, code byte, v Map) ([]byte, error) {
	return appendCompound(dst, code, codeMap8, codeMap32, 2*len(v), func(dst []byte) ([]byte, error) {
		for _, p := range v {
			var err error
			if dst, err = Append(dst, p.Key); err != nil {
				return dst, err
			}
			if dst, err = Append(dst, p.Value); err != nil {
				return dst, err
			}
		}
		return dst, nil
	})
}

func appendArray(dst []byte, code byte, v Array) ([]byte, error) {
	return appendCompound(dst, code, codeArray8, codeArray32, len(v.Items), func(dst []byte) ([]byte, error) {
		var err error
		if v.Descriptor != nil {
			if dst, err = Append(append(dst, codeDescribed), v.Descriptor); err != nil {
				return dst, err
			}
		}
		dst = append(dst, v.Code)
		for i := 0; i < len(v.Items) && err == nil; i++ {
			dst, err = appendBody(dst, v.Code, v.Items[i])
		}
		return dst, err
	})
}

// appendCompound writes size, count and items. Sizes count the bytes after themselves.
func appendCompound(dst []byte, code, short, long byte, count int, items func([]byte) ([]byte, error)) ([]byte, error) {
	start := len(dst)
	if code == short {
		dst, err := items(append(dst, 0, byte(count)))
		size := len(dst) - start - 1
		if err == nil && (size > math.MaxUint8 || count > math.MaxUint8) {
			err = fmt.Errorf("amqp: encode: a compound value of %d bytes does not fit its array", size)
		}
		dst[start] = byte(size)
		return dst, err
	}
	dst = binary.BigEndian.AppendUint32(append(dst, 0, 0, 0, 0), uint32(count))
	dst, err := items(dst)
	size := len(dst) - start - 4
	if err == nil && uint64(size) > math.MaxUint32 {
		err = fmt.Errorf("amqp: encode: a compound value of %d bytes is too large", size)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	if err == nil {
		err = want(code, long)
	}
	return dst, err
}
