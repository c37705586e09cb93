package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrMalformed is wrapped by every decoding error.
var ErrMalformed = errors.New("amqp: malformed encoding")

// maxDepth bounds the nesting of values. The standard has no bound; no client nests even half as deep.
const maxDepth = 64

// A Reader decodes values from a byte slice. It never copies more than it returns, and it decodes at most as many values
// as the slice has bytes, plus a few: arrays of values without a body (null, true) cannot make it allocate at will.
type Reader struct {
	b      []byte
	budget int
	depth  int
}

// NewReader returns a reader of b, which must not change while values are read.
func NewReader(b []byte) *Reader { return &Reader{b: b, budget: len(b) + 64} }

// Len returns how many bytes are left.
func (r *Reader) Len() int { return len(r.b) }

// Rest returns the bytes that are left, without consuming them.
func (r *Reader) Rest() []byte { return r.b }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

func (r *Reader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.b) {
		return nil, malformed("%d bytes wanted, %d left", n, len(r.b))
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p, nil
}

func (r *Reader) byte() (byte, error) {
	if len(r.b) == 0 {
		return 0, malformed("input ends where a value should begin")
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c, nil
}

// uint reads a big-endian number of 1, 2, 4 or 8 bytes.
func (r *Reader) uint(width int) (uint64, error) {
	p, err := r.take(width)
	if err != nil {
		return 0, err
	}
	switch width {
	case 1:
		return uint64(p[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(p)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(p)), nil
	}
	return binary.BigEndian.Uint64(p), nil
}

// Value reads the next value.
func (r *Reader) Value() (any, error) {
	code, err := r.byte()
	if err != nil {
		return nil, err
	}
	if code != codeDescribed {
		return r.body(code)
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	d, err := r.Value()
	if err != nil {
		return nil, err
	}
	v, err := r.Value()
	return Described{Descriptor: d, Value: v}, err
}

func (r *Reader) enter() error {
	if r.depth++; r.depth > maxDepth {
		return malformed("values are nested more than %d deep", maxDepth)
	}
	return nil
}

func (r *Reader) leave() { r.depth-- }

// body reads a value whose constructor has been read.
func (r *Reader) body(code byte) (any, error) {
	if r.budget--; r.budget < 0 {
		return nil, malformed("more values than bytes")
	}
	switch code {
	case codeNull:
		return nil, nil
	case codeTrue, codeFalse:
		return code == codeTrue, nil
	case codeUint0:
		return uint32(0), nil
	case codeUlong0:
		return uint64(0), nil
	case codeList0:
		return List{}, nil
	case codeDecimal128:
		p, err := r.take(16)
		if err != nil {
			return nil, err
		}
		return Decimal128(p), nil
	case codeUUID:
		p, err := r.take(16)
		if err != nil {
			return nil, err
		}
		return UUID(p), nil
	}
	switch code >> 4 {
	case 0x5:
		return r.fixed(code, 1)
	case 0x6:
		return r.fixed(code, 2)
	case 0x7:
		return r.fixed(code, 4)
	case 0x8:
		return r.fixed(code, 8)
	case 0xa:
		return r.variable(code, 1)
	case 0xb:
		return r.variable(code, 4)
	}
	return r.compound(code)
}

func (r *Reader) fixed(code byte, width int) (any, error) {
	n, err := r.uint(width)
	if err != nil {
		return nil, err
	}
	switch code {
	case codeUbyte:
		return uint8(n), nil
	case codeByte:
		return int8(n), nil
	case codeSmallUint, codeUint:
		return uint32(n), nil
	case codeSmallUlong, codeUlong:
		return n, nil
	case codeSmallInt:
		return int32(int8(n)), nil
	case codeSmallLong:
		return int64(int8(n)), nil
	case codeBool:
		if n > 1 {
			return nil, malformed("boolean byte %d", n)
		}
		return n == 1, nil
	case codeUshort:
		return uint16(n), nil
	case codeShort:
		return int16(n), nil
	case codeInt:
		return int32(n), nil
	case codeFloat:
		return math.Float32frombits(uint32(n)), nil
	case codeChar:
		return Char(n), nil
	case codeDecimal32:
		return Decimal32(binary.BigEndian.AppendUint32(nil, uint32(n))), nil
	case codeLong:
		return int64(n), nil
	case codeDouble:
		return math.Float64frombits(n), nil
	case codeTimestamp:
		return time.UnixMilli(int64(n)).UTC(), nil
	case codeDecimal64:
		return Decimal64(binary.BigEndian.AppendUint64(nil, n)), nil
	}
	return nil, malformed("unknown constructor %#02x", code)
}

func (r *Reader) variable(code byte, width int) (any, error) {
	n, err := r.uint(width)
	if err != nil {
		return nil, err
	}
	p, err := r.take(int(n))
	if err != nil {
		return nil, err
	}
	switch code {
	case codeBin8, codeBin32:
		return append(make([]byte, 0, len(p)), p...), nil
	case codeStr8, codeStr32:
		return string(p), nil
	case codeSym8, codeSym32:
		return Symbol(p), nil
	}
	return nil, malformed("unknown constructor %#02x", code)
}

// compoundHeader reads size and count, and returns a reader of exactly the items.
func (r *Reader) compoundHeader(code byte) (items Reader, count int, err error) {
	width := 4
	if code>>4 == 0xc || code>>4 == 0xe {
		width = 1
	}
	size, err := r.uint(width)
	if err != nil {
		return items, 0, err
	}
	p, err := r.take(int(size))
	if err != nil {
		return items, 0, err
	}
	items = Reader{b: p, budget: r.budget, depth: r.depth}
	n, err := items.uint(width)
	return items, int(n), err
}

func (r *Reader) compound(code byte) (any, error) {
	switch code {
	case codeList8, codeList32, codeMap8, codeMap32, codeArray8, codeArray32:
	default:
		return nil, malformed("unknown constructor %#02x", code)
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	items, count, err := r.compoundHeader(code)
	if err != nil {
		return nil, err
	}
	var v any
	switch code {
	case codeList8, codeList32:
		v, err = items.list(count)
	case codeMap8, codeMap32:
		v, err = items.pairs(count)
	default:
		v, err = items.array(count)
	}
	r.budget = items.budget
	if err == nil && len(items.b) > 0 {
		err = malformed("%d bytes after the last item of a compound value", len(items.b))
	}
	return v, err
}

func (r *Reader) list(count int) (List, error) {
	if count > len(r.b) {
		return nil, malformed("list of %d items in %d bytes", count, len(r.b))
	}
	l := make(List, 0, count)
	for range count {
		v, err := r.Value()
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	return l, nil
}

func (r *Reader) pairs(count int) (Map, error) {
	if count > len(r.b) || count%2 != 0 {
		return nil, malformed("map of %d keys and values in %d bytes", count, len(r.b))
	}
	m := make(Map, 0, count/2)
	for range count / 2 {
		k, err := r.Value()
		if err != nil {
			return nil, err
		}
		v, err := r.Value()
		if err != nil {
			return nil, err
		}
		m = append(m, Pair{Key: k, Value: v})
	}
	return m, nil
}

func (r *Reader) array(count int) (Array, error) {
	code, err := r.byte()
	if err != nil {
		return Array{}, err
	}
	a := Array{Code: code}
	if code == codeDescribed {
		if a.Descriptor, err = r.Value(); err != nil {
			return Array{}, err
		}
		if a.Descriptor == nil {
			return Array{}, malformed("array with a null descriptor")
		}
		if a.Code, err = r.byte(); err != nil {
			return Array{}, err
		}
		if a.Code == codeDescribed {
			return Array{}, malformed("array with two descriptors")
		}
	}
	if count < 0 || count > r.budget {
		return Array{}, malformed("array of %d items", count)
	}
	a.Items = make([]any, 0, min(count, len(r.b)+1))
	for range count {
		v, err := r.body(a.Code)
		if err != nil {
			return Array{}, err
		}
		a.Items = append(a.Items, v)
	}
	return a, nil
}
