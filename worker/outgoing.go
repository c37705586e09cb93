package worker

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.opentelemetry.io/otel/propagation"

	"github.com/orderworker/orderworker/internal/messagejson"
	"github.com/orderworker/orderworker/worker/identity"
)

// An Outgoing is a message that must be sent when the effects are committed, and never when they are not. It is committed with
// them and sent afterwards, at least once and always with the same MessageId and content, so that a destination that detects
// duplicates, or is a worker itself, has its effect once.
type Outgoing struct {
	// Name tells the messages of one incoming message apart, such as "accepted". The MessageId is made of it and of the key of
	// the incoming message, so a name must not change between deliveries.
	Name string
	// To is a queue or topic of the same namespace, one of [OutboxConfig.Destinations].
	To string

	Subject string
	// CorrelationID is that of the incoming message unless it is set here.
	CorrelationID    string
	SessionID        string
	PartitionKey     string
	ReplyTo          string
	ReplyToSessionID string
	ContentType      string
	// Properties are the application properties. The trace context of the delivery is added unless traceparent is set here.
	Properties map[string]any
	Body       []byte
	// ScheduledAt is when the destination makes the message available. Zero is at once.
	ScheduledAt time.Time
	// TTL is how long the message lives there. Zero is as long as the destination says.
	TTL time.Duration
}

// Reply returns the message that answers m, at the address and session that its sender waits at. It is correlated by the
// MessageId of m.
func Reply(m Message, body []byte) Outgoing {
	return Outgoing{Name: "reply", To: m.ReplyTo, SessionID: m.ReplyToSessionID, CorrelationID: m.MessageID, Body: body}
}

// Send returns e with messages to be sent.
func (e Effects) Send(messages ...Outgoing) Effects {
	e.Messages = append(e.Messages[:len(e.Messages):len(e.Messages)], messages...)
	return e
}

// ReplayReply keeps the messages for a time after they were sent, and sends them again to each duplicate of the incoming message
// that comes meanwhile: whoever repeats a request, since the reply was lost, gets the stored one.
func (e Effects) ReplayReply(keep time.Duration) Effects {
	e.replay = keep
	return e
}

// A Sending is an [Outgoing] as it is stored and sent, the same on every try.
type Sending struct {
	To        string
	Name      string
	MessageID string
	// Line is the whole message, in the form of one line of messages for `send`.
	Line []byte
}

// sendings are the messages of a handler as they are stored and sent.
func sendings(ctx context.Context, m Message, outgoing []Outgoing) ([]Sending, error) {
	var all []Sending
	for i, o := range outgoing {
		id := identity.OutgoingMessageID(m.Key.DocumentID(), o.Name)
		line, err := messagejson.Encode(o.message(ctx, m, id))
		if err != nil {
			return nil, fmt.Errorf("a message, Messages[%d] (%+q), that cannot be sent: %w. Give it a type that AMQP has", i, clip(o.Name, maxReason), err)
		}
		all = append(all, Sending{To: o.To, Name: o.Name, MessageID: id, Line: line})
	}
	return all, nil
}

// message is the message as it is sent.
func (o Outgoing) message(ctx context.Context, m Message, id string) *azservicebus.AMQPAnnotatedMessage {
	properties := &azservicebus.AMQPAnnotatedMessageProperties{MessageID: id, Subject: textOrNil(o.Subject), GroupID: textOrNil(o.SessionID),
		ReplyTo: textOrNil(o.ReplyTo), ReplyToGroupID: textOrNil(o.ReplyToSessionID), ContentType: textOrNil(o.ContentType)}
	if o.CorrelationID != "" {
		properties.CorrelationID = o.CorrelationID
	} else if m.CorrelationID != "" {
		properties.CorrelationID = m.CorrelationID
	}
	out := &azservicebus.AMQPAnnotatedMessage{Properties: properties, ApplicationProperties: traced(ctx, m, o.Properties),
		Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{bytes.Clone(o.Body)}}}
	annotations := map[any]any{}
	if o.PartitionKey != "" {
		annotations["x-opt-partition-key"] = o.PartitionKey
	}
	if !o.ScheduledAt.IsZero() {
		annotations["x-opt-scheduled-enqueue-time"] = o.ScheduledAt.UTC()
	}
	if len(annotations) > 0 {
		out.MessageAnnotations = annotations
	}
	if o.TTL > 0 {
		out.Header = &azservicebus.AMQPAnnotatedMessageHeader{Durable: true, Priority: 4, TTL: o.TTL}
	}
	return out
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// traced adds the trace context of the delivery, or that of the incoming message when nobody takes spans.
func traced(ctx context.Context, m Message, properties map[string]any) map[string]any {
	if _, set := properties["traceparent"]; set {
		return properties
	}
	all := maps.Clone(properties)
	if all == nil {
		all = map[string]any{}
	}
	spanned := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, spanned)
	for _, name := range [...]string{"traceparent", "tracestate"} {
		if text, ok := m.ApplicationProperties[name].(string); ok && len(spanned) == 0 {
			all[name] = text
		} else if spanned[name] != "" {
			all[name] = spanned[name]
		}
	}
	return all
}

// sameEntity reports whether two names are those of one queue or topic: Service Bus does not tell their case apart.
func sameEntity(a, b string) bool { return strings.EqualFold(a, b) }
