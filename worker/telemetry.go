package worker

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/orderworker/orderworker/worker/internal/breaker"
)

// scope names the instruments and the spans of this package.
const scope = "github.com/orderworker/orderworker/worker"

// The attributes of metrics and spans. Those named orderworker are our own, all others are the names of the semantic
// conventions of OpenTelemetry.
const (
	attrSystem      = attribute.Key("messaging.system")
	attrDestination = attribute.Key("messaging.destination.name")
	attrOperation   = attribute.Key("messaging.operation.name")
	attrOpType      = attribute.Key("messaging.operation.type")
	attrMessageID   = attribute.Key("messaging.message.id")
	attrSequence    = attribute.Key("messaging.servicebus.message.sequence_number")
	attrDeliveries  = attribute.Key("messaging.servicebus.message.delivery_count")
	attrSettlement  = attribute.Key("messaging.servicebus.disposition_status")
	attrEnqueued    = attribute.Key("messaging.servicebus.message.enqueued_time")
	attrErrorType   = attribute.Key("error.type")
	attrServer      = attribute.Key("server.address")
	attrOutcome     = attribute.Key("orderworker.outcome")
	attrCause       = attribute.Key("orderworker.cause")
	attrReason      = attribute.Key("orderworker.reason")
	attrCommitted   = attribute.Key("orderworker.committed")
	attrRepeated    = attribute.Key("orderworker.repeated")
	attrDocumentID  = attribute.Key("orderworker.document_id")
	attrState       = attribute.Key("orderworker.breaker.state")
)

// durationBounds are the bounds of the buckets of durations, in seconds. A message may wait for the length of an outage.
func durationBounds() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
}

// lagBounds are the bounds of the buckets of the lag, in seconds.
func lagBounds() []float64 { return []float64{.05, .25, 1, 5, 15, 60, 300, 1800, 7200, 86400} }

// telemetry turns events into OpenTelemetry metrics, and deliveries into spans.
type telemetry struct {
	spans
	queue attribute.KeyValue

	received, outcomes, conflicts, deadLettered, abandoned, left metric.Int64Counter
	settleFailures, locksLost, retries, replaced, panics, opened metric.Int64Counter
	calls                                                        metric.Int64Counter
	charge                                                       metric.Float64Counter
	duration, lag                                                metric.Float64Histogram
	inFlight                                                     metric.Int64UpDownCounter
	outgoing                                                     metric.Int64Counter
}

func newTelemetry(c Config, queue string, b *breaker.Breaker, unsent *unsentAge) (*telemetry, error) {
	provider := c.MeterProvider
	if provider == nil {
		provider = metricnoop.NewMeterProvider()
	}
	m := provider.Meter(scope)
	t := &telemetry{spans: newSpans(c.TracerProvider, queue, c.ServerAddress), queue: attrDestination.String(queue)}
	var faults []error
	counter := func(to *metric.Int64Counter, name, unit, text string) {
		var err error
		*to, err = m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		faults = append(faults, err)
	}
	counter(&t.received, "messaging.client.consumed.messages", "{message}", "Messages received")
	counter(&t.outcomes, "orderworker.outcomes", "{message}", "Messages completed, by outcome: created, own_write, redelivered, duplicate, stale, ignored")
	counter(&t.conflicts, "orderworker.content_conflicts", "{message}", "Alert: messages under whose key other content is stored")
	counter(&t.deadLettered, "orderworker.dead_lettered", "{message}", "Messages dead-lettered, by reason")
	counter(&t.abandoned, "orderworker.abandoned", "{message}", "Messages abandoned, by cause")
	counter(&t.left, "orderworker.not_settled", "{message}", "Messages left to their lock, by cause")
	counter(&t.settleFailures, "orderworker.settle.failures", "{message}", "Settlements of which it is not known whether they happened")
	counter(&t.locksLost, "orderworker.locks.lost", "{lock}", "Locks lost, by whether the message was committed before")
	counter(&t.retries, "orderworker.retries", "{retry}", "Tries repeated in place, by cause")
	counter(&t.replaced, "orderworker.receivers.replaced", "{receiver}", "Receivers given up, by reason")
	counter(&t.panics, "orderworker.receive.panics", "{call}", "Panics of the broker's client")
	counter(&t.opened, "orderworker.breaker.opened", "{incident}", "Times that the store could not be used, by cause")
	counter(&t.calls, "orderworker.store.calls", "{request}", "Requests sent to the store")
	counter(&t.outgoing, "orderworker.outgoing", "{message}", "Outgoing messages, by outcome: sent, relayed; and left_unsent, the incoming messages whose outgoing ones were left to the relay")
	var err error
	t.charge, err = m.Float64Counter("orderworker.store.charge", metric.WithUnit("{RU}"), metric.WithDescription("Request units charged by the store"))
	faults = append(faults, err)
	t.duration, err = m.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from receipt to settlement, waits included"), metric.WithExplicitBucketBoundaries(durationBounds()...))
	faults = append(faults, err)
	t.lag, err = m.Float64Histogram("orderworker.lag", metric.WithUnit("s"),
		metric.WithDescription("Time from enqueueing to receipt, by two clocks"), metric.WithExplicitBucketBoundaries(lagBounds()...))
	faults = append(faults, err)
	t.inFlight, err = m.Int64UpDownCounter("orderworker.in_flight", metric.WithUnit("{message}"), metric.WithDescription("Messages in process"))
	faults = append(faults, err)
	_, err = m.Int64ObservableGauge("orderworker.breaker.state", metric.WithDescription("1 for the state that the breaker is in"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			state, _ := b.Watch()
			o.Observe(1, metric.WithAttributes(attrState.String(state.String()), t.queue))
			return nil
		}))
	faults = append(faults, err)
	_, err = m.Float64ObservableGauge("orderworker.outbox.oldest_age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest committed message that a sweep could not send"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(unsent.age(time.Now(), c.Outbox.SweepAfter+3*c.Outbox.SweepEvery).Seconds(), metric.WithAttributes(t.queue))
			return nil
		}))
	return t, errors.Join(append(faults, err)...)
}

