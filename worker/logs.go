package worker

import (
	"context"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/orderworker/orderworker/worker/internal/receiver"
)

// The keys of log lines. They are part of the product's interface: alerts match them.
const (
	keyEvent         = "event"
	keyMessageID     = "message_id"
	keySequence      = "sequence_number"
	keyDeliveryCount = "delivery_count"
	keyDocumentID    = "document_id"
	keyReason        = "reason"
	keyCause         = "cause"
	keyDetail        = "detail"
	keyError         = "error"
	keyStack         = "stack"
	keyJudgement     = "judgement"
	keyConflictRun   = "conflicts_on_key"
	keyDuration      = "duration_seconds"
	keyInFlight      = "in_flight"
	keyQueue         = "queue"
	keyMessages      = "messages"
	keyOldest        = "oldest_seconds"
	keyTraceID       = "trace_id"
	keySpanID        = "span_id"
)

// maxStack bounds the stack of a panic in a log line, in bytes.
const maxStack = 8 << 10

// lineOf says at which level and with which words an event is logged. An event without a line is only counted.
func lineOf(e Event) (slog.Level, string, bool) {
	switch e.Kind {
	case EventConflict:
		return slog.LevelError, "other content is stored under the key of the message", true
	case EventDeadLettered:
		return slog.LevelWarn, "message dead-lettered", true
	case EventAbandoned:
		return slog.LevelWarn, "message abandoned", true
	case EventNotSettled:
		return slog.LevelWarn, "message left to its lock", true
	case EventPanicked:
		return slog.LevelError, "panic over a message", true
	case EventLockLost:
		if e.Judgement.Committed() {
			return slog.LevelInfo, "lock lost after the commit, which is harmless", true
		}
		return slog.LevelWarn, "lock lost before the commit", true
	case EventSettleFailed:
		return slog.LevelWarn, "settlement unknown, redelivery will tell", true
	case EventBreakerOpened:
		return slog.LevelError, "store cannot be used, receiving has stopped", true
	case EventBreakerClosed:
		return slog.LevelInfo, "store can be used again", true
	case EventHandlerOutage:
		return slog.LevelError, "handler fails on every message, receiving has stopped", true
	case EventHandlerRecovered:
		return slog.LevelInfo, "handler works again", true
	case EventReceiverReplaced:
		if e.Reason == receiver.ReplacedLost {
			return slog.LevelInfo, "receiver replaced", true
		}
		return slog.LevelWarn, "receiver replaced", true
	case EventReceivePanicked:
		return slog.LevelError, "client panicked over a message, receiving one at a time", true
	case EventReceiveUnreadable:
		return slog.LevelError, "queue cannot be looked at, receiving one at a time", true
	case EventThinLine:
		return slog.LevelWarn, "messages take long to arrive, asking for fewer at once", true
	case EventNotReady:
		return slog.LevelError, "worker is not ready", true
	case EventReady:
		if e.Detail != "" {
			return slog.LevelInfo, "a part of the worker is ready again", true
		}
		return slog.LevelInfo, "worker is ready", true
	case EventStarted:
		return slog.LevelInfo, "worker started", true
	case EventStopped:
		return slog.LevelInfo, "worker stopped", true
	case EventCreated, EventOwn, EventRedelivered, EventDuplicate, EventStale:
		return slog.LevelDebug, "message committed", true
	case EventDestinationDown:
		return slog.LevelError, "destination cannot be sent to, its messages wait in the store", true
	case EventDestinationUp:
		return slog.LevelInfo, "destination can be sent to again", true
	case EventWaiting:
		return slog.LevelWarn, "committed messages wait to be sent", true
	case EventSweepFailed:
		return slog.LevelWarn, "store could not be searched for messages to send", true
	case EventUnrecorded:
		return slog.LevelInfo, "messages were sent, and may be sent again with the same ids", true
	case EventSent, EventUnsent, EventRelayed:
		return slog.LevelDebug, "outgoing messages", true
	case EventIgnored:
		return slog.LevelDebug, "message ignored", true
	}
	return 0, "", false
}

// A logObserver writes the log lines: one for each message that does not end well, and one for each incident.
type logObserver struct {
	log *slog.Logger

	mu       sync.Mutex
	incident map[EventKind]bool // kinds that were logged since the worker last received in peace
}

func newLogObserver(log *slog.Logger, queue string) *logObserver {
	return &logObserver{log: log.With(slog.String(keyQueue, queue)), incident: map[EventKind]bool{}}
}

// Observe implements [Observer].
func (o *logObserver) Observe(e Event) {
	level, message, ok := lineOf(e)
	if !ok || o.repeated(e.Kind) {
		return
	}
	if ctx := trace.ContextWithSpanContext(context.Background(), e.Trace); o.log.Enabled(ctx, level) {
		o.log.LogAttrs(ctx, level, message, attrsOf(e)...) //nolint:sloglint // every message is one of the constants of lineOf
	}
}

// calm ends the incident of the receiver: what happens from now on is news again.
func (o *logObserver) calm() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.incident)
}

// repeated reports whether an event only repeats what the incident under way has logged already.
func (o *logObserver) repeated(k EventKind) bool {
	if k != EventReceiverReplaced && k != EventReceivePanicked {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.incident[k]
	o.incident[k] = true
	return was
}

func attrsOf(e Event) []slog.Attr {
	a := []slog.Attr{slog.String(keyEvent, string(e.Kind))}
	text := func(key, value string) {
		if value != "" {
			a = append(a, slog.String(key, value))
		}
	}
	text(keyMessageID, clip(e.MessageID, maxReason))
	if e.SequenceNumber != 0 {
		a = append(a, slog.Int64(keySequence, e.SequenceNumber), slog.Int64(keyDeliveryCount, int64(e.DeliveryCount)))
	}
	text(keyDocumentID, e.DocumentID)
	if e.Trace.IsValid() {
		text(keyTraceID, e.Trace.TraceID().String())
		text(keySpanID, e.Trace.SpanID().String())
	}
	if e.Judgement != 0 {
		text(keyJudgement, e.Judgement.String())
	}
	if e.Cause != 0 {
		text(keyCause, e.Cause.String())
	}
	text(keyReason, e.Reason)
	text(keyDetail, clip(e.Detail, maxDescription))
	if e.Err != nil {
		text(keyError, clip(e.Err.Error(), maxDescription))
	}
	text(keyStack, clip(e.Stack, maxStack))
	if e.Run > 0 {
		a = append(a, slog.Int(keyConflictRun, e.Run))
	}
	if e.Duration > 0 {
		a = append(a, slog.Float64(keyDuration, e.Duration.Seconds()))
	}
	if e.Messages > 0 {
		a = append(a, slog.Int(keyMessages, e.Messages))
	}
	if e.Kind == EventWaiting {
		a = append(a, slog.Float64(keyOldest, e.Lag.Seconds()))
	}
	if e.Kind == EventStarted || e.Kind == EventStopped {
		a = append(a, slog.Int(keyInFlight, e.InFlight))
	}
	return a
}
