package deadletter

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/wire"
)

// The names under which the broker writes what it knows.
const (
	annotationSequence    = "x-opt-sequence-number"
	annotationEnqueuedAt  = "x-opt-enqueued-time"
	annotationLockedUntil = "x-opt-locked-until"
	annotationSource      = "x-opt-deadletter-source"
	annotationState       = "x-opt-message-state"

	propertyReason      = "DeadLetterReason"
	propertyDescription = "DeadLetterErrorDescription"
)

// A LockToken names one delivery of a locked message. It is a UUID in the order of bytes that AMQP uses.
type LockToken [16]byte

// A DeadLetter is one dead letter as the broker gives it out, before anything is interpreted. Its values can be of any type:
// anyone who may send can write anything.
type DeadLetter struct {
	// Sequence is the broker's number of the message, the one thing that tells messages with equal MessageIds apart. It is
	// zero when the broker did not say, or said it in a section that cannot be read.
	Sequence int64
	// EnqueuedAt is when the message came into the queue, by the broker's clock; zero when unknown.
	EnqueuedAt time.Time
	// Encoded is the message as the broker keeps it.
	Encoded []byte
	// Message is Encoded, decoded.
	Message *amqp.Message
	// Foreign names the values of types that the client library cannot decode, such as decimals, and Damage what could not be
	// decoded at all.
	Foreign, Damage []string
}

// A LockedMessage is a dead-lettered message that is locked. What it says is peeked.
type LockedMessage struct {
	// Sequence is zero when the delivery did not say it in a form that can be read.
	Sequence int64
	Lock     LockToken
}

// Parse reads an encoded message as the broker keeps it. It accepts every message and takes of it what it can.
func Parse(encoded []byte) *DeadLetter {
	m, foreign, damage := wire.Decode(encoded)
	l := &DeadLetter{Encoded: encoded, Message: m, Foreign: foreign, Damage: damage, Sequence: SequenceOf(m)}
	l.EnqueuedAt, _ = m.Annotations[annotationEnqueuedAt].(time.Time)
	return l
}

// SequenceOf returns the broker's number of a message, zero when it does not say.
func SequenceOf(m *amqp.Message) int64 {
	n, _ := m.Annotations[annotationSequence].(int64)
	return n
}

// MessageID returns the MessageId as a person should see it, and whether it is a text, as it should be.
func (l *DeadLetter) MessageID() (string, bool) {
	if l.Message.Properties == nil {
		return "", false
	}
	switch id := l.Message.Properties.MessageID.(type) {
	case nil:
		return "", false
	case string:
		return id, true
	default:
		return Value(id), false
	}
}

// Reason returns the reason code of the dead letter, and Description the text beside it; empty when there is none.
func (l *DeadLetter) Reason() string {
	return propertyText(l.Message.ApplicationProperties[propertyReason])
}

// Description returns the text that was given with the reason.
func (l *DeadLetter) Description() string {
	return propertyText(l.Message.ApplicationProperties[propertyDescription])
}

// propertyText shows a value that should be a string and need not be one.
func propertyText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return Value(v)
}

// Deliveries returns how many deliveries of the message ended without success.
func (l *DeadLetter) Deliveries() uint32 {
	if l.Message.Header == nil {
		return 0
	}
	return l.Message.Header.DeliveryCount
}

// deferred reports whether somebody has deferred the message, so that the broker hands it out by its number alone.
func (l *DeadLetter) deferred() bool {
	switch s := l.Message.Annotations[annotationState].(type) {
	case int32:
		return s == 1
	case int64:
		return s == 1
	}
	return false
}

// sessionID returns the session of the message, and whether it has one.
func (l *DeadLetter) sessionID() (string, bool) {
	if p := l.Message.Properties; p != nil && p.GroupID != nil {
		return *p.GroupID, *p.GroupID != ""
	}
	return "", false
}

// TimeToLive returns the time to live that the message was sent with, and whether it had one.
func (l *DeadLetter) TimeToLive() (time.Duration, bool) {
	if l.Message.Header == nil || l.Message.Header.TTL <= 0 {
		return 0, false
	}
	return l.Message.Header.TTL, true
}

// expiresAt returns when the message expires or expired, and whether it does at all.
func (l *DeadLetter) expiresAt() (time.Time, bool) {
	if ttl, ok := l.TimeToLive(); ok && !l.EnqueuedAt.IsZero() {
		return l.EnqueuedAt.Add(ttl), true
	}
	if p := l.Message.Properties; p != nil && p.AbsoluteExpiryTime != nil && !p.AbsoluteExpiryTime.IsZero() {
		return *p.AbsoluteExpiryTime, true
	}
	return time.Time{}, false
}

