package worker

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// spans makes one span for each delivery, as the child of the span that sent the message.
type spans struct {
	tracer trace.Tracer // nil when nobody takes spans
	queue  string
	server string // host of the broker, or ""
}

func newSpans(p trace.TracerProvider, queue, server string) spans {
	s := spans{queue: queue, server: server}
	if p != nil {
		s.tracer = p.Tracer(scope)
	}
	return s
}

// with adds the host of the broker when it is known.
func (s spans) with(attrs ...attribute.KeyValue) []attribute.KeyValue {
	if s.server == "" {
		return attrs
	}
	return append(attrs, attrServer.String(s.server))
}

// startSpan starts the span of a delivery. It is the child of the span that sent the message, and linked to it, since the
// conventions let a backend look for the creation context in either place. A sender that was not sampled gives a span that is
// not recorded, unless the sampler says otherwise.
func (s spans) startSpan(ctx context.Context, d *delivery) (context.Context, trace.Span) {
	if s.tracer == nil {
		return ctx, tracenoop.Span{}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, carrier(d.message))
	attrs := s.with(
		attrSystem.String("servicebus"),
		attrDestination.String(s.queue),
		attrOperation.String("process"),
		attrOpType.String("process"),
		attrMessageID.String(clip(d.message.MessageID, maxReason)),
		attrSequence.Int64(d.sequence()),
		attrDeliveries.Int64(int64(d.message.DeliveryCount)),
	)
	if t := d.message.EnqueuedTime; t != nil {
		attrs = append(attrs, attrEnqueued.Int64(t.Unix()))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...)}
	if sender := trace.SpanContextFromContext(ctx); sender.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: sender}))
	}
	return s.tracer.Start(ctx, "process "+s.queue, options...)
}

// disposition is the name of a settlement in the semantic conventions, or "" when the message was not settled.
func disposition(a action) string {
	switch a {
	case complete:
		return "complete"
	case abandon:
		return "abandon"
	case deadLetter:
		return "dead_letter"
	}
	return ""
}

// endSpan writes what the delivery came to into its span.
func (s spans) endSpan(span trace.Span, r Result, a action, how settlement) {
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{attrCause.String(r.Cause.String())}
	if name := disposition(a); name != "" {
		attrs = append(attrs, attrSettlement.String(name))
	}
	if r.Reason != "" {
		attrs = append(attrs, attrReason.String(r.Reason))
	}
	if r.Judgement != 0 {
		attrs = append(attrs, attrOutcome.String(r.Judgement.String()))
	}
	if r.Commit.DocumentID != "" {
		attrs = append(attrs, attrDocumentID.String(r.Commit.DocumentID))
	}
	switch {
	case !r.ended():
		attrs = append(attrs, attrErrorType.String(r.Cause.String()))
		span.SetStatus(codes.Error, r.Cause.String())
	case how != settleDone:
		attrs = append(attrs, attrErrorType.String("settlement"))
	}
	span.SetAttributes(attrs...)
}

// carrier finds the trace context of a message: traceparent as OpenTelemetry sends it, or Diagnostic-Id as the SDKs of
// Azure do, which holds the same text.
func carrier(m *azservicebus.ReceivedMessage) propagation.MapCarrier {
	c := propagation.MapCarrier{}
	for from, to := range map[string]string{"Diagnostic-Id": "traceparent", "traceparent": "traceparent", "tracestate": "tracestate"} {
		if v, ok := m.ApplicationProperties[from].(string); ok && (c[to] == "" || from == to) {
			c[to] = v
		}
	}
	return c
}
