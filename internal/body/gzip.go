package body

import (
	"bytes"
	"compress/gzip"
	"io"
	"mime"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker/reason"
)

// decompress undoes the content encoding that the message names.
func (d *Decoded) decompress(m *azservicebus.ReceivedMessage, o Options) *reason.Refusal {
	compressed, refusal := saysGzip(m)
	if refusal != nil || !compressed {
		return refusal
	}
	if len(d.Bytes) == 0 {
		return nil // An empty body is empty, whatever its label says.
	}
	content, err := gunzip(d.Bytes, o.maxBytes())
	if err != nil {
		return reason.Refuse(reason.InvalidCompression, "The message says that its body is gzip, but its %d bytes are not one or several "+
			"complete gzip members and nothing else%s. The sender must correct the body or the label.", len(d.Bytes), insteadOfGzip(d.Bytes))
	}
	if len(content) > o.maxBytes() {
		return reason.Refuse(reason.TooLarge, "The body of %d bytes unpacks to more than %d. The sender must send less, or a reference "+
			"to the content.", len(d.Bytes), o.maxBytes())
	}
	d.Bytes, d.Gunzipped = content, true
	return nil
}

// insteadOfGzip tells what the bytes begin like.
func insteadOfGzip(data []byte) string {
	begins := func(with string) bool { return bytes.HasPrefix(data, []byte(with)) }
	switch {
	case begins("\x1f\x8b"):
		return ": they begin like gzip, and are cut, damaged or followed by something"
	case begins("{"), begins("["), begins("\ufeff"):
		return ": they begin like JSON that was unpacked on the way or never packed"
	case begins("H4sI"):
		return ": they begin like gzip in base64"
	case begins("\x78\x01"), begins("\x78\x9c"), begins("\x78\xda"):
		return ": they begin like zlib"
	}
	return ""
}

// gunzip returns the content of all members, of which it reads at most limit+1 bytes. Whatever follows the last member is an
// error, and so are a missing end and a wrong checksum within the limit.
func gunzip(data []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	content.Grow(min(4*len(data), limit) + bytes.MinRead)
	_, err = content.ReadFrom(io.LimitReader(r, int64(limit)+1))
	return content.Bytes(), err
}

// saysGzip reads the labels of a message: the application property Content-Encoding (in any case, with or without the
// hyphen, or as Rebus names it), the AMQP property content-encoding and the content type. One that says gzip is enough.
func saysGzip(m *azservicebus.ReceivedMessage) (bool, *reason.Refusal) {
	compressed := gzipType(m.ContentType)
	labels, refusal := encodings(m)
	for _, label := range labels {
		gzips := 0
		for _, coding := range strings.Split(label, ",") {
			coding, _, _ = strings.Cut(strings.ToLower(coding), ";")
			switch coding = strings.TrimSpace(coding); {
			case coding == "gzip" || coding == "x-gzip":
				gzips++
			case !isPlain(coding) && !isCharset(coding):
				gzips = 2
			}
		}
		if gzips > 1 {
			return false, reason.Refuse(reason.UnsupportedEncoding, "The content encoding %s is not supported. The sender must use gzip, once, or none.",
				shorten(label))
		}
		compressed = compressed || gzips == 1
	}
	return compressed, refusal
}

// encodings lists the labels, and refuses one that is not text.
func encodings(m *azservicebus.ReceivedMessage) ([]string, *reason.Refusal) {
	var labels []string
	if raw := m.RawAMQPMessage; raw != nil && raw.Properties != nil && raw.Properties.ContentEncoding != nil {
		labels = append(labels, *raw.Properties.ContentEncoding)
	}
	for name, v := range properties(m) {
		if !isEncodingName(name) || v == nil {
			continue
		}
		label, ok := v.(string)
		if !ok {
			return nil, reason.Refuse(reason.UnsupportedEncoding, "The application property %s is of type %s, not a string. "+
				"The sender must set it to gzip, or leave it out.", shorten(name), TypeName(v))
		}
		labels = append(labels, label)
	}
	return labels, nil
}

func isEncodingName(name string) bool {
	switch strings.ToLower(name) {
	case "content-encoding", "contentencoding", "content_encoding", "rbs2-content-encoding":
		return true
	}
	return false
}

// properties are the application properties, also of a message that has them in its raw form alone.
func properties(m *azservicebus.ReceivedMessage) map[string]any {
	if m.ApplicationProperties == nil && m.RawAMQPMessage != nil {
		return m.RawAMQPMessage.ApplicationProperties
	}
	return m.ApplicationProperties
}

func gzipType(contentType *string) bool {
	if contentType == nil {
		return false
	}
	media, _, _ := mime.ParseMediaType(*contentType)
	switch media {
	case "application/gzip", "application/x-gzip", "application/gzip-compressed", "application/x-gzip-compressed":
		return true
	}
	return strings.HasSuffix(media, "+gzip")
}

// shorten quotes a label of the sender for a refusal, cut to what a label may reasonably have.
func shorten(label string) string {
	const most = 40
	if len(label) > most {
		return quote(strings.ToValidUTF8(label[:most], "")) + "..."
	}
	return quote(label)
}

func quote(s string) string { return strconv.QuoteToASCII(s) }
