package deadletter

import (
	"slices"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/wire"
	"github.com/orderworker/orderworker/worker"
)

// longestTTL is the longest time to live that the protocol can carry: 2^32-1 milliseconds. A longer one would wrap around.
const longestTTL = (1<<32 - 1) * time.Millisecond

// Copy returns the encoded message to send again. Body, properties and footer are the same bytes; so are the entries of
// application properties and annotations that stay, whatever their types. Left out are what the broker and the worker
// wrote when they dead-lettered the message, and what the broker writes anew for each message. A new time to live replaces the
// old one and the times that would contradict it. The resubmit count and time are added, unless plain.
func Copy(l *DeadLetter, c Choice, now time.Time, plain bool) ([]byte, error) {
	sections, err := wire.Split(l.Encoded)
	if err != nil {
		return nil, err
	}
	added := []wire.Entry{}
	if !plain {
		n, _ := l.resubmitCount()
		added = append(added, wire.Int(PropertyResubmitCount, int32(n+1)), wire.Timestamp(PropertyResubmitAt, now))
	}
	out, err := appendHeader(make([]byte, 0, len(l.Encoded)+128), l.Message.Header, c.NewTTL)
	for _, s := range sections {
		if err != nil {
			return nil, err
		}
		if s.Code > wire.ApplicationProperties && added != nil {
			out, added = appendAdded(out, added), nil
		}
		switch s.Code {
		case wire.Header, wire.DeliveryAnnotations:
			// The header is written already, and the annotations were for one delivery.
		case wire.MessageAnnotations:
			out, err = appendFiltered(out, s, brokerAnnotation, nil)
		case wire.Properties:
			out, err = appendProperties(out, s, l.Message.Properties, c.NewTTL)
		case wire.ApplicationProperties:
			out, err = appendFiltered(out, s, deadLetterProperty, added)
			added = nil
		default:
			out = append(out, s.Encoded...)
		}
	}
	return appendAdded(out, added), err
}

func appendAdded(out []byte, added []wire.Entry) []byte {
	if len(added) == 0 {
		return out
	}
	return wire.AppendMap(out, wire.ApplicationProperties, added)
}

// appendFiltered appends a section without the entries that go and with those that come. A map from which everything is
// gone is left out.
func appendFiltered(out []byte, s wire.Section, gone func(string) bool, added []wire.Entry) ([]byte, error) {
	entries, err := wire.Entries(s.Content)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e wire.Entry) bool {
		name, ok := e.Name()
		return ok && (gone(name) || slices.ContainsFunc(added, func(a wire.Entry) bool { n, _ := a.Name(); return n == name }))
	})
	entries = append(entries, added...)
	if len(entries) == 0 {
		return out, nil
	}
	return wire.AppendMap(out, s.Code, entries), nil
}

// appendHeader writes the header for a new message: it was never delivered.
func appendHeader(out []byte, h *amqp.MessageHeader, ttl time.Duration) ([]byte, error) {
	if h == nil && ttl <= 0 {
		return out, nil
	}
	fresh := amqp.MessageHeader{Priority: 4}
	if h != nil {
		fresh = amqp.MessageHeader{Durable: h.Durable, Priority: h.Priority, TTL: h.TTL}
	}
	if ttl > 0 {
		fresh.TTL = ttl
	}
	b, err := (&amqp.Message{Header: &fresh}).MarshalBinary()
	return append(out, b...), err
}

// appendProperties copies the properties, except for the two times that a new time to live would contradict.
func appendProperties(out []byte, s wire.Section, p *amqp.MessageProperties, ttl time.Duration) ([]byte, error) {
	if ttl <= 0 || p == nil || (p.AbsoluteExpiryTime == nil && p.CreationTime == nil) {
		return append(out, s.Encoded...), nil
	}
	changed := *p
	changed.AbsoluteExpiryTime, changed.CreationTime = nil, nil
	b, err := (&amqp.Message{Properties: &changed}).MarshalBinary()
	return append(out, b...), err
}

// deadLetterProperty reports whether an application property was written when a message was dead-lettered.
func deadLetterProperty(name string) bool {
	switch name {
	case propertyReason, propertyDescription, worker.PropertyReason, worker.PropertyDocumentID, worker.PropertyPartition, worker.PropertyStoredHash,
		worker.PropertyArrivedHash, worker.PropertyPaths, worker.PropertyProgram, worker.PropertyVersion:
		return true
	}
	return false
}

// brokerAnnotation reports whether the broker writes an annotation for each message that it takes or hands out.
func brokerAnnotation(name string) bool {
	switch name {
	case annotationSequence, annotationEnqueuedAt, annotationLockedUntil, annotationSource, annotationState,
		"x-opt-enqueue-sequence-number", "x-opt-scheduled-enqueue-time", "x-opt-lock-token":
		return true
	}
	return false
}
