package messagejson

import (
	"errors"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/go-json-experiment/json/jsontext"
)

type amqpBody = azservicebus.AMQPAnnotatedMessageBody

// bodies are the members of which one gives the body. Text is written as text, so that people can read it, and anything else in
// base64.
func bodies(m *message) []member {
	b := &m.Body
	all := []member{
		{"body", plainInto(b), func() (any, error) {
			if !isText(b) {
				return nil, nil
			}
			return string(b.Data[0]), nil
		}},
		{"body_b64", bytesInto(b), func() (any, error) {
			if len(b.Data) != 1 || isText(b) {
				return nil, nil
			}
			return b.Data[0], nil
		}},
		{"data_sections", textsInto(b), func() (any, error) { return nil, nil }},
		{"data_sections_b64", sectionsInto(b), func() (any, error) { return unless(len(b.Data) < 2, b.Data), nil }},
		{"amqp_value", valueInto(&b.Value), func() (any, error) {
			if len(b.Data) > 0 || b.Sequence != nil {
				return nil, nil
			}
			return encodeValue(b.Value)
		}},
		{"amqp_sequence", sequenceInto(b), func() (any, error) { return encodeSequence(b) }},
	}
	given := false
	for i, one := range all {
		all[i].read = func(raw jsontext.Value) error {
			if given {
				return errors.New("give one of body, body_b64, data_sections, data_sections_b64, amqp_value and amqp_sequence")
			}
			given = true
			return one.read(raw)
		}
	}
	return all
}

// isText reports whether a body is one data section of text.
func isText(b *amqpBody) bool { return len(b.Data) == 1 && utf8.Valid(b.Data[0]) }

// plainInto reads a body as it is: the text of a string, or JSON.
func plainInto(b *amqpBody) func(jsontext.Value) error {
	return func(raw jsontext.Value) (err error) {
		data := []byte(raw)
		if raw.Kind() == '"' {
			data, err = jsontext.AppendUnquote(nil, raw)
		}
		b.Data = [][]byte{data}
		return err
	}
}

func bytesInto(b *amqpBody) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		b.Data = make([][]byte, 1)
		return base64Into(&b.Data[0])(raw)
	}
}

func textsInto(b *amqpBody) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		var texts []string
		err := into(&texts, "an array of strings")(raw)
		for _, text := range texts {
			b.Data = append(b.Data, []byte(text))
		}
		return err
	}
}

func sectionsInto(b *amqpBody) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		var texts []jsontext.Value
		if err := into(&texts, "an array of strings")(raw); err != nil {
			return err
		}
		b.Data = make([][]byte, len(texts))
		for i, text := range texts {
			if err := base64Into(&b.Data[i])(text); err != nil {
				return err
			}
		}
		return nil
	}
}

func sequenceInto(b *amqpBody) func(jsontext.Value) error {
	return func(raw jsontext.Value) error {
		v, err := decodeValue(raw)
		rows, ok := v.([]any)
		for _, row := range rows {
			items, isRow := row.([]any)
			b.Sequence, ok = append(b.Sequence, items), ok && isRow
		}
		if err == nil && !ok {
			err = errors.New("must be an array of arrays")
		}
		return err
	}
}

func encodeSequence(b *amqpBody) (any, error) {
	if len(b.Data) > 0 || len(b.Sequence) == 0 {
		return nil, nil
	}
	rows := make([]any, len(b.Sequence))
	for i, row := range b.Sequence {
		rows[i] = row
	}
	return encodeValue(rows)
}
