package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// MaxDocumentID bounds the result of [Key.DocumentID] in bytes. It leaves room below 255 for the names of further documents
// of the same message: point reads are known to fail from about 264 characters on, although creates go through.
const MaxDocumentID = 200

// MaxPartID bounds the result of [PartDocumentID] in bytes.
const MaxPartID = 255

// The forms of a document id. A tilde that is followed by two upper-case hexadecimal digits is an escaped byte; one that is
// followed by a lower-case letter opens a form, so that neither can be taken for the other.
const (
	tagConsumer   = "~for."    // ~for.<consumer>.<rest>
	tagEvent      = "~event."  // ~event.<source>.<id>
	tagOdd        = "~odd."    // ~odd.<consumer>.<kind>.<source>.<value>: a key that no other form fits
	tagDigest     = "~sha256." // ~sha256.<hex>: an id that would be too long
	tagPart       = "~part."   // <guard id>~part.<name>
	tagPartDigest = "~part-sha256."
	tagMessage    = "~message-sha256." // an outgoing MessageId that would be too long
)

// typed are the kinds whose form is ~<kind>.<value>.
var typed = [...]Kind{Ulong, UUID, Binary, Number}

// DocumentID returns the id of the first document of the key; it is the partition key value too. It never fails, no
// two keys share an id, and [ParseDocumentID] finds the key again unless the id had to be shortened to a digest.
func (k Key) DocumentID() string {
	id := k.fullID()
	if len(id) <= MaxDocumentID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return tagDigest + hex.EncodeToString(sum[:])
}

// fullID is the id without its bound. It is injective, so its digest is as good as the key's.
func (k Key) fullID() string {
	rest, ok := k.rest()
	switch {
	case !ok:
		return tagOdd + field(k.Consumer) + "." + field(string(k.Kind)) + "." + field(k.Source) + "." + escape(k.Value)
	case k.Consumer != "":
		return tagConsumer + field(k.Consumer) + "." + rest
	}
	return rest
}

// rest returns the id of a key without its consumer, and false when the key is not well-formed for its kind.
func (k Key) rest() (string, bool) {
	if k.Kind == CloudEvent {
		return tagEvent + field(k.Source) + "." + escape(k.Value), true
	}
	if k.Source != "" || k.Value == "" {
		return "", false
	}
	if k.Kind == String {
		return escape(k.Value), true
	}
	for _, kind := range typed {
		if k.Kind == kind {
			return "~" + string(kind) + "." + escape(k.Value), true
		}
	}
	return "", false
}

// PartDocumentID returns the id of a further document of the same message, such as part "line-1". Documents of different
// messages or parts never share an id, and none equals the id of a key. The documentID is a result of [Key.DocumentID].
func PartDocumentID(documentID, part string) string {
	id := documentID + tagPart + field(part)
	if len(id) <= MaxPartID {
		return id
	}
	h := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(documentID)))
	h.Write(size[:])
	h.Write([]byte(documentID))
	h.Write([]byte(part))
	return tagPartDigest + hex.EncodeToString(h.Sum(nil))
}

// MaxMessageID is the length of the longest MessageId that Service Bus takes.
const MaxMessageID = 128

// OutgoingMessageID returns the MessageId of a message that the message with a document id sends under a name. It is printable
// ASCII of at most [MaxMessageID] bytes, and injective.
func OutgoingMessageID(documentID, name string) string {
	id := PartDocumentID(documentID, name)
	if len(id) <= MaxMessageID {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return tagMessage + hex.EncodeToString(digest[:])
}

// escape writes every byte that is not ordinary as ~XX. The ids "." and ".." address other resources and are escaped whole.
func escape(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "~2E")
	}
	return escapeBytes(s, ordinary)
}

// field is escape for a part of an id that a dot ends.
func field(s string) string {
	return escapeBytes(s, func(c byte) bool { return c != '.' && ordinary(c) })
}

func escapeBytes(s string, keep func(byte) bool) string {
	odd := 0
	for i := range len(s) {
		if !keep(s[i]) {
			odd++
		}
	}
	if odd == 0 {
		return s
	}
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+2*odd)
	for i := range len(s) {
		if c := s[i]; keep(c) {
			out = append(out, c)
		} else {
			out = append(out, '~', digits[c>>4], digits[c&15])
		}
	}
	return string(out)
}

// ordinary reports whether an id may hold the byte as it is: the characters that a URL path needs no escape for, without the
// tilde. Then the id that is signed, the id that is sent and the id that a gateway decodes are one text.
func ordinary(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-_.:@$&+=", c) >= 0
}
