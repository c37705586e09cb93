package admission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

// Content says what a body must be.
type Content string

// The kinds of content.
const (
	// Object is one JSON object. It is the default.
	Object Content = "object"
	// JSON is any one JSON value.
	JSON Content = "json"
	// Bytes are any bytes.
	Bytes Content = "bytes"
)

// The defaults of Config.
const (
	// DefaultMaxDepth leaves one of the 128 levels that Cosmos DB takes to the object that a document keeps the payload in.
	DefaultMaxDepth = 127
	// DefaultMaxKeyBytes takes every MessageId that Service Bus allows (128 characters, of at most four bytes) and the usual
	// URIs of CloudEvents, and still fits in every document.
	DefaultMaxKeyBytes = 1024
	// maxConsumerBytes keeps ordinary document ids free of digests.
	maxConsumerBytes = 64
)

// Config says what a message is to this consumer. The zero value of every field means its default.
//
// Changing it later is safe for the fingerprint, since every document keeps the parameters it was made by. Changing KeySource or
// Consumer makes every message new.
type Config struct {
	// KeySource says where the key is found. Defaults to the MessageId.
	KeySource KeySource
	// Consumer becomes part of the key. Give one to each of several consumers that share a container, whatever queues they
	// read: without it, equal ids from two queues are one message. Defaults to none.
	Consumer string
	// Partition says in which logical partition the record and the effects of a message are. Changing it makes every message
	// new. Defaults to a partition of the message's own.
	Partition PartitionSource
	// RefuseTypedIDs refuses a MessageId that is an AMQP number, uuid or binary. Defaults to keeping these apart from text.
	RefuseTypedIDs bool
	// MaxKeyBytes bounds a key in bytes, a CloudEvent's source and id together. Defaults to [DefaultMaxKeyBytes].
	MaxKeyBytes int

	// Content says what a body must be. Defaults to [Object].
	Content Content
	// Body says how a body is read. Body.Binary follows from Content.
	Body body.Options
	// MaxDepth bounds the nesting of the content. Defaults to [DefaultMaxDepth]; at most
	// [fingerprint.MaxDepth].
	MaxDepth int
	// CloudEventData hands over and hashes the data of a CloudEvent, without its envelope. Defaults to the whole body.
	CloudEventData bool
	// UnwrapJSONString replaces a body that is a JSON string by the text in it, once, for senders that encode twice. Defaults
	// to taking the string as what it is, which is no object.
	UnwrapJSONString bool
	// StrictContentType refuses a message whose content type does not say JSON. Defaults to letting the body decide.
	StrictContentType bool

	// Form is "json" (equal JSON is equal content) or "bytes" (every byte counts). Defaults to "json", and to "bytes" when
	// Content is [Bytes].
	Form string
	// Ignore are JSON pointers to values that may differ between a message and its repetition, such as /sentAt.
	Ignore []string
	// Only are JSON pointers to the only values that must be equal. Defaults to the whole content.
	Only []string
}

func (c Config) withDefaults() Config {
	c.Content = cmp.Or(c.Content, Object)
	c.MaxDepth = cmp.Or(c.MaxDepth, DefaultMaxDepth)
	c.MaxKeyBytes = cmp.Or(c.MaxKeyBytes, DefaultMaxKeyBytes)
	c.Body.MaxBytes = cmp.Or(c.Body.MaxBytes, body.DefaultMaxBytes)
	c.Body.Binary = c.Content == Bytes
	if c.Form == "" && c.Content == Bytes {
		c.Form = fingerprint.FormBytes
	}
	return c
}

// Parameters returns the parameters that new documents are stored with.
func (c Config) Parameters() (fingerprint.Parameters, error) {
	c = c.withDefaults()
	r, err := fingerprint.NewParameters(c.Form, c.Ignore, c.Only)
	r.Unwrap = c.UnwrapJSONString
	if c.CloudEventData {
		r.Part = fingerprint.PartData
	}
	return r, err
}

// A FieldError is a fault of one field of [Config].
type FieldError = fingerprint.FieldError

// Validate reports all faults at once, those of a field as a [FieldError].
func (c Config) Validate() error {
	binary := c.Body.Binary
	c = c.withDefaults()
	errs := []error{
		fieldError("KeySource", c.KeySource.validate("key source")), fieldError("Partition", c.Partition.validate("partition source")),
		fieldError("Body", c.Body.Validate()), fieldError("Consumer", c.validateConsumer()),
	}
	fault := func(wrong bool, field, format string, args ...any) {
		if wrong {
			errs = append(errs, fieldError(field, fmt.Errorf("field "+field+" "+format, args...)))
		}
	}
	fault(c.Content != Object && c.Content != JSON && c.Content != Bytes, "Content", "%q is not object, json or bytes", c.Content)
	fault(binary && c.Content != Bytes, "Body.Binary", "is set by Content: use Content %q", Bytes)
	fault(slices.ContainsFunc(c.Ignore, invisible), "Ignore", "%q %v", c.Ignore, errInvisible)
	fault(slices.ContainsFunc(c.Only, invisible), "Only", "%q %v", c.Only, errInvisible)
	fault(c.MaxDepth < 1 || c.MaxDepth > fingerprint.MaxDepth, "MaxDepth", "%d must be 1 to %d", c.MaxDepth, fingerprint.MaxDepth)
	fault(c.MaxKeyBytes < 1, "MaxKeyBytes", "%d must be at least 1", c.MaxKeyBytes)
	if c.Content == Bytes {
		fault(c.Form != fingerprint.FormBytes, "Form", "%q needs Content %q or %q", c.Form, Object, JSON)
		fault(c.KeySource.form == formBody, "KeySource", "%s needs Content %q or %q", c.KeySource, Object, JSON)
		fault(c.Partition.FromBody(), "Partition", "%s needs Content %q or %q", c.Partition, Object, JSON)
		fault(c.CloudEventData, "CloudEventData", "needs Content %q or %q", Object, JSON)
		fault(c.UnwrapJSONString, "UnwrapJSONString", "needs Content %q or %q", Object, JSON)
		fault(c.StrictContentType, "StrictContentType", "needs Content %q or %q", Object, JSON)
	}
	if _, err := c.Parameters(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// fieldError is a fault of a field, nil for nil.
func fieldError(field string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{Field: field, Problem: err.Error()}
}

func (c Config) validateConsumer() error {
	switch {
	case c.Consumer == "":
		return nil
	case identity.Blank(c.Consumer):
		return errors.New("consumer must be text with at least one visible character")
	case invisible(c.Consumer):
		return fmt.Errorf("consumer %q %w", c.Consumer, errInvisible)
	case len(c.Consumer) > maxConsumerBytes:
		return fmt.Errorf("consumer has %d bytes; at most %d are allowed", len(c.Consumer), maxConsumerBytes)
	case strings.TrimSpace(c.Consumer) != c.Consumer:
		return fmt.Errorf("consumer %q begins or ends with a blank", c.Consumer)
	}
	return nil
}
