package deadletter

import (
	"bytes"
	"strings"
)

// A Fact is something that a message says of itself besides its MessageId, body and application properties. Its value is safe
// to show.
type Fact struct{ Name, Value string }

// Facts returns what is known, in the order in which people read it, and leaves out what the message does not say. A message of
// another queue than the one that is given was forwarded.
func (l *DeadLetter) Facts(queue string) []Fact {
	var out []Fact
	add := func(name, value string) {
		if value != "" {
			out = append(out, Fact{name, Visible(value)})
		}
	}
	if p := l.Message.Properties; p != nil {
		text := func(name string, s *string) {
			if s != nil {
				add(name, *s)
			}
		}
		text("Subject", p.Subject)
		if p.CorrelationID != nil {
			add("Correlation id", Value(p.CorrelationID))
		}
		text("Content type", p.ContentType)
		text("Content encoding", p.ContentEncoding)
		text("Session", p.GroupID)
		text("Reply to", p.ReplyTo)
	}
	if ttl, ok := l.TimeToLive(); ok {
		add("Time to live", ttl.String())
	}
	if at, ok := l.expiresAt(); ok {
		add("Expires", stamp(at))
	}
	if source := propertyText(l.Message.Annotations[annotationSource]); !strings.EqualFold(source, queue) {
		add("Forwarded from", source)
	}
	return out
}

// Content returns the bytes of the body as they were sent, and whether it is made of bytes or text at all.
func (l *DeadLetter) Content() ([]byte, bool) {
	switch v := l.Message.Value.(type) {
	case string:
		return []byte(v), true
	case []byte:
		return v, true
	}
	return bytes.Join(l.Message.Data, nil), len(l.Message.Data) > 0
}
