package body

import "errors"

// DefaultMaxBytes is the default bound of a decoded body. A Cosmos DB document may have 2 MB; what lies between is room for
// the fields that the product adds and for numbers that are kept as text too.
const DefaultMaxBytes = 1_900_000

// Options say how bodies are read. The zero value is the default of every field.
type Options struct {
	// MaxBytes bounds the decoded body, after decompression. Defaults to [DefaultMaxBytes].
	MaxBytes int
	// RefuseDataContract refuses the envelopes of the old .NET serialiser. Defaults to unwrapping them.
	RefuseDataContract bool
	// RefuseValue refuses AMQP value bodies even when they are text or binary. Defaults to taking them.
	RefuseValue bool
	// Binary takes bodies of any bytes: a byte order mark is kept, UTF-8 is not required and blanks are content. Envelopes
	// and compression are undone all the same.
	Binary bool
}

// Validate reports all faults at once.
func (o Options) Validate() error {
	if o.MaxBytes < 0 {
		return errors.New("body: MaxBytes must not be negative; zero is the default")
	}
	return nil
}

func (o Options) maxBytes() int {
	if o.MaxBytes <= 0 {
		return DefaultMaxBytes
	}
	return o.MaxBytes
}
