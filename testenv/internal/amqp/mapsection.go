package amqp

import "encoding/binary"

// The descriptors of the sections that hold maps, for [NewMapSection].
const (
	SectionDeliveryAnnotations   uint64 = descDeliveryAnnotations
	SectionAnnotations           uint64 = descMessageAnnotations
	SectionApplicationProperties uint64 = descApplicationProperties
)

// EachPair calls f with the encodings of every key and value of a map section, in order. A nil section has none.
func EachPair(section []byte, f func(key, value []byte) error) error {
	if section == nil {
		return nil
	}
	r := NewReader(section)
	if _, err := r.descriptor(); err != nil {
		return err
	}
	code, err := r.byte()
	if err != nil {
		return err
	}
	if code != codeMap8 && code != codeMap32 {
		return malformed("constructor %#02x where a map should be", code)
	}
	items, count, err := r.compoundHeader(code)
	for ; err == nil && count >= 2; count -= 2 {
		var k, v []byte
		if k, err = items.Skip(); err != nil {
			break
		}
		if v, err = items.Skip(); err == nil {
			err = f(k, v)
		}
	}
	return err
}

// KeyText returns the text of an encoded map key that is a string or a symbol.
func KeyText(key []byte) (string, bool) {
	v, err := NewReader(key).Value()
	if err != nil {
		return "", false
	}
	return keyText(v)
}

// A MapSection appends a section that holds a map, pair by pair.
type MapSection struct {
	dst   []byte
	start int
	count uint32
}

// NewMapSection begins a section at the end of dst.
func NewMapSection(dst []byte, descriptor uint64) MapSection {
	dst = append(dst, codeDescribed, codeSmallUlong, byte(descriptor), codeMap32, 0, 0, 0, 0, 0, 0, 0, 0)
	return MapSection{dst: dst, start: len(dst) - 9}
}

// Raw appends pairs that are encoded already.
func (m *MapSection) Raw(pairs []byte, count int) {
	m.dst = append(m.dst, pairs...)
	m.count += 2 * uint32(count)
}

// Put appends a pair. It fails on values that are no AMQP values, and leaves the section as it was.
func (m *MapSection) Put(key, value any) error {
	n := len(m.dst)
	dst, err := Append(m.dst, key)
	if err == nil {
		dst, err = Append(dst, value)
	}
	if err != nil {
		m.dst = dst[:n]
		return err
	}
	m.dst, m.count = dst, m.count+2
	return nil
}

// Long appends a pair of a symbol and a long, without the detour over an interface.
func (m *MapSection) Long(key Symbol, v int64) {
	m.number(key, codeLong, uint64(v))
}

// Millis appends a pair of a symbol and a timestamp in milliseconds since the Unix epoch.
func (m *MapSection) Millis(key Symbol, ms int64) {
	m.number(key, codeTimestamp, uint64(ms))
}

func (m *MapSection) number(key Symbol, code byte, v uint64) {
	m.dst = append(append(m.dst, codeSym8, byte(len(key))), key...)
	m.dst = binary.BigEndian.AppendUint64(append(m.dst, code), v)
	m.count += 2
}

// Done ends the section and returns the whole slice.
func (m *MapSection) Done() []byte {
	binary.BigEndian.PutUint32(m.dst[m.start+1:], uint32(len(m.dst)-m.start-5))
	binary.BigEndian.PutUint32(m.dst[m.start+5:], m.count)
	return shorten(m.dst, m.start)
}
