package body

import (
	"bytes"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker/reason"
)

// Decoded is the body of a message and how it was found.
type Decoded struct {
	// Bytes are the content. They may share memory with the message and must not be changed.
	Bytes []byte
	// Section is the kind of AMQP body: "data", "value(string)" or "value(binary)".
	Section string
	// Unwrapped tells that a .NET envelope was removed, Gunzipped that the body was compressed, and BOM that it began with
	// a byte order mark.
	Unwrapped, Gunzipped, BOM bool
}

// Decode returns the content of a message's body, or the refusal that the message is to be dead-lettered with.
func Decode(m *azservicebus.ReceivedMessage, o Options) (Decoded, *reason.Refusal) {
	d, refusal := section(m, o)
	if refusal != nil {
		return Decoded{}, refusal
	}
	// Senders compress before they wrap or the other way round, so an envelope is looked for on both sides, once.
	if refusal = d.unwrap(o); refusal == nil {
		refusal = d.decompress(m, o)
	}
	if refusal == nil && !d.Unwrapped {
		refusal = d.unwrap(o)
	}
	if refusal == nil {
		refusal = d.checkSize(o)
	}
	if refusal == nil && !o.Binary {
		refusal = d.text()
	}
	if refusal == nil && len(d.Bytes) == 0 {
		refusal = reason.Refuse(reason.EmptyBody, "The message has no body (its %s section is empty). The sender must send the content again.", d.Section)
	}
	if refusal != nil {
		return Decoded{}, refusal
	}
	return d, nil
}

func (d *Decoded) checkSize(o Options) *reason.Refusal {
	if len(d.Bytes) <= o.maxBytes() {
		return nil
	}
	return reason.Refuse(reason.TooLarge, "The body has %d bytes; at most %d can be stored. The sender must send less, "+
		"or a reference to the content.", len(d.Bytes), o.maxBytes())
}

// utf8BOM is the byte order mark, U+FEFF in UTF-8.
var utf8BOM = []byte("\xef\xbb\xbf")

// text prepares a text body.
func (d *Decoded) text() *reason.Refusal {
	content, refusal := text(d.Bytes, d.Gunzipped)
	d.BOM = len(content) < len(d.Bytes)
	d.Bytes = content
	return refusal
}

// Text returns content that is to be text: one byte order mark is dropped, UTF-8 is required, and blanks alone are no
// content.
func Text(content []byte) ([]byte, *reason.Refusal) { return text(content, false) }

func text(content []byte, gunzipped bool) ([]byte, *reason.Refusal) {
	content = bytes.TrimPrefix(content, utf8BOM)
	if refusal := checkText(content, gunzipped); refusal != nil {
		return nil, refusal
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, reason.Refuse(reason.EmptyBody, "The body is empty or blank (length %d). The sender must send the content again.", len(content))
	}
	return content, nil
}
