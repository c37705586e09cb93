package messagejson

import "encoding/json"

// line is the JSON form of a message. The order of its fields is the order in which they are written.
type line struct {
	MessageID     *string                    `json:"message_id,omitempty"`
	MessageIDAMQP json.RawMessage            `json:"message_id_amqp,omitempty"`
	Subject       *string                    `json:"subject,omitempty"`
	ContentType   *string                    `json:"content_type,omitempty"`
	Encoding      *string                    `json:"content_encoding,omitempty"`
	CorrelationID json.RawMessage            `json:"correlation_id,omitempty"`
	To            *string                    `json:"to,omitempty"`
	ReplyTo       *string                    `json:"reply_to,omitempty"`
	ReplyToGroup  *string                    `json:"reply_to_session_id,omitempty"`
	SessionID     *string                    `json:"session_id,omitempty"`
	GroupSequence *uint32                    `json:"group_sequence,omitempty"`
	UserID        *string                    `json:"user_id_b64,omitempty"`
	ExpiryTime    *string                    `json:"absolute_expiry_time,omitempty"`
	CreationTime  *string                    `json:"creation_time,omitempty"`
	PartitionKey  *string                    `json:"partition_key,omitempty"`
	TTL           *string                    `json:"ttl,omitempty"`
	ScheduledAt   *string                    `json:"scheduled_enqueue_time,omitempty"`
	Durable       bool                       `json:"durable,omitempty"`
	FirstAcquirer bool                       `json:"first_acquirer,omitempty"`
	Priority      *uint8                     `json:"priority,omitempty"`
	Properties    map[string]json.RawMessage `json:"application_properties,omitempty"`
	Annotations   json.RawMessage            `json:"message_annotations,omitempty"`
	Delivery      json.RawMessage            `json:"delivery_annotations,omitempty"`
	Footer        json.RawMessage            `json:"footer,omitempty"`

	Body        json.RawMessage   `json:"body,omitempty"`
	BodyB64     *string           `json:"body_b64,omitempty"`
	Sections    []string          `json:"data_sections,omitempty"`
	SectionsB64 []string          `json:"data_sections_b64,omitempty"`
	Value       json.RawMessage   `json:"amqp_value,omitempty"`
	Sequence    []json.RawMessage `json:"amqp_sequence,omitempty"`
}
