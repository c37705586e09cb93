package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	// maxSessionID bounds the session and the partition key of a message in bytes, as Service Bus does.
	maxSessionID = 128
	// messageOverhead is kept free in a message for what is not counted one by one: its headers, and the names of its parts.
	messageOverhead = 4 << 10
)

// checkMessages finds what the destination would refuse for good, or must not be sent to, before anything is committed.
func (c OutboxConfig) checkMessages(messages []Outgoing, replay time.Duration) error {
	if len(messages) == 0 {
		if replay != 0 {
			return errors.New("a ReplayReply without Messages. Return the reply, too")
		}
		return nil
	}
	if absent(c.Sender) {
		return errors.New("outgoing messages, and this program has no destinations. Name them: Config.Outbox, or WORKER_DESTINATIONS")
	}
	if replay < 0 || replay%time.Second != 0 {
		return fmt.Errorf("a ReplayReply of %v, which is not a number of whole seconds", replay)
	}
	names := map[string]bool{}
	for i, o := range messages {
		if err := c.checkMessage(o); err != nil {
			return fmt.Errorf("a message, Messages[%d] (%+q to %+q), that %w", i, clip(o.Name, maxReason), clip(o.To, maxReason), err)
		}
		if names[o.Name] {
			return fmt.Errorf("a second message with the Name %+q, Messages[%d]. Names are unique within a message", clip(o.Name, maxReason), i)
		}
		names[o.Name] = true
	}
	return nil
}

// checkMessage returns the rest of a sentence that begins with the message.
func (c OutboxConfig) checkMessage(o Outgoing) error {
	switch {
	case o.Name == "" || !utf8.ValidString(o.Name):
		return errors.New("has no Name that is text. Its MessageId is made of it")
	case o.To == "":
		return errors.New("has no To. Name a queue or topic; a Reply needs a request with ReplyTo")
	case !slices.ContainsFunc(c.Destinations, func(d string) bool { return sameEntity(d, o.To) }):
		return errors.New("goes to none of the destinations of this program. Add it to Config.Outbox.Destinations (WORKER_DESTINATIONS), or Reject the message")
	case len(o.SessionID) > maxSessionID || len(o.ReplyToSessionID) > maxSessionID || len(o.PartitionKey) > maxSessionID:
		return fmt.Errorf("has a SessionID, ReplyToSessionID or PartitionKey of more than %d bytes. Shorten it", maxSessionID)
	case o.SessionID != "" && o.PartitionKey != "" && o.SessionID != o.PartitionKey:
		return errors.New("has a PartitionKey that is not its SessionID. Leave it out")
	case o.TTL < 0:
		return fmt.Errorf("has the TTL %v. Give a positive one, or none", o.TTL)
	}
	size := messageOverhead + len(o.Body) + len(o.Subject) + len(o.CorrelationID) + len(o.ReplyTo) + len(o.ContentType)
	for name, value := range o.Properties {
		size += len(name) + len(fmt.Sprint(value))
	}
	if size > c.MaxMessageBytes {
		return fmt.Errorf("has about %d bytes with its properties, and its destination takes %d. Send large content by reference", size, c.MaxMessageBytes)
	}
	return nil
}
