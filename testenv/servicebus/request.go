package servicebus

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// A request is one request at $cbs or at a $management node.
type request struct {
	broker     *Broker
	link       *amqp.Link
	node       *node
	properties amqp.Map
	body       any
	id         any
	replyTo    string
}

// A reply answers a request.
type reply struct {
	status      int
	description string
	// condition is the AMQP error condition of a failure.
	condition string
	// body is left out of the answer to a failure. An empty map would break clients, so that it becomes no value.
	body amqp.Map
}

func ok(body amqp.Map) reply {
	return reply{status: http.StatusOK, description: "OK", body: body}
}

// failure turns an error into the status with which management operations report it.
func failure(err *amqp.Error) reply {
	status := map[string]int{
		condLockLost: http.StatusGone, condSessionLockLost: http.StatusGone, condNotFound: http.StatusNotFound, amqp.NotFound: http.StatusNotFound,
		amqp.UnauthorizedAccess: http.StatusUnauthorized, condServerBusy: http.StatusServiceUnavailable,
		amqp.ResourceLimitExceeded: http.StatusForbidden, condEntityDisabled: http.StatusForbidden,
		amqp.InternalError: http.StatusInternalServerError, amqp.NotImplemented: http.StatusNotImplemented,
		condExists: http.StatusConflict,
	}[err.Condition]
	if status == 0 {
		status = http.StatusBadRequest
	}
	return reply{status: status, description: err.Description, condition: err.Condition}
}

// request decodes a request and hands it to its operation.
func (b *Broker) request(l *amqp.Link, n *node, payload []byte) {
	m, err := amqp.DecodeMessage(payload)
	if err != nil || m.Properties == nil {
		l.Detach(amqp.Errorf(amqp.DecodeError, "the request cannot be decoded, or has no properties: %v", err))
		return
	}
	r := &request{broker: b, link: l, node: n, properties: m.ApplicationProperties, body: m.Value, id: m.Properties.MessageID}
	r.replyTo, _ = m.Properties.ReplyTo.(string)
	if n.kind == nodeCBS {
		b.putToken(r)
		return
	}
	if name, ok := r.property("associated-link-name").(string); ok {
		peerOf(l).touchNamed(name)
	}
	b.manage(r)
}

func (r *request) property(name string) any {
	v, _ := r.properties.Get(name)
	return v
}

// field returns a field of the body, which is a map.
func (r *request) field(name string) any {
	m, _ := r.body.(amqp.Map)
	v, _ := m.Get(name)
	return v
}

// answer sends the reply over the link that the request names.
func (r *request) answer(a reply) {
	to := peerOf(r.link).replyLink(r.link, r.node, r.replyTo)
	if to == nil {
		r.broker.opts.Logger.LogAttrs(context.Background(), slog.LevelDebug, "reply link is gone", slog.String("address", r.replyTo))
		return
	}
	properties := amqp.Map{
		{Key: "statusCode", Value: int32(a.status)}, {Key: "statusDescription", Value: a.description},
	}
	if r.node.kind == nodeCBS { // Python reads these names at $cbs, Go and JavaScript the ones above
		properties = append(properties, amqp.Pair{Key: "status-code", Value: int32(a.status)},
			amqp.Pair{Key: "status-description", Value: a.description})
	}
	if a.condition != "" {
		properties = append(properties, amqp.Pair{Key: "errorCondition", Value: amqp.Symbol(a.condition)})
	}
	m := amqp.Message{
		Properties: &amqp.Properties{CorrelationID: r.id}, ApplicationProperties: properties, BodyKind: amqp.BodyValue,
	}
	if len(a.body) > 0 {
		m.Value = a.body
	}
	b, err := amqp.AppendMessage(nil, m)
	if err != nil {
		r.broker.opts.Logger.LogAttrs(context.Background(), slog.LevelError, "reply cannot be encoded", slog.Any("error", err))
		return
	}
	to.send(b)
}

// refused answers as the fault plan says.
func (r *request) refused(a fault.Action) {
	if a.Status != 0 {
		r.answer(plannedReply(a, http.StatusInternalServerError))
		return
	}
	r.answer(failure(planned(a, amqp.InternalError)))
}

// longs reads an array or a list of long.
func longs(v any) []int64 {
	return items[int64](v)
}

// uuids reads an array or a list of uuid.
func uuids(v any) []amqp.UUID {
	return items[amqp.UUID](v)
}

func items[T any](v any) []T {
	var all []any
	switch v := v.(type) {
	case amqp.Array:
		all = v.Items
	case amqp.List:
		all = v
	}
	ts := make([]T, 0, len(all))
	for _, i := range all {
		t, ok := i.(T)
		if !ok {
			return nil
		}
		ts = append(ts, t)
	}
	return ts
}

func badRequest(format string, args ...any) reply {
	return reply{status: http.StatusBadRequest, description: fmt.Sprintf(format, args...), condition: amqp.InvalidField}
}

func shortOperation(op string) string { return strings.TrimPrefix(op, "com.microsoft:") }
