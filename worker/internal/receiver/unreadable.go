package receiver

import (
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
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

// peekFailure tells that a queue answers and cannot be looked at, so that silence proves nothing. A message that the broker's
// client cannot decode does that: some senders use properties of types that it does not know. Some partitioned queues are
// known to do it, too.
type peekFailure struct {
	looks int // that failed in a row although the queue answers
	until time.Time
	// isolated is until when messages were received one at a time for another reason.
	isolated time.Time
}

// now reports whether the queue is not to be looked at now, and over whether it is to be looked at again.
func (b peekFailure) now() bool  { return time.Now().Before(b.until) }
func (b peekFailure) over() bool { return b.looks > 0 && !b.now() }

// unreadable records that the queue answers and cannot be looked at. What the client cannot read when it looks it cannot
// read when it receives either: it loses its connection, and with it all that came in the same call.
func (r *Receiver) unreadable() {
	if r.blind.looks++; r.blind.looks == 1 {
		r.blind.isolated = r.isolateUntil
	}
	now := time.Now()
	r.isolateUntil = now.Add(2 * r.config.LockDuration)
	if r.blind.looks == 1 {
		r.blind.until = now.Add(doubtTime)
		return
	}
	r.blind.until = now.Add(blindTime)
	if r.blind.looks > 2 {
		return
	}
	r.config.Notify(Notice{Kind: Unreadable, Detail: "the queue answers and cannot be looked at. As a rule a message in it has a property of a type that " +
		"the broker's client cannot read, decimal or char. Messages are received one at a time to isolate it; the broker dead-letters it in the end"})
}

// lostEarly records that the link of a receive call, begun at that time, was lost before anything came. As a rule that is
// normal; the cause may also be a message that cannot be read, so the queue is looked at before the next call. It reports
// whether the broker is not to blame, since it is known that there is such a message.
func (r *Receiver) lostEarly(begun time.Time) bool {
	r.wary = true
	if r.blind.looks == 0 {
		return false
	}
	now := time.Now()
	r.isolateUntil = now.Add(2 * r.config.LockDuration)
	return now.Sub(begun) > shortStay
}

// cameAgain reports whether a message was delivered before. It may have come down with one that cannot be read: a link that
// is lost after some messages of a call came does not show otherwise.
func cameAgain(messages []*azservicebus.ReceivedMessage) bool {
	return slices.ContainsFunc(messages, func(m *azservicebus.ReceivedMessage) bool { return m.DeliveryCount > 1 })
}