// Observe implements [Observer].
func (t *telemetry) Observe(e Event) {
	ctx := context.Background()
	one := func(c metric.Int64Counter, a ...attribute.KeyValue) {
		c.Add(ctx, 1, metric.WithAttributes(append(a, t.queue)...))
	}
	switch e.Kind {
	case EventReceived:
		one(t.received, t.with(attrSystem.String("servicebus"), attrOperation.String("receive"))...)
		t.inFlight.Add(ctx, 1, metric.WithAttributes(t.queue))
		t.lag.Record(ctx, e.Lag.Seconds(), metric.WithAttributes(t.queue))
	case EventCreated, EventOwn, EventRedelivered, EventDuplicate, EventStale:
		one(t.outcomes, attrOutcome.String(string(e.Kind)))
	case EventIgnored:
		one(t.outcomes, attrOutcome.String(string(e.Kind)), attrReason.String(e.Reason))
	case EventConflict:
		one(t.conflicts, attrRepeated.Bool(e.Run > 1))
	case EventDeadLettered:
		one(t.deadLettered, attrReason.String(e.Reason))
	case EventAbandoned:
		one(t.abandoned, attrCause.String(e.Cause.String()))
	case EventNotSettled:
		one(t.left, attrCause.String(e.Cause.String()))
	case EventSettleFailed:
		one(t.settleFailures)
	case EventLockLost:
		one(t.locksLost, attrCommitted.Bool(e.Judgement.Committed()))
	case EventRetried:
		one(t.retries, attrCause.String(e.Cause.String()))
	case EventReceiverReplaced:
		one(t.replaced, attrReason.String(e.Reason))
	case EventReceivePanicked:
		one(t.panics)
	case EventBreakerOpened, EventHandlerOutage:
		one(t.opened, attrCause.String(e.Cause.String()))
	case EventSent, EventRelayed:
		t.outgoing.Add(ctx, int64(e.Messages), metric.WithAttributes(attrOutcome.String(string(e.Kind)), t.queue))
	case EventUnsent:
		one(t.outgoing, attrOutcome.String(string(e.Kind)))
	case EventFinished:
		t.finished(ctx, e)
	}
}

func (t *telemetry) finished(ctx context.Context, e Event) {
	attrs := t.with(t.queue, attrSystem.String("servicebus"), attrOperation.String("process"), attrCause.String(e.Cause.String()))
	if e.Cause != CauseCommitted && e.Cause != CauseIgnored {
		attrs = append(attrs, attrErrorType.String(e.Cause.String()))
	}
	t.duration.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(attrs...))
	t.inFlight.Add(ctx, -1, metric.WithAttributes(t.queue))
	t.calls.Add(ctx, int64(e.Calls), metric.WithAttributes(t.queue))
	t.charge.Add(ctx, e.Charge, metric.WithAttributes(t.queue))
}
