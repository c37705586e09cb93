package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
)

// The types of AMQP that the client library has no decoder for, and the type of the same width that stands in for each while
// a message is decoded. One value of them anywhere in a message keeps the whole message from being decoded, and a receiver
// that meets it loses its link (go-amqp 1.7.0, internal/encoding: "decimal128 not implemented").
const (
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94

	codeUint  = 0x70
	codeUlong = 0x80
	codeUUID  = 0x98
)

// standIns has for each type without a decoder the one that is decoded in its place.
var standIns = map[byte]byte{codeChar: codeUint, codeDecimal32: codeUint, codeDecimal64: codeUlong, codeDecimal128: codeUUID}

// maxDepth bounds values within values. What lies deeper is left as it is.
const maxDepth = 64

// A Foreign is a value of a type that the client library cannot decode, as it came.
type Foreign struct {
	code byte
	bits string
}

// AMQPType returns the name of the type: decimal32, decimal64, decimal128 or char.
func (f Foreign) AMQPType() string { return foreignName(f.code) }

func foreignName(code byte) string {
	return map[byte]string{codeChar: "char", codeDecimal32: "decimal32", codeDecimal64: "decimal64", codeDecimal128: "decimal128"}[code]
}

// String returns the value for people, such as decimal128(12.50).
func (f Foreign) String() string {
	if f.code == codeChar {
		return fmt.Sprintf("char(U+%04X)", binary.BigEndian.Uint32([]byte(f.bits)))
	}
	return f.AMQPType() + "(" + decimal([]byte(f.bits)) + ")"
}

// decimal reads an IEEE 754 decimal in its binary integer encoding, which AMQP uses (AMQP 1.0, part 1, 1.6.13 to 1.6.15). What
// is no finite number in its plain form is shown as bytes.
func decimal(b []byte) string {
	width := map[int]uint{4: 8, 8: 10, 16: 14}[len(b)] // bits of the exponent
	bias := map[int]int64{4: 101, 8: 398, 16: 6176}[len(b)]
	bits := new(big.Int).SetBytes(b)
	fraction := uint(8*len(b)) - 1 - width
	exponent := new(big.Int).Rsh(bits, fraction).Int64() & (1<<width - 1)
	if exponent>>(width-2) == 3 {
		return fmt.Sprintf("%x", b)
	}
	digits := new(big.Int).And(bits, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), fraction), big.NewInt(1))).String()
	return map[bool]string{true: "-"}[b[0]&0x80 != 0] + placePoint(digits, exponent-bias)
}

// placePoint writes digits times ten to a power.
func placePoint(digits string, power int64) string {
	const most = 40
	switch {
	case power == 0:
		return digits
	case power > 0 || power < -most:
		return fmt.Sprintf("%se%d", digits, power)
	}
	point := int(-power)
	if pad := point + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	return digits[:len(digits)-point] + "." + digits[len(digits)-point:]
}

// A place is a value within a section that was replaced by its stand-in.
type place struct {
	section Code
	// name is the entry of a map or the number of a field in which it lies, and whole tells that it is that entry's value.
	name  string
	whole bool
	value Foreign
}

func (p place) String() string {
	if p.name == "" {
		return fmt.Sprintf("%v holds a %s", p.section, p.value.AMQPType())
	}
	return fmt.Sprintf("%v %q holds a %s", p.section, p.name, p.value.AMQPType())
}

// substitute replaces, in place and without changing a length, the constructors of types that cannot be decoded.
func substitute(s Section) []place {
	var found []place
	note := func(name string, value []byte) {
		var values []Foreign
		exchange(value, 0, &values)
		for _, v := range values {
			found = append(found, place{section: s.Code, name: name, whole: len(value) == 1+len(v.bits), value: v})
		}
	}
	switch entries, err := Entries(s.Content); {
	case s.Code == Properties:
		fields, _ := listItems(s.Content)
		for i, field := range fields {
			note(fieldName(i), field)
		}
	case err == nil:
		for _, e := range entries {
			name, _ := e.Name()
			note(name, e.Value)
		}
	default:
		note("", s.Content)
	}
	return found
}

// listItems takes a list apart, and reports whether it is well formed. Otherwise it returns what comes before the fault.
func listItems(list []byte) (items [][]byte, whole bool) {
	size, err := valueSize(list, 0)
	if err != nil || (list[0] != 0xC0 && list[0] != 0xD0) || size < compoundHead(list[0]) {
		return nil, err == nil && list[0] == 0x45
	}
	count := int(list[2])
	if list[0] == 0xD0 {
		count = int(binary.BigEndian.Uint32(list[5:]))
	}
	for rest := list[compoundHead(list[0]):size]; len(rest) > 0; {
		n, err := valueSize(rest, 0)
		if err != nil {
			return items, false
		}
		items, rest = append(items, rest[:n]), rest[n:]
	}
	return items, len(items) == count
}

// fieldName names the fields of the properties that can hold any type.
func fieldName(i int) string {
	return map[int]string{0: "message-id", 5: "correlation-id"}[i]
}

// exchange replaces constructors in the value at the start of b and in all that it holds, and returns its size; zero when it
// is not well formed, so that nothing after it can be found.
func exchange(b []byte, depth int, found *[]Foreign) int {
	size, err := valueSize(b, 0)
	if err != nil || depth > maxDepth {
		return 0
	}
	switch b[0] {
	case 0x00:
		if d := exchange(b[1:], depth+1, found); d > 0 {
			exchange(b[1+d:size], depth+1, found)
		}
	case 0xC0, 0xC1, 0xD0, 0xD1:
		for rest := b[min(compoundHead(b[0]), size):size]; len(rest) > 0; {
			n := exchange(rest, depth+1, found)
			if n == 0 {
				break
			}
			rest = rest[n:]
		}
	case 0xE0, 0xF0:
		head := compoundHead(b[0])
		if head < size {
			exchangeCode(b[head:size], found)
		}
	default:
		exchangeCode(b[:size], found)
	}
	return size
}

// compoundHead is the size of what stands before the first item of a list, map or array.
func compoundHead(code byte) int {
	if code >= 0xF0 || code>>4 == 0xD {
		return 9
	}
	return 3
}

func exchangeCode(value []byte, found *[]Foreign) {
	if other, ok := standIns[value[0]]; ok {
		*found = append(*found, Foreign{code: value[0], bits: string(bytes.Clone(value[1:]))})
		value[0] = other
	}
}
