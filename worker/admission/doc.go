// Package admission turns a received message into a key, a body and a fingerprint, or into the reason why it can never be
// one. It decides what "the same message" means, and looks at nothing but the message itself.
//
// A message is admitted whole or refused at its first delivery with a code of package reason. There is no fallback: a
// key that is not where the configuration says is missing, and a body that cannot be read is not empty. [Admitter.Admit] is
// a pure function of the message and the configuration, safe for concurrent use, and never panics. Its memory is at most
// a small multiple of the message, and of the bound of the body when it is compressed.
package admission
