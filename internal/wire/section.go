package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

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
		code, head, err := kindOf(rest)
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

// kindOf reads the kind of a section, and the size of what stands before its value.
func kindOf(b []byte) (Code, int, error) {
	code, size := descriptor(b)
	switch {
	case size == 0:
		return 0, 0, errors.New("something that is not a section of a message")
	case code < uint64(Header) || code > uint64(Footer):
		return 0, 0, fmt.Errorf("a section of the unknown kind %#x", code)
	}
	return Code(code), size, nil
}

// descriptor reads the descriptor at the start of a described value, and its size; zero when there is none.
func descriptor(b []byte) (code uint64, size int) {
	switch {
	case len(b) > 3 && b[0] == 0 && b[1] == 0x53:
		return uint64(b[2]), 3
	case len(b) > 10 && b[0] == 0 && b[1] == 0x80:
		return binary.BigEndian.Uint64(b[2:]), 10
	}
	return 0, 0
}

// Decode decodes a message, whatever is in it. Values of types that the client library cannot decode come as [Foreign] where
// they are the value of an entry, of an id or of the body; deeper ones are replaced by others of the same width, so that foreign,
// which names each place, is all that can be said of them. What cannot be decoded at all is left out and named in damage.
func Decode(message []byte) (m *amqp.Message, foreign, damage []string) {
	m = &amqp.Message{}
	if decode(m, message) == nil {
		keepSymbols(m, message)
		return m, nil, nil
	}
	m = &amqp.Message{}
	sections, err := Split(bytes.Clone(message))
	for _, s := range sections {
		places := substitute(s)
		damage = append(damage, decodeSection(m, s)...)
		for _, p := range places {
			foreign = append(foreign, p.String())
			p.restore(m)
		}
	}
	if err != nil {
		damage = append(damage, err.Error())
	}
	keepSymbols(m, message)
	return m, foreign, damage
}

// decodeSection adds a section to a message, without the entries that cannot be decoded. It names what it leaves out.
func decodeSection(m *amqp.Message, s Section) (damage []string) {
	// A section that fails may have been decoded in part, so it is tried on its own first.
	if decodes(s.Encoded) {
		_ = decode(m, s.Encoded)
		return nil
	}
	entries, err := Entries(s.Content)
	if err != nil || len(entries) == 0 {
		return []string{fmt.Sprintf("%v: the client library cannot decode them", s.Code)}
	}
	good := slices.DeleteFunc(entries, func(e Entry) bool {
		if decodes(AppendMap(nil, s.Code, []Entry{e})) {
			return false
		}
		name, _ := e.Name()
		damage = append(damage, fmt.Sprintf("%v: the client library cannot decode %q", s.Code, name))
		return true
	})
	if b := AppendMap(nil, s.Code, good); decodes(b) {
		_ = decode(m, b)
		return damage
	}
	return []string{fmt.Sprintf("%v: the client library cannot decode them", s.Code)}
}

// restore puts a value in the place of its stand-in.
func (p place) restore(m *amqp.Message) {
	switch {
	case !p.whole:
	case p.section == ApplicationProperties && m.ApplicationProperties != nil:
		m.ApplicationProperties[p.name] = p.value
	case p.section == MessageAnnotations && m.Annotations != nil:
		m.Annotations[p.name] = p.value
	case p.section == Properties && m.Properties != nil && p.name == fieldName(0):
		m.Properties.MessageID = p.value
	case p.section == Properties && m.Properties != nil && p.name == fieldName(5):
		m.Properties.CorrelationID = p.value
	case p.section == Value:
		m.Value = p.value
	}
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

func decodes(encoded []byte) bool { return decode(&amqp.Message{}, encoded) == nil }

// decode calls the decoder of the client library, which is not made for hostile bytes.
func decode(m *amqp.Message, b []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the decoder panicked: %v", r)
		}
	}()
	return m.UnmarshalBinary(b)
}