// Received returns the message in the form in which the worker receives messages. The client of the SDK cannot make this
// form of every message: it stops at a DeadLetterReason that is no string, which any sender can write.
func (l *DeadLetter) Received() *azservicebus.ReceivedMessage {
	m := &azservicebus.ReceivedMessage{
		RawAMQPMessage: annotated(l.Message), ApplicationProperties: l.Message.ApplicationProperties,
	}
	if l.Message.Header != nil && l.Message.Properties != nil {
		m.DeliveryCount = l.Message.Header.DeliveryCount + 1
	}
	if l.Sequence != 0 {
		m.SequenceNumber = &l.Sequence
	}
	if !l.EnqueuedAt.IsZero() {
		m.EnqueuedTime = &l.EnqueuedAt
	}
	if len(l.Message.Data) == 1 {
		m.Body = l.Message.Data[0]
	}
	if p := l.Message.Properties; p != nil {
		m.MessageID, _ = p.MessageID.(string)
		if id, ok := p.CorrelationID.(string); ok {
			m.CorrelationID = &id
		}
		m.ContentType, m.Subject, m.To = p.ContentType, p.Subject, p.To
		m.ReplyTo, m.ReplyToSessionID, m.SessionID = p.ReplyTo, p.ReplyToGroupID, p.GroupID
	}
	return m
}

// annotated returns a message in the type of the SDK, sharing its values.
func annotated(m *amqp.Message) *azservicebus.AMQPAnnotatedMessage {
	out := &azservicebus.AMQPAnnotatedMessage{
		ApplicationProperties: m.ApplicationProperties, MessageAnnotations: m.Annotations,
		DeliveryAnnotations: m.DeliveryAnnotations, Footer: m.Footer, DeliveryTag: m.DeliveryTag,
		Body: azservicebus.AMQPAnnotatedMessageBody{Data: m.Data, Sequence: m.Sequence, Value: m.Value},
	}
	if h := m.Header; h != nil {
		out.Header = &azservicebus.AMQPAnnotatedMessageHeader{
			DeliveryCount: h.DeliveryCount, Durable: h.Durable, FirstAcquirer: h.FirstAcquirer, Priority: h.Priority, TTL: h.TTL,
		}
	}
	if p := m.Properties; p != nil {
		out.Properties = &azservicebus.AMQPAnnotatedMessageProperties{
			AbsoluteExpiryTime: p.AbsoluteExpiryTime, ContentEncoding: p.ContentEncoding, ContentType: p.ContentType,
			CorrelationID: p.CorrelationID, CreationTime: p.CreationTime, GroupID: p.GroupID, GroupSequence: p.GroupSequence,
			MessageID: p.MessageID, ReplyTo: p.ReplyTo, ReplyToGroupID: p.ReplyToGroupID, Subject: p.Subject, To: p.To, UserID: p.UserID,
		}
	}
	return out
}

// fromAnnotated returns a dead-lettered message of one that did not come from the broker, such as one read from an export.
func fromAnnotated(m *azservicebus.AMQPAnnotatedMessage) (*DeadLetter, error) {
	out := &amqp.Message{
		ApplicationProperties: m.ApplicationProperties, Annotations: m.MessageAnnotations,
		DeliveryAnnotations: m.DeliveryAnnotations, Footer: m.Footer,
		Data: m.Body.Data, Sequence: m.Body.Sequence, Value: m.Body.Value,
	}
	if h := m.Header; h != nil {
		out.Header = &amqp.MessageHeader{
			DeliveryCount: h.DeliveryCount, Durable: h.Durable, FirstAcquirer: h.FirstAcquirer, Priority: h.Priority, TTL: h.TTL,
		}
	}
	if p := m.Properties; p != nil {
		out.Properties = &amqp.MessageProperties{
			AbsoluteExpiryTime: p.AbsoluteExpiryTime, ContentEncoding: p.ContentEncoding, ContentType: p.ContentType,
			CorrelationID: p.CorrelationID, CreationTime: p.CreationTime, GroupID: p.GroupID, GroupSequence: p.GroupSequence,
			MessageID: p.MessageID, ReplyTo: p.ReplyTo, ReplyToGroupID: p.ReplyToGroupID, Subject: p.Subject, To: p.To, UserID: p.UserID,
		}
	}
	encoded, err := out.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return Parse(encoded), nil
}
