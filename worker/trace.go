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
}

func newSpans(p trace.TracerProvider, queue string) spans {
	s := spans{queue: queue}
	if p != nil {
		s.tracer = p.Tracer(scope)
	}
	return s
}

// startSpan starts the span of a delivery.
func (s spans) startSpan(ctx context.Context, d *delivery) (context.Context, trace.Span) {
	if s.tracer == nil {
		return ctx, tracenoop.Span{}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, carrier(d.message))
	return s.tracer.Start(ctx, "process "+s.queue, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attrSystem.String("servicebus"),
		attrDestination.String(s.queue),
		attrOperation.String("process"),
		attrOpType.String("process"),
		attrMessageID.String(clip(d.message.MessageID, maxReason)),
		attrSequence.Int64(d.sequence()),
		attrDeliveries.Int64(int64(d.message.DeliveryCount)),
	))
}

// endSpan writes what the delivery came to into its span.
func (s spans) endSpan(span trace.Span, r Result, a action, how settlement) {
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{attrCause.String(r.Cause.String()), attrSettlement.String(a.String())}
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
