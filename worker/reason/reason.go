// Package reason holds the fixed codes that say why a message was dead-lettered.
//
// A code is part of the product's interface: alerts, filters and people match it, so a code never changes its meaning and
// is never reused. The codes of the broker itself are here too, so that a review can treat all of them alike.
package reason

// A message that cannot be admitted: nothing was looked up or stored.
const (
	MissingMessageID         = "MissingMessageId"         // the key is absent, empty or blank
	MissingPartition         = "MissingPartition"         // the partition is absent or cannot be used
	UnsupportedMessageIDType = "UnsupportedMessageIdType" // the key is of a type that cannot be a key
	KeyTooLong               = "KeyTooLong"               // the key is longer than the configured bound
	InvalidKey               = "InvalidKey"               // the key is not valid text
	EmptyBody                = "EmptyBody"                // no body, or only blanks
	UnsupportedBody          = "UnsupportedBody"          // an AMQP body that carries no bytes: a list, a map, a number
	DataContractBody         = "DataContractBody"         // a legacy .NET envelope that cannot be unwrapped
	UnsupportedEncoding      = "UnsupportedEncoding"      // a content encoding other than gzip or identity
	InvalidCompression       = "InvalidCompression"       // the label says gzip and the bytes do not
	InvalidUTF8              = "InvalidUTF8"              // the body is not UTF-8 text
	NotJSON                  = "NotJSON"                  // the body is not one JSON value
	DuplicateName            = "DuplicateName"            // an object names one member twice
	BodyNotObject            = "BodyNotObject"            // JSON, but not an object
	TooDeep                  = "TooDeep"                  // nested deeper than the store takes
	TooLarge                 = "TooLarge"                 // larger than the bound or than the store takes
	NumberOutOfRange         = "NumberOutOfRange"         // a number that no double can hold
	MissingSelection         = "MissingSelection"         // the part of the body that is to be used is absent
	InvalidEnvelope          = "InvalidEnvelope"          // a CloudEvents envelope that breaks its own rules
	UnsupportedContentType   = "UnsupportedContentType"   // strict mode only: the content type does not say JSON
)

// A message that was judged against the store, or that the store can never take.
const (
	ContentConflict     = "ContentConflict"     // other content is stored under the key
	StoredHashMissing   = "StoredHashMissing"   // the stored document has no hash to compare
	StoredRecordUnknown = "StoredRecordUnknown" // a record is stored that only a newer version can read
	KeyCollision        = "KeyCollision"        // the document stored under this id belongs to another key
	DocumentConflict    = "DocumentConflict"    // a document other than the first exists already
	ConflictUnread      = "ConflictUnread"      // the store refused the create but has no document to compare
	DocumentsMissing    = "DocumentsMissing"    // some of the stored documents are missing
	ClaimExpired        = "ClaimExpired"        // an earlier attempt claimed the key and may have got half way
	PartitionFull       = "PartitionFull"       // the logical partition is full
	NeverStorable       = "NeverStorable"       // the store refuses this message for a cause of its own
)

// A message that the handler refused, or that kept failing.
const (
	Rejected            = "Rejected"            // the handler's default code; it may give its own
	InvalidEffects      = "InvalidEffects"      // the handler returned documents that can never be stored
	HandlerPanic        = "HandlerPanic"        // the handler panicked at every delivery
	HandlerError        = "HandlerError"        // the handler failed at every delivery
	Timeout             = "Timeout"             // the handler was too slow at every delivery
	StateKeptChanging   = "StateKeptChanging"   // what the handler read had changed at every commit
	ChangeTargetMissing = "ChangeTargetMissing" // a document that is to be patched is not stored
	UnknownType         = "UnknownType"         // the program has no handler for messages of this type
)

// The broker's own codes.
const (
	MaxDeliveryCountExceeded = "MaxDeliveryCountExceeded"
	TTLExpired               = "TTLExpiredException"
	HeaderSizeExceeded       = "HeaderSizeExceeded"
)
