package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/Azure/go-amqp"
)

// A Code names the kind of a section.
type Code byte

// The sections of a message, in the order in which they stand.
const (
	Header                Code = 0x70
	DeliveryAnnotations   Code = 0x71
	MessageAnnotations    Code = 0x72
	Properties            Code = 0x73
	ApplicationProperties Code = 0x74
	Data                  Code = 0x75
	Sequence              Code = 0x76
	Value                 Code = 0x77
	Footer                Code = 0x78
)

func (c Code) String() string {
	names := [...]string{"header", "delivery annotations", "message annotations", "properties", "application properties", "data", "sequence", "value", "footer"}
	if c < Header || c > Footer {
		return fmt.Sprintf("section %#x", byte(c))
	}
	return names[c-Header]
}

// A Section is one section of an encoded message.
type Section struct {
	Code Code
	// Encoded is the whole section, and Content its value. Both share the bytes of the message.
	Encoded, Content []byte
}

// Split takes a message apart into its sections. They cover all of it, in order.
func Split(message []byte) ([]Section, error) {
	var sections []Section
	for rest := message; len(rest) > 0; {
		code, head, err := descriptor(rest)
		if err != nil {
			return sections, err
		}
		size, err := valueSize(rest[head:], 0)
		if err != nil {
			return sections, fmt.Errorf("%v: %w", code, err)
		}
		end := head + size
		sections = append(sections, Section{Code: code, Encoded: rest[:end], Content: rest[head:end]})
		rest = rest[end:]
	}
	return sections, nil
}

// descriptor reads the kind of a section, and the size of what stands before its value.
func descriptor(b []byte) (Code, int, error) {
	switch {
	case len(b) >= 3 && b[0] == 0 && b[1] == 0x53:
		return known(uint64(b[2]), 3)
	case len(b) >= 10 && b[0] == 0 && b[1] == 0x80:
		return known(binary.BigEndian.Uint64(b[2:]), 10)
	}
	return 0, 0, errors.New("something that is not a section of a message")
}

func known(code uint64, size int) (Code, int, error) {
	if code < uint64(Header) || code > uint64(Footer) {
		return 0, 0, fmt.Errorf("a section of the unknown kind %#x", code)
	}
	return Code(code), size, nil
}

// Decode decodes a message section by section. What cannot be decoded is left out and named, so that one odd value does not
// hide the rest.
func Decode(message []byte) (*amqp.Message, []string) {
	var whole amqp.Message
	if err := decode(&whole, message); err == nil {
		keepSymbols(&whole, message)
		return &whole, nil
	}
	var m amqp.Message
	var damage []string
	sections, err := Split(message)
	for _, s := range sections {
		// A section that fails may have been decoded in part, so it is tried on its own first.
		var alone amqp.Message
		if err := decode(&alone, s.Encoded); err != nil {
			damage = append(damage, fmt.Sprintf("%v: %v", s.Code, err))
			continue
		}
		_ = decode(&m, s.Encoded)
	}
	if err != nil {
		damage = append(damage, err.Error())
	}
	keepSymbols(&m, message)
	return &m, damage
}

// keepSymbols puts the type back to values that the client library takes for strings.
func keepSymbols(m *amqp.Message, message []byte) {
	sections, _ := Split(message)
	for _, s := range sections {
		switch s.Code {
		case ApplicationProperties:
			entries, _ := Entries(s.Content)
			for _, e := range entries {
				if name, ok := e.Name(); ok && isSymbol(e.Value) {
					if v, ok := m.ApplicationProperties[name].(string); ok {
						m.ApplicationProperties[name] = amqp.Symbol(v)
					}
				}
			}
		case Value:
			if v, ok := m.Value.(string); ok && isSymbol(s.Content) {
				m.Value = amqp.Symbol(v)
			}
		}
	}
}

func isSymbol(value []byte) bool { return len(value) > 0 && (value[0] == 0xA3 || value[0] == 0xB3) }

// decode calls the decoder of the client library, which is not made for hostile bytes.
func decode(m *amqp.Message, b []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the decoder panicked: %v", r)
		}
	}()
	return m.UnmarshalBinary(b)
}
