// Package fingerprint says when two bodies are the same content.
//
// A [Fingerprint] is a SHA-256 hash together with the [Parameters] it was made by. Both are stored with a document. When a
// message meets a stored document, it is hashed by the stored parameters, never by its own configuration: so a changed setting
// or a new version of this product does not turn an honest retry into a conflict. A version of the parameters never changes its
// result; golden vectors hold that.
//
// # The canonical form of version 1
//
// The form "json" hashes a JSON text that is made from the body as follows. Members of an object stand in the order of the
// UTF-8 bytes of their names. There is no space between tokens. Strings are compared by value: a string is written in
// quotes with \" \\ \b \t \n \f \r and, for other characters below U+0020, \u00xx in lower case as its only escapes;
// nothing is normalised, and a string is never taken for a date or a number. Numbers are compared by exact decimal value:
// the shortest whole coefficient, then e and the exponent unless that is zero, so that 40, 40.0 and 4e1 are all written
// 4e1, and zero of either sign is 0. No number passes through a double. Arrays keep their order. A member that is null
// differs from one that is absent.
//
// With Ignore, the values at these JSON pointers are left out of that text. With Only, the text is an object whose names
// are those pointers of Only that exist in the body, in order, each with the canonical form of its value.
//
// The form "bytes" hashes the body as it is.
//
// Everything here is a pure function, safe for concurrent use. Nesting is bounded by [MaxDepth], so bodies are read by recursion.
// Memory grows with the size of the body alone: a path is written once however many values lie below it, and a number with a
// huge exponent takes no more than its text. An object whose members are out of order is copied once at each level around
// it. Tests hold the memory with bodies of 1.9 MB made to take the most.
package fingerprint
