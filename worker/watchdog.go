package worker

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
)

const (
	// peekTimeout bounds one look at the queue when the connection must be set up for it.
	peekTimeout = 20 * time.Second
	// recheckAfter is the time that a waiting message gets to arrive after all.
	recheckAfter = 5 * time.Second
	// peekPage and peekPages bound what is looked at: messages may be big, and those in front may all be scheduled, deferred
	// or our own.
	peekPage  = 10
	peekPages = 5
)

// A sighting is what one look at the queue showed.
type sighting struct {
	// failed tells that the look itself failed, twice.
	failed bool
	// waiting is the sequence number of the first message that waits and is not ours; 0 when none does.
	waiting int64
	// deliveries is how often that message was delivered, as far as the broker says.
	deliveries uint32
}

// suspicion is what the watchdog has seen since a message last arrived.
type suspicion struct {
	sequence   int64     // the waiting message that was seen first
	deliveries uint32    // as often delivered
	since      time.Time // and when
	replaced   int       // receivers given up
	next       time.Time // when another may be
}

// A finding is what to do about a silent receiver.
type finding struct {
	replace  string // why the receiver is to be given up, or ""
	deaf     bool   // not ready: messages wait and none arrives
	noAnswer bool   // not ready: the broker does not answer
}

// judge adds a sighting, confirmed by a second look a little later, to the suspicion. It is a pure function of its
// arguments. A waiting message may be locked by another replica, so one alone proves nothing: the receiver is replaced,
// which costs little, at growing intervals, and only a message that waits longer than any replica may hold one is proof. One
// that was delivered once more meanwhile has reached a receiver.
func (s suspicion) judge(now time.Time, seen sighting, deafAfter time.Duration) (suspicion, finding) {
	if seen.failed {
		return s, finding{noAnswer: true, replace: replacedNoAnswer}
	}
	if seen.waiting == 0 {
		return suspicion{}, finding{}
	}
	if s.sequence != seen.waiting || s.deliveries != seen.deliveries {
		s.sequence, s.deliveries, s.since = seen.waiting, seen.deliveries, now
	}
	f := finding{deaf: now.Sub(s.since) >= deafAfter}
	if !now.Before(s.next) {
		f.replace = replacedSilent
		s.next = now.Add(backoff.Policy{Base: time.Minute, Max: 15 * time.Minute}.Bound(s.replaced))
		s.replaced++
	}
	return s, f
}

// silence looks at the queue when a receive call has waited in full and brought nothing. It finds the receiver that looks
// healthy and receives nothing. The receive goroutine does it between two calls: every call of the client is bounded from
// outside, so nothing holds it up, and beside a receive call the client might make it wait for that.
func (w *Worker) silence(ctx context.Context, l *link) {
	if w.blind.now() {
		return
	}
	seen := w.look(ctx, l)
	if seen.failed {
		seen = w.look(ctx, l)
	}
	if ctx.Err() != nil || !w.connection.uses(l) {
		return
	}
	if seen.failed && w.touch(ctx, l) == nil {
		w.unreadable()
		w.reached(l)
		return
	}
	if seen.waiting != 0 && !w.recheck {
		w.recheck = true // it may have come this moment, so the next call waits only a little
		return
	}
	w.recheck = false
	s, f := w.suspicion.judge(time.Now(), seen, w.deafAfter(seen))
	w.suspicion = s
	switch {
	case f.noAnswer:
		w.conditions.set(partBroker, "the queue cannot be looked at. "+brokerfault.Connection.Advice())
	case f.deaf:
		w.conditions.set(partNotReceiving, "messages wait in the queue and none arrives, although the receiver was replaced. Look at the state of the namespace, and restart the worker if other workers receive")
	case seen.waiting == 0:
		w.conditions.clear(partNotReceiving)
	}
	if !f.noAnswer {
		w.reached(l)
	}
	if f.replace != "" {
		w.replace(l, f.replace, nil)
	}
}

// deafAfter is how long the message that was seen may wait. Another replica may hold it for a handler that asked for a later
// retry, at each delivery for twice as long.
func (w *Worker) deafAfter(seen sighting) time.Duration {
	return w.config.Watchdog.NotReceiving + w.config.Retry.holdFor(seen.deliveries)
}

// patience is how long the next receive call waits.
func (w *Worker) patience() time.Duration {
	if w.recheck {
		return min(recheckAfter, w.config.Watchdog.Silence)
	}
	return w.config.Watchdog.Silence
}

// reached records that the broker answers for the queue.
func (w *Worker) reached(l *link) {
	l.proven.Store(true)
	l.contacted = time.Now()
	w.contacted = l.contacted
	w.conditions.clear(partBroker)
}

// look peeks at the queue from its front. A message that makes the client panic is a message all the same.
func (w *Worker) look(ctx context.Context, l *link) sighting {
	from := int64(0)
	for range peekPages {
		page, err := w.peek(ctx, l, from, peekPage)
		switch {
		case faultOf(err) == brokerfault.Panic:
			return sighting{waiting: from + 1}
		case err != nil:
			return sighting{failed: true}
		case len(page) == 0:
			return sighting{}
		}
		for _, m := range page {
			if m.SequenceNumber == nil {
				continue
			}
			if m.State == azservicebus.MessageStateActive && !w.flight.has(*m.SequenceNumber) {
				return sighting{waiting: *m.SequenceNumber, deliveries: m.DeliveryCount}
			}
			from = *m.SequenceNumber + 1
		}
	}
	return sighting{}
}

// peek looks at up to n messages.
func (w *Worker) peek(ctx context.Context, l *link, from int64, n int) (page []*azservicebus.ReceivedMessage, err error) {
	timeout := peekTimeout
	if l.proven.Load() {
		timeout = oneTry
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got := make(chan []*azservicebus.ReceivedMessage, 1)
	err = l.do(ctx, w.config.Watchdog.Stuck, func(ctx context.Context) error {
		page, err := l.receiver.PeekMessages(ctx, n, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
		got <- page
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-got, nil
}
