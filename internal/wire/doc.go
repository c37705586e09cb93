// Package wire takes encoded AMQP messages apart and puts them together again without decoding what it need not touch.
//
// A message that is sent again must be the same message. Decoding and encoding it would lose what the client library has
// no type for: a symbol comes back as a string, a null body as none, a decimal not at all. So the sections that stay are
// copied byte for byte, and of a map only the entries that go are left out. Everything here is a pure function that never
// panics, whatever the bytes.
package wire
