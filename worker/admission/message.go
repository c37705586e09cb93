package admission

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

// A Message is an admitted message.
type Message struct {
	// Key identifies the message for this consumer, and DocumentID is the key's document id.
	Key        identity.Key
	DocumentID string
	// Partition is the partition key value under which the record and the effects of the message are stored. It is DocumentID
	// unless [Config.Partition] says otherwise.
	Partition string
	// Body is the content: exactly what the sender sent, without envelope, compression and byte order mark. It may share
	// memory with the received message and must not be changed.
	Body []byte
	// Fingerprint is made by the parameters of the configuration.
	Fingerprint fingerprint.Fingerprint

	// MessageID is the id that the broker knows the message by. A typed id has the text of its key, such as ulong(42).
	MessageID     string
	CorrelationID string
	Subject       string
	ContentType   string
	SessionID     string
	// ReplyTo and ReplyToSessionID are where the sender waits for an answer.
	ReplyTo          string
	ReplyToSessionID string
	// ApplicationProperties are the sender's, by reference.
	ApplicationProperties map[string]any
	// EnqueuedAt is the time at which the broker took the message, by the broker's clock. Zero when unknown.
	EnqueuedAt time.Time
	// SequenceNumber is the broker's number of the message. Zero when unknown.
	SequenceNumber int64
	// DeliveryCount counts the deliveries with this one. Zero when unknown, which does not mean the first.
	DeliveryCount uint32

	// Claim is the claim under which the handler runs. The zero value is none.
	Claim Claim

	// Reader reads documents of the message's partition. Nil outside of a worker, and in a test that does not set it.
	Reader StateReader

	// whole is the decoded body of which Body is the content, envelope what Body was taken out of, and event tells that the
	// envelope is in the properties instead.
	whole, envelope []byte
	event           bool
}

// A Claim is what a handler knows of the claim under which it runs.
type Claim struct {
	// Attempt counts the claims of the message from 1, and never goes down: another system that refuses a lower number than it has
	// seen refuses the late requests of an attempt that was taken over.
	Attempt int
	// Previous tells that an earlier attempt may have got half way.
	Previous bool
}

// A State is a document as it is stored.
type State struct {
	// Content is the whole document, as the store returns it, without the members of the service. Give it back changed.
	Content []byte
	// ETag is the version of the document, for a replace or a delete of just this version.
	ETag string
	// Calls is the number of requests that the read took, and Charge their request charge in request units.
	Calls  int
	Charge float64
}

// A StateReader reads documents of one partition. It is safe for concurrent use.
type StateReader interface {
	// Read returns a document by its own id. The error is worker.ErrNotFound when there is none.
	Read(ctx context.Context, id string) (State, error)
}

// Read returns a document of the message's partition by its own id. The error is worker.ErrNotFound when there is none; any
// other may be returned by the handler as it is, and then counts as one of the store.
func (m Message) Read(ctx context.Context, id string) (State, error) {
	if m.Reader == nil {
		return State{}, errors.New("admission: this message has no Reader, which a worker sets: set one in the test")
	}
	return m.Reader.Read(ctx, id)
}

// IdempotencyKey returns the key under which a handler asks another system to do something once, such as "charge". Put it into
// the Idempotency-Key header of the request. It is made of the key of the message, with its consumer, and of name alone: each
// delivery, replica, reprocessing and version of the program gives the same one, and no two messages or names share one. It
// has at most 255 bytes, all of them printable ASCII that a header need not escape.
func (m Message) IdempotencyKey(name string) string {
	return identity.PartDocumentID(m.Key.DocumentID(), name)
}

// facts returns what the broker and the sender say of a message, apart from key and body.
func facts(m *azservicebus.ReceivedMessage) Message {
	msg := Message{
		MessageID:             m.MessageID,
		CorrelationID:         text(m.CorrelationID),
		Subject:               text(m.Subject),
		ContentType:           text(m.ContentType),
		SessionID:             text(m.SessionID),
		ReplyTo:               text(m.ReplyTo),
		ReplyToSessionID:      text(m.ReplyToSessionID),
		ApplicationProperties: properties(m),
		DeliveryCount:         m.DeliveryCount,
	}
	if m.EnqueuedTime != nil {
		msg.EnqueuedAt = *m.EnqueuedTime
	}
	if m.SequenceNumber != nil {
		msg.SequenceNumber = *m.SequenceNumber
	}
	raw := m.RawAMQPMessage
	if raw == nil {
		return msg
	}
	if raw.Header != nil && msg.DeliveryCount == 0 {
		msg.DeliveryCount = raw.Header.DeliveryCount + 1
	}
	if raw.Properties != nil {
		if key, ok := typedID(raw.Properties.MessageID); ok {
			msg.MessageID = key.String()
		}
		if key, ok := typedID(raw.Properties.CorrelationID); ok && m.CorrelationID == nil {
			msg.CorrelationID = key.String()
		}
	}
	return msg
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// properties are the application properties, also of a message that has them in its raw form alone.
func properties(m *azservicebus.ReceivedMessage) map[string]any {
	if m.ApplicationProperties == nil && m.RawAMQPMessage != nil {
		return m.RawAMQPMessage.ApplicationProperties
	}
	return m.ApplicationProperties
}
