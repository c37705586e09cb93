package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// A TypeSource finds the type of a message, or "".
type TypeSource func(Message) string

// BySubject takes the subject (label) of a message for its type.
func BySubject(m Message) string { return m.Subject }

// ByProperty takes an application property for the type of a message. A property that is no string is no type.
func ByProperty(name string) TypeSource {
	return func(m Message) string {
		s, _ := m.ApplicationProperties[name].(string)
		return s
	}
}

// ByBody takes the string at a JSON pointer of the body, such as "/type", for the type of a message.
func ByBody(pointer string) TypeSource {
	return func(m Message) string {
		raw, _ := fingerprint.Extract(m.Body, pointer)
		text, _ := fingerprint.Unquote(raw)
		return string(text)
	}
}

// ByCloudEventType takes the type of a CloudEvent, in the properties or in the body.
func ByCloudEventType(m Message) string { return m.EventType() }

// An UnknownType says what [Route] does with a message of a type that it has no handler for. There is no default: silence
// would lose messages, or fill the dead-letter queue.
type UnknownType int

const (
	// RejectUnknown dead-letters the message as UnknownType.
	RejectUnknown UnknownType = iota + 1
	// IgnoreUnknown completes and counts the message as UnknownType, and stores nothing.
	IgnoreUnknown
)

// A Router hands each message to the handler of its type. Make one with [Route].
type Router struct {
	by       TypeSource
	handlers map[string]Handler
	unknown  UnknownType
}

// Route returns a handler that hands each message to the handler of its type. Types are compared byte by byte. What is put
// together wrongly is reported by [New], or earlier by [Router.Validate].
func Route(by TypeSource, handlers map[string]Handler, unknown UnknownType) *Router {
	return &Router{by: by, handlers: maps.Clone(handlers), unknown: unknown}
}

// Validate reports every fault at once.
func (r *Router) Validate() error {
	var faults []error
	if r.by == nil {
		faults = append(faults, errors.New("worker: Route needs a source of the type, such as BySubject"))
	}
	if len(r.handlers) == 0 {
		faults = append(faults, errors.New("worker: Route needs at least one handler"))
	}
	for _, name := range slices.Sorted(maps.Keys(r.handlers)) {
		if name == "" || absent(r.handlers[name]) {
			faults = append(faults, fmt.Errorf("worker: Route has the type %+q and the handler %v. Give both", name, r.handlers[name]))
		}
	}
	if r.unknown != RejectUnknown && r.unknown != IgnoreUnknown {
		faults = append(faults, errors.New("worker: Route needs a choice for unknown types: RejectUnknown or IgnoreUnknown"))
	}
	return errors.Join(faults...)
}

// Handle implements [Handler].
func (r *Router) Handle(ctx context.Context, m Message) (Effects, error) {
	name := r.by(m)
	if h, known := r.handlers[name]; known {
		return h.Handle(ctx, m)
	}
	if r.unknown == IgnoreUnknown {
		return Ignore(reason.UnknownType), nil
	}
	if name == "" {
		return Effects{}, Reject(reason.UnknownType, errors.New("the message does not say its type, by which this program finds the handler"))
	}
	return Effects{}, Reject(reason.UnknownType, fmt.Errorf("this program has no handler for messages of the type %+q", clip(name, maxReason)))
}
