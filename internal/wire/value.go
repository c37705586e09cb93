package wire

import (
	"encoding/binary"
	"errors"
)

// errShort is the error for bytes that end within a value.
var errShort = errors.New("the message ends within a value")

// maxNesting bounds described values within described values.
const maxNesting = 8

// valueSize returns how many bytes the encoded value at the start of b has, with its constructor.
func valueSize(b []byte, nesting int) (int, error) {
	if len(b) == 0 {
		return 0, errShort
	}
	if b[0] == 0 {
		return describedSize(b, nesting)
	}
	size, err := plainSize(b)
	if err != nil {
		return 0, err
	}
	if size > len(b) {
		return 0, errShort
	}
	return size, nil
}

// plainSize reads the size from the upper half of the constructor, which says how wide a value is.
func plainSize(b []byte) (int, error) {
	switch b[0] >> 4 {
	case 0x4:
		return 1, nil
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		return 1 + 1<<(b[0]>>4-5), nil
	case 0xA, 0xC, 0xE:
		if len(b) < 2 {
			return 0, errShort
		}
		return 2 + int(b[1]), nil
	case 0xB, 0xD, 0xF:
		if len(b) < 5 {
			return 0, errShort
		}
		return 5 + int(binary.BigEndian.Uint32(b[1:])), nil
	}
	return 0, errors.New("a value of a type that AMQP does not have")
}

func describedSize(b []byte, nesting int) (int, error) {
	if nesting >= maxNesting {
		return 0, errors.New("values are described too deeply")
	}
	descriptor, err := valueSize(b[1:], nesting+1)
	if err != nil {
		return 0, err
	}
	value, err := valueSize(b[1+descriptor:], nesting+1)
	return 1 + descriptor + value, err
}

// text returns the value at the start of b when it is a string or a symbol.
func text(b []byte) (string, bool) {
	size, err := valueSize(b, 0)
	if err != nil {
		return "", false
	}
	switch b[0] {
	case 0xA1, 0xA3:
		return string(b[2:size]), true
	case 0xB1, 0xB3:
		return string(b[5:size]), true
	}
	return "", false
}
