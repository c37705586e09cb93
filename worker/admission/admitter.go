package admission

import (
	"bytes"
	"fmt"
	"mime"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// An Admitter admits messages by one configuration. It is safe for concurrent use.
type Admitter struct {
	cfg        Config
	hasher     *fingerprint.Hasher
	parameters fingerprint.Parameters
}

// New returns an Admitter, or all faults of the configuration.
func New(cfg Config) (*Admitter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	parameters, err := cfg.Parameters()
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	hasher, err := fingerprint.NewHasher(parameters)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	return &Admitter{cfg: cfg.withDefaults(), hasher: hasher, parameters: parameters}, nil
}

// Parameters returns the parameters of the fingerprints that [Admitter.Admit] makes.
func (a *Admitter) Parameters() fingerprint.Parameters { return a.parameters }

// Admit returns the message as handlers and stores see it, or the refusal that it is to be dead-lettered with.
func (a *Admitter) Admit(m *azservicebus.ReceivedMessage) (Message, *reason.Refusal) {
	if m == nil {
		m = &azservicebus.ReceivedMessage{}
	}
	msg := facts(m)
	if !a.keyInBody(m) {
		var refusal *reason.Refusal
		if msg.Key, refusal = a.key(m, nil, nil); refusal != nil {
			return Message{}, refusal
		}
	}
	if refusal := a.read(m, &msg); refusal != nil {
		return Message{}, refusal
	}
	if a.keyInBody(m) {
		var refusal *reason.Refusal
		if msg.Key, refusal = a.key(m, msg.envelope, msg.Body); refusal != nil {
			return Message{}, refusal
		}
	}
	msg.DocumentID = msg.Key.DocumentID()
	var refusal *reason.Refusal
	if msg.Partition, refusal = a.partition(m, msg.Key, msg.Body); refusal != nil {
		return Message{}, refusal
	}
	return msg, nil
}

// Key returns the key of a message whose body may be unreadable, and its partition, for people who look at dead letters.
func (a *Admitter) Key(m *azservicebus.ReceivedMessage) (key identity.Key, partition string, refusal *reason.Refusal) {
	if m == nil {
		m = &azservicebus.ReceivedMessage{}
	}
	if a.keyInBody(m) || a.cfg.Partition.FromBody() {
		msg, refusal := a.Admit(m)
		return msg.Key, msg.Partition, refusal
	}
	if key, refusal = a.key(m, nil, nil); refusal != nil {
		return key, "", refusal
	}
	partition, refusal = a.partition(m, key, nil)
	return key, partition, refusal
}

func (a *Admitter) keyInBody(m *azservicebus.ReceivedMessage) bool {
	form := a.cfg.KeySource.form
	return form == formBody || form == formCloudEvents && !binaryEvent(m)
}

// read sets the body of msg and its fingerprint.
func (a *Admitter) read(m *azservicebus.ReceivedMessage, msg *Message) *reason.Refusal {
	if a.cfg.StrictContentType && !jsonType(msg.ContentType) {
		return reason.Refuse(reason.UnsupportedContentType, "The content type does not say JSON, and this consumer is configured to insist on it. "+
			"The sender must set application/json.")
	}
	decoded, refusal := body.Decode(m, a.cfg.Body)
	if refusal != nil {
		return refusal
	}
	msg.whole, msg.event = decoded.Bytes, binaryEvent(m)
	if msg.Body, msg.envelope, refusal = a.part(*msg, a.parameters); refusal != nil {
		return refusal
	}
	if a.cfg.Content == Bytes && a.parameters.Form == fingerprint.FormBytes {
		return a.hash(msg)
	}
	refusal = a.readJSON(msg)
	if refusal != nil && (decoded.Unwrapped || decoded.Gunzipped) {
		refusal.Detail += " Offsets count in the content, after its envelope or compression was removed."
	}
	if refusal != nil && a.parameters.Part == fingerprint.PartData && !msg.event {
		refusal.Detail += " The body here is the data of the CloudEvent, without its envelope."
	}
	return refusal
}

func (a *Admitter) readJSON(msg *Message) *reason.Refusal {
	if a.parameters.Form == fingerprint.FormBytes {
		if err := fingerprint.Check(msg.Body, a.limits()); err != nil {
			return explain(err, msg.Body)
		}
	}
	if refusal := a.hash(msg); refusal != nil {
		return refusal
	}
	if first := bytes.TrimLeft(msg.Body, jsonSpace); a.cfg.Content == Object && first[0] != '{' {
		return a.notObject(msg.Body, first[0])
	}
	return nil
}

// notObject names the setting that unwraps a body whose sender encoded it twice.
func (a *Admitter) notObject(content []byte, first byte) *reason.Refusal {
	inner, quoted := fingerprint.Unquote(content)
	switch twice := quoted && bytes.HasPrefix(bytes.TrimLeft(inner, jsonSpace), []byte("{")); {
	case twice && a.parameters.Unwrap:
		return reason.Refuse(reason.BodyNotObject, "The body is JSON, but a string that holds a JSON object within another such string: "+
			"it was encoded three times, and one string is unwrapped. The sender must send one object.")
	case twice:
		return reason.Refuse(reason.BodyNotObject, "The body is JSON, but a string that holds a JSON object: it was encoded twice. "+
			"Set WORKER_UNWRAP_STRINGS=true (in Go, UnwrapJSONString) and reprocess the message, or let the sender send the object itself.")
	}
	return reason.Refuse(reason.BodyNotObject, "The body is JSON, but %s and not an object. The sender must send one object.", jsonKind(first))
}

// jsonSpace is what JSON takes for blanks.
const jsonSpace = " \t\r\n"

func (a *Admitter) hash(msg *Message) *reason.Refusal {
	var err error
	if msg.Fingerprint, err = a.hasher.Compute(msg.Body, a.limits()); err != nil {
		return explain(err, msg.Body)
	}
	return nil
}

func (a *Admitter) limits() fingerprint.Limits {
	return fingerprint.Limits{MaxBytes: a.cfg.Body.MaxBytes, MaxDepth: a.cfg.MaxDepth}
}

// part returns the bytes of a decoded body that the parameters hash, and the envelope they came in: a CloudEvent, or the same.
func (a *Admitter) part(msg Message, r fingerprint.Parameters) (content, envelope []byte, refusal *reason.Refusal) {
	content = msg.whole
	inner, unwrapped := unwrap(content, r)
	if unwrapped {
		if content, refusal = body.Text(inner); refusal != nil {
			return nil, nil, refusal
		}
	}
	envelope = content
	if r.Part != fingerprint.PartData || msg.event {
		return content, envelope, nil
	}
	limits := a.limits()
	limits.MaxDepth++ // the envelope
	if err := fingerprint.Check(envelope, limits); err != nil {
		return nil, nil, explain(err, envelope)
	}
	if content, refusal = eventData(envelope); refusal != nil {
		return nil, nil, refusal
	}
	if inner, ok := unwrap(content, r); ok && !unwrapped {
		content, refusal = body.Text(inner)
	}
	return content, envelope, refusal
}

// unwrap returns the text in a JSON string, when the parameters want that and the content is one.
func unwrap(content []byte, r fingerprint.Parameters) ([]byte, bool) {
	if !r.Unwrap {
		return nil, false
	}
	return fingerprint.Unquote(content)
}

// Content returns the bytes of an admitted message that the parameters hash, which are not those of m.Body when they were
// stored under another configuration. The error is a [*reason.Refusal].
func (a *Admitter) Content(m Message, r fingerprint.Parameters) ([]byte, error) {
	if m.whole == nil {
		return m.Body, nil
	}
	content, _, refusal := a.part(m, r)
	if refusal != nil {
		return nil, refusal
	}
	return content, nil
}

// Rehash returns the fingerprint of an admitted message by parameters that were stored with another. The error is a [*reason.Refusal]
// or [fingerprint.Problem] when the message lacks what they select, and [fingerprint.ErrUnknownParameters].
func (a *Admitter) Rehash(m Message, r fingerprint.Parameters) (fingerprint.Fingerprint, error) {
	hasher, err := fingerprint.NewHasher(r)
	if err != nil {
		return fingerprint.Fingerprint{}, err
	}
	content, err := a.Content(m, r)
	if err != nil {
		return fingerprint.Fingerprint{}, err
	}
	return hasher.Compute(content, fingerprint.Limits{})
}

// jsonType reports whether a content type says JSON.
func jsonType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"))
}

func jsonKind(first byte) string {
	switch first {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
