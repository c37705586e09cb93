// Package identity says which messages are the same: the key of a message, and the document id that is made of it.
//
// A key is opaque and case-sensitive. Nothing is trimmed, folded or normalised: two keys that differ in one byte are two
// keys. [Key.DocumentID] gives every key its own document id, and no id addresses anything but its own document, whatever
// characters a sender used: an id holds only characters that no URL, header or JSON text has to escape, and at most
// [MaxDocumentID] of them. A key of such characters is its own id, unchanged.
//
// Everything here is a pure function over plain values and safe for concurrent use.
package identity
