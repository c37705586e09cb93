// Package body turns the body of an AMQP message into the bytes that its sender meant, or says why it cannot.
//
// Service Bus senders put a JSON text into one data section, into several, into an AMQP value (JMS), into the envelope of the
// old .NET serialiser, compressed, or behind a byte order mark. [Decode] undoes exactly these, each by its own rules and each
// strictly: nothing is searched for and nothing is guessed, and what does not fit is refused with a code of package reason.
// No body is ever taken for empty because it could not be read.
//
// The functions are pure and safe for concurrent use. They never panic, whatever the message, and beyond the message itself
// they allocate at most a small multiple of Options.MaxBytes.
package body
