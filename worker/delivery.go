package worker

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.opentelemetry.io/otel/trace"

	"github.com/orderworker/orderworker/worker/internal/receiver"
)

// A delivery is one message in process. Only the goroutine that processes it touches it, but for its lock.
type delivery struct {
	message  *azservicebus.ReceivedMessage
	lock     *lock
	received time.Time
	// link is the link that the message came by. Nil once the message's own object has been used for a settlement.
	link *receiver.Link
	// session is the link that has locked the session of the message. Nil without sessions.
	session *receiver.Link
	// panicked tells that a panic over this message has had its event.
	panicked bool
	// madeRoom tells that it has let a process that has committed nothing receive one message more.
	madeRoom bool
	// delayed tells that it has waited for its next delivery.
	delayed bool
	// span is the span of the delivery.
	span trace.SpanContext
}

func (w *Worker) newDelivery(m *azservicebus.ReceivedMessage, l *receiver.Link) *delivery {
	return &delivery{
		message:  m,
		lock:     newLock(m.LockToken, w.config.LockDuration, m.LockedUntil),
		received: time.Now(),
		link:     l,
	}
}

func (d *delivery) sequence() int64 {
	if d.message.SequenceNumber == nil {
		return 0
	}
	return *d.message.SequenceNumber
}

// event starts an event of this message.
func (d *delivery) event(k EventKind) Event {
	return Event{Kind: k, MessageID: d.message.MessageID, SequenceNumber: d.sequence(), DeliveryCount: d.message.DeliveryCount, Trace: d.span}
}

// lag is the time from enqueueing to receipt, by the clocks of the broker and of this machine.
func (d *delivery) lag() time.Duration {
	if d.message.EnqueuedTime == nil {
		return 0
	}
	return max(-receiver.WallUntil(*d.message.EnqueuedTime, d.received), 0)
}
