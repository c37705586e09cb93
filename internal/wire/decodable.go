package wire

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/Azure/go-amqp"
)

// MakeDecodable changes an encoded message, in place and without changing its length, so that the client library can decode
// it, and reports whether it had to. Values of types without a decoder are replaced by others of the same width. What cannot be
// decoded even then becomes binary: one entry of a map, or a whole section, which then counts as data. So the changed message
// is good for finding out which one it is, and its content must be read from elsewhere.
func MakeDecodable(message []byte) (changed bool) {
	sections, err := Split(message)
	end := 0
	for _, s := range sections {
		end += len(s.Encoded)
		changed = makeDecodable(s) || changed
	}
	if err == nil {
		return changed
	}
	// What follows the last section is none. It becomes a section of its own, together with that one when it is too short.
	rest := message[end:]
	if n := len(sections); len(rest) < minSection && n > 0 {
		rest = message[end-len(sections[n-1].Encoded):]
	}
	return cover(rest) || changed
}

func makeDecodable(s Section) bool {
	if decodable(s) {
		return false
	}
	substitute(s)
	if decodable(s) {
		return true
	}
	if entries, err := Entries(s.Content); err == nil {
		for _, e := range entries {
			if !decodes(AppendMap(nil, s.Code, []Entry{e})) {
				binaryOf(e.Value)
			}
		}
	}
	if !decodes(s.Encoded) {
		cover(s.Encoded)
	}
	return true
}

// decodable reports whether the client library can decode a section. A body value is tried only when it holds anything unusual:
// the answers of a management node are large ones.
func decodable(s Section) bool { return s.Code == Value && usual(s.Content, 0) || decodes(s.Encoded) }

// usualCodes are the constructors of values without parts that the client library decodes.
const usualCodes = "\x40\x41\x42\x43\x44\x50\x51\x52\x53\x54\x55\x56\x60\x61\x70\x71\x72\x80\x81\x82\x83\x98\xa0\xa1\xa3\xb0\xb1\xb3"

// maxItems is how many items the client library takes in one list or map (go-amqp 1.7.0, maxCompoundCount).
const maxItems = 65536

// usual reports whether a value is made only of maps with text as keys, of lists, and of values without parts.
func usual(b []byte, depth int) bool {
	code := b[0]
	if code != 0xC0 && code != 0xD0 && code != 0xC1 && code != 0xD1 {
		return strings.IndexByte(usualCodes, code) >= 0
	}
	var values [][]byte
	if code&1 == 1 {
		entries, err := Entries(b)
		for _, e := range entries {
			_, text := e.Name()
			if values = append(values, e.Value); !text {
				return false
			}
		}
		if err != nil {
			return false
		}
	} else {
		var whole bool
		if values, whole = listItems(b); !whole {
			return false
		}
	}
	return depth < maxDepth && len(values) <= maxItems/2 && !slices.ContainsFunc(values, func(v []byte) bool { return !usual(v, depth+1) })
}

func decodes(encoded []byte) bool {
	var m amqp.Message
	return decode(&m, encoded) == nil
}

// minSection is the size of the smallest section.
const minSection = 4

// cover turns bytes into one data section, or, when there is room for no more, into a value of null.
func cover(b []byte) bool {
	switch n := len(b); {
	case n < minSection:
		return false
	case n == minSection:
		copy(b, []byte{0, 0x53, byte(Value), 0x40})
		return true
	}
	copy(b, []byte{0, 0x53, byte(Data)})
	return binaryOf(b[3:])
}

// binaryOf turns the bytes of a value into a binary value of the same size. A single byte is left alone: it is a value without
// content.
func binaryOf(b []byte) bool {
	switch n := len(b); {
	case n < 2:
		return false
	case n-2 <= math.MaxUint8:
		b[0], b[1] = 0xA0, byte(n-2)
	default:
		b[0] = 0xB0
		binary.BigEndian.PutUint32(b[1:], uint32(n-5))
	}
	return true
}
