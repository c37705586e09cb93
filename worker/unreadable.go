package worker

import (
	"context"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/brokerfault"
)

const (
	// blindTime is how long a queue that answers and could not be looked at is not looked at again, and doubtTime is that
	// after the first time: the broker may just have come back between the look that failed and the answer.
	blindTime = 10 * time.Minute
	doubtTime = 15 * time.Second
	// touchTimeout bounds the question whether a queue that could not be looked at answers at all. A look that failed over a
	// message has made the client lose its connection, and it waits for up to 5.2 s before it makes another.
	touchTimeout = 8 * time.Second
	// shortStay is how long a link stands at most that is lost over a flapping broker rather than over a message.
	shortStay = 5 * time.Second
)

// blindness tells that a queue answers and cannot be looked at, so that silence proves nothing. A message that the broker's
// client cannot decode does that: some senders use properties of types that it does not know. Some partitioned queues are
// known to do it, too.
type blindness struct {
	looks int // that failed in a row although the queue answers
	until time.Time
	// isolated is until when messages were received one at a time for another reason.
	isolated time.Time
}

// now reports whether the queue is not to be looked at now, and over whether it is to be looked at again.
func (b blindness) now() bool  { return time.Now().Before(b.until) }
func (b blindness) over() bool { return b.looks > 0 && !b.now() }

// contact makes the cheapest call that sets the links up and shows that the queue answers: a look at it. Where that is
// not answered, the renewal of a lock that nobody has: the queue says that it does not know it.
func (w *Worker) contact(ctx context.Context, l *link) error {
	if w.blind.now() || w.intake.thin() {
		return w.touch(ctx, l)
	}
	if (w.wary || w.blind.over()) && !l.proven.Load() {
		// On links that stand the next look is short.
		if err := w.touch(ctx, l); err != nil {
			return err
		}
		l.proven.Store(true)
	}
	n := 1
	if w.wary {
		w.wary, n = false, peekPage
	}
	_, err := w.peek(ctx, l, 0, n)
	switch faultOf(err) {
	case brokerfault.None, brokerfault.Panic: // a message that makes the client panic was an answer, too
		if w.blind.looks == 1 {
			w.isolateUntil = w.blind.isolated
		}
		w.blind = blindness{}
		return nil
	case brokerfault.Canceled:
		if ctx.Err() == nil && w.touch(ctx, l) == nil {
			w.unreadable()
			return nil
		}
	}
	return err
}

// touch asks for the renewal of a lock that nobody has.
func (w *Worker) touch(ctx context.Context, l *link) error {
	timeout := peekTimeout
	if l.proven.Load() {
		timeout = touchTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m := &azservicebus.ReceivedMessage{LockToken: [16]byte{15: 1}}
	err := l.do(ctx, w.config.Watchdog.Stuck, func(ctx context.Context) error { return l.receiver.RenewMessageLock(ctx, m, nil) })
	if faultOf(err) == brokerfault.LockLost {
		return nil
	}
	return err
}

// unreadable records that the queue answers and cannot be looked at. What the client cannot read when it looks it cannot
// read when it receives either: it loses its connection, and with it all that came in the same call.
func (w *Worker) unreadable() {
	if w.blind.looks++; w.blind.looks == 1 {
		w.blind.isolated = w.isolateUntil
	}
	now := time.Now()
	w.isolateUntil = now.Add(2 * w.config.LockDuration)
	if w.blind.looks == 1 {
		w.blind.until = now.Add(doubtTime)
		return
	}
	w.blind.until = now.Add(blindTime)
	if w.blind.looks > 2 {
		return
	}
	w.observe(Event{Kind: EventReceiveUnreadable, Detail: "the queue answers and cannot be looked at. As a rule a message in it has a property of a type that " +
		"the broker's client cannot read, decimal or char. Messages are received one at a time to isolate it; the broker dead-letters it in the end"})
}

// lostEarly records that the link of a receive call, begun at that time, was lost before anything came. As a rule that is
// normal; the cause may also be a message that cannot be read, so the queue is looked at before the next call. It reports
// whether the broker is not to blame, since it is known that there is such a message.
func (w *Worker) lostEarly(begun time.Time) bool {
	w.wary = true
	if w.blind.looks == 0 {
		return false
	}
	now := time.Now()
	w.isolateUntil = now.Add(2 * w.config.LockDuration)
	return now.Sub(begun) > shortStay
}

// cameAgain reports whether a message was delivered before. It may have come down with one that cannot be read: a link that
// is lost after some messages of a call came does not show otherwise.
func cameAgain(messages []*azservicebus.ReceivedMessage) bool {
	return slices.ContainsFunc(messages, func(m *azservicebus.ReceivedMessage) bool { return m.DeliveryCount > 1 })
}
