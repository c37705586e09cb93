package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// An Entry is an entry of an encoded map. Key and Value are encoded values.
type Entry struct{ Key, Value []byte }

// Name returns the key when it is a string or a symbol.
func (e Entry) Name() (string, bool) { return text(e.Key) }

var errNoMap = errors.New("not a map")

// Entries takes an encoded map apart.
func Entries(m []byte) ([]Entry, error) {
	size, err := valueSize(m, 0)
	if err != nil {
		return nil, err
	}
	var count, at int
	switch {
	case m[0] == 0xC1 && size >= 3:
		count, at = int(m[2]), 3
	case m[0] == 0xD1 && size >= 9:
		count, at = int(binary.BigEndian.Uint32(m[5:])), 9
	default:
		return nil, errNoMap
	}
	if count%2 != 0 || count > size {
		return nil, errNoMap
	}
	entries := make([]Entry, 0, count/2)
	for range count / 2 {
		k, err := valueSize(m[at:size], 0)
		if err != nil {
			return nil, err
		}
		v, err := valueSize(m[at+k:size], 0)
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Key: m[at : at+k], Value: m[at+k : at+k+v]})
		at += k + v
	}
	if at != size {
		return nil, errNoMap
	}
	return entries, nil
}

// AppendMap appends a section that holds a map with these entries.
func AppendMap(dst []byte, code Code, entries []Entry) []byte {
	total := 4
	for _, e := range entries {
		total += len(e.Key) + len(e.Value)
	}
	dst = append(dst, 0, 0x53, byte(code), 0xD1)
	dst = binary.BigEndian.AppendUint32(dst, uint32(total))
	dst = binary.BigEndian.AppendUint32(dst, uint32(2*len(entries)))
	for _, e := range entries {
		dst = append(append(dst, e.Key...), e.Value...)
	}
	return dst
}

// Int returns an entry with a short string as its key and an AMQP int.
func Int(name string, v int32) Entry {
	return Entry{Key: short(name), Value: binary.BigEndian.AppendUint32([]byte{0x71}, uint32(v))}
}

// Timestamp returns an entry with a short string as its key and an AMQP timestamp, which has milliseconds.
func Timestamp(name string, t time.Time) Entry {
	return Entry{Key: short(name), Value: binary.BigEndian.AppendUint64([]byte{0x83}, uint64(t.UnixMilli()))}
}

// short encodes a string, cut to the 255 bytes that its form can hold.
func short(s string) []byte {
	s = s[:min(len(s), math.MaxUint8)]
	return append([]byte{0xA1, byte(len(s))}, s...)
}
