package worker

import (
	"time"

	"go.opentelemetry.io/otel/trace"
)

// An EventKind says what an [Event] reports.
type EventKind string

// The kinds of events. Those of the first group are about one message; metrics and log lines come from the same stream.
const (
	// EventReceived: a message was received. Lag is set.
	EventReceived EventKind = "received"
	// EventCreated, EventOwn and EventDuplicate: the documents of the message are known to be committed.
	EventCreated   EventKind = "created"
	EventOwn       EventKind = "own_write"
	EventDuplicate EventKind = "duplicate"
	// EventRedelivered: an earlier delivery of this very message had committed it, as after a kill. It is no duplicate.
	EventRedelivered EventKind = "redelivered"
	// EventStale: an equal or newer version is stored, so that nothing but the record of the message was committed.
	EventStale EventKind = "stale"
	// EventIgnored: the handler said that the message is none of its business. Reason is the handler's word for it.
	EventIgnored EventKind = "ignored"
	// EventConflict: other content is stored under the key of the message. It is an alert. Run counts the conflicts on this
	// key that this process has seen within an hour.
	EventConflict EventKind = "content_conflict"
	// EventDeadLettered: the broker took the message to its dead-letter queue. Reason is set.
	EventDeadLettered EventKind = "dead_lettered"
	// EventAbandoned: the message was abandoned. Cause is set.
	EventAbandoned EventKind = "message_abandoned"
	// EventNotSettled: nothing was settled, and the message comes back when its lock ends. Cause is set.
	EventNotSettled EventKind = "message_not_settled"
	// EventLockLost: the lock was lost. Harmless when Judgement says that the message is committed.
	EventLockLost EventKind = "lock_lost"
	// EventSettleFailed: it is not known whether the broker settled the message. Redelivery will tell.
	EventSettleFailed EventKind = "settle_failed"
	// EventPanicked: the handler, or the store, panicked over the message, for the first time in this delivery. Stack is set.
	EventPanicked EventKind = "panicked"
	// EventRetried: the message is tried again in place. Cause is set.
	EventRetried EventKind = "retried"
	// EventSent: Messages of the message were sent after its commit. EventUnsent: some were not, Err says why; the relay sends them.
	EventSent   EventKind = "sent"
	EventUnsent EventKind = "left_unsent"
	// EventFinished: the work on one delivery has ended. Duration, Calls and Charge are set. It comes last.
	EventFinished EventKind = "finished"

	// EventBreakerOpened and EventBreakerClosed: the store cannot be used, and can be used again after Duration.
	EventBreakerOpened EventKind = "breaker_opened"
	EventBreakerClosed EventKind = "breaker_closed"
	// EventHandlerOutage and EventHandlerRecovered: what the handler calls seems to be away, and the handler works again after Duration.
	EventHandlerOutage    EventKind = "handler_outage"
	EventHandlerRecovered EventKind = "handler_recovered"
	// EventReceiverReplaced: the receiver was given up for another. Reason says why.
	EventReceiverReplaced EventKind = "receiver_replaced"
	// EventReceivePanicked: the broker's client panicked over a message that it was handed. Stack is set.
	EventReceivePanicked EventKind = "receive_panicked"
	// EventReceiveUnreadable: the queue answers and cannot be looked at, as when a message in it is one that the broker's
	// client cannot read.
	EventReceiveUnreadable EventKind = "receive_unreadable"
	// EventThinLine: locks arrive old, because what is asked for at once takes long to arrive. Fewer messages are asked for. Detail
	// names lock, size and bandwidth.
	EventThinLine EventKind = "thin_line"
	// EventNotReady and EventReady: one part of the worker cannot do its work, and can again. Reason names the part.
	EventNotReady EventKind = "not_ready"
	EventReady    EventKind = "ready"
	// EventDestinationDown and EventDestinationUp: the queue or topic of Reason cannot be sent to, and can be again.
	EventDestinationDown EventKind = "destination_down"
	EventDestinationUp   EventKind = "destination_up"
	// EventRelayed: Messages of an earlier commit were sent by the relay. EventUnrecorded: they were sent, and that could not be
	// recorded, so that they are sent again.
	EventRelayed    EventKind = "relayed"
	EventUnrecorded EventKind = "sent_unrecorded"
	// EventWaiting: committed messages wait to be sent, the oldest for Lag. EventSweepFailed: the store could not be searched for
	// them.
	EventWaiting     EventKind = "outbox_waiting"
	EventSweepFailed EventKind = "outbox_sweep_failed"
	// EventStarted and EventStopped: Run has begun, and is about to return.
	EventStarted EventKind = "worker_started"
	EventStopped EventKind = "worker_stopped"
)

// An Event is one thing that happened. Only the fields that its kind names are set, besides those of the message.
type Event struct {
	Kind EventKind
	At   time.Time

	// MessageID, SequenceNumber and DeliveryCount are what the broker says of the message.
	MessageID      string
	SequenceNumber int64
	DeliveryCount  uint32
	// DocumentID is set once the message is admitted.
	DocumentID string
	// Trace is the span of the delivery. It is not valid when nobody takes spans.
	Trace trace.SpanContext

	Judgement Judgement
	Cause     Cause
	// Reason is a word of package reason, or why a receiver was replaced, or which part is not ready.
	Reason string
	// Detail is for people.
	Detail string
	Err    error
	// Stack is the stack of a panic. It holds no values of the message.
	Stack string
	// Run counts conflicts on one key.
	Run int

	// Duration is how long the work on the message took, waits included, or how long an incident lasted.
	Duration time.Duration
	// Lag is the time from enqueueing to receipt, by two clocks.
	Lag time.Duration
	// Calls and Charge are the requests sent to the store and their request units.
	Calls  int
	Charge float64
	// Messages counts outgoing messages.
	Messages int
	// InFlight is the number of messages in process, this one included.
	InFlight int
}

// An Observer is told of every event, from many goroutines at once, on the way of the work: it must be quick and must not
// block. When it panics, that is logged once and has no other effect.
type Observer interface{ Observe(Event) }

// ObserverFunc lets a function be an [Observer].
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// observers tells several observers of each event.
type observers []Observer

// Observe implements [Observer].
func (o observers) Observe(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	for _, each := range o {
		each.Observe(e)
	}
}
