package receiver

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
	// waitingAfter is how long messages must wait at every look before the receiver is replaced for it. A message that waits for
	// less is rather with a slow handler of another replica.
	waitingAfter = time.Minute
	// peekPage and peekPages bound what is looked at: messages may be big, and those in front may all be scheduled, deferred
	// or our own.
	peekPage  = 10
	peekPages = 5
)

// A peekResult is what one look at the queue showed.
type peekResult struct {
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

// judge adds a peekResult, confirmed by a second look a little later, to the suspicion. It is a pure function of its
// arguments. A waiting message may be locked by another replica, so one alone proves nothing: after a while the receiver is
// replaced, which costs little, at growing intervals, and only a message that waits longer than any replica may hold one is
// proof. One that was delivered once more meanwhile has reached a receiver.
func (s suspicion) judge(now time.Time, seen peekResult, deafAfter time.Duration) (suspicion, finding) {
	if seen.failed {
		return s, finding{noAnswer: true, replace: ReplacedNoAnswer}
	}
	if seen.waiting == 0 {
		return suspicion{}, finding{}
	}
	if s.sequence != seen.waiting || s.deliveries != seen.deliveries {
		if s.sequence == 0 {
			s.next = now.Add(waitingAfter)
		}
		s.sequence, s.deliveries, s.since = seen.waiting, seen.deliveries, now
	}
	f := finding{deaf: now.Sub(s.since) >= deafAfter}
	if !now.Before(s.next) {
		f.replace = ReplacedSilent
		s.next = now.Add(backoff.Policy{Base: time.Minute, Max: 15 * time.Minute}.Bound(s.replaced))
		s.replaced++
	}
	return s, f
}

// silence looks at the queue when a receive call has waited in full and brought nothing. It finds the receiver that looks
// healthy and receives nothing. The receive goroutine does it between two calls: every call of the client is bounded from
// outside, so nothing holds it up, and beside a receive call the client might make it wait for that.
func (r *Receiver) silence(ctx context.Context, l *Link) {
	if r.blind.now() {
		return
	}
	var seen peekResult
	touched := r.reportingSilence(func() error {
		seen = r.look(ctx, l)
		if seen.failed {
			seen = r.look(ctx, l)
		}
		if !seen.failed || ctx.Err() != nil || !r.connection.uses(l) {
			return nil
		}
		return r.touch(ctx, l)
	})
	if ctx.Err() != nil || !r.connection.uses(l) {
		return
	}
	if seen.failed && touched == nil {
		r.unreadable()
		r.reached(l)
		return
	}
	if seen.waiting != 0 && !r.recheck {
		r.recheck = true // it may have come this moment, so the next call waits only a little
		return
	}
	r.recheck = false
	s, f := r.suspicion.judge(time.Now(), seen, r.deafAfter(seen))
	r.suspicion = s
	switch {
	case f.noAnswer:
		r.config.Notify(Notice{Kind: Unreached, Detail: "the queue cannot be looked at. " + brokerfault.Connection.Advice()})
	case f.deaf:
		r.config.Notify(Notice{Kind: Deaf, Detail: "messages wait in the queue and none arrives, although the receiver was replaced. Look at the state of the namespace, and restart the worker if other workers receive"})
	case seen.waiting == 0:
		r.config.Notify(Notice{Kind: NoneWaiting})
	}
	if !f.noAnswer {
		r.reached(l)
	}
	if f.replace != "" {
		r.replace(l, f.replace, nil)
	}
}

// deafAfter is how long the message that was seen may wait. Another replica may hold it for a handler that asked for a later
// retry, at each delivery for twice as long.
func (r *Receiver) deafAfter(seen peekResult) time.Duration {
	return r.config.NotReceiving + r.config.HoldFor(seen.deliveries)
}

// patience is how long the next receive call waits.
func (r *Receiver) patience() time.Duration {
	if r.recheck {
		return min(recheckAfter, r.config.Silence)
	}
	return r.config.Silence
}

// look peeks at the queue from its front. A message that makes the client panic is a message all the same.
func (r *Receiver) look(ctx context.Context, l *Link) peekResult {
	from := int64(0)
	for range peekPages {
		page, err := r.peek(ctx, l, from, peekPage)
		switch {
		case FaultOf(err) == brokerfault.Panic:
			return peekResult{waiting: from + 1}
		case err != nil:
			return peekResult{failed: true}
		case len(page) == 0:
			return peekResult{}
		}
		for _, m := range page {
			if m.SequenceNumber == nil {
				continue
			}
			if m.State == azservicebus.MessageStateActive && !r.config.Demand.Has(*m.SequenceNumber) {
				return peekResult{waiting: *m.SequenceNumber, deliveries: m.DeliveryCount}
			}
			from = *m.SequenceNumber + 1
		}
	}
	return peekResult{}
}

// peek looks at up to n messages.
func (r *Receiver) peek(ctx context.Context, l *Link, from int64, n int) (page []*azservicebus.ReceivedMessage, err error) {
	timeout := peekTimeout
	if l.proven.Load() {
		timeout = OneTry
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got := make(chan []*azservicebus.ReceivedMessage, 1)
	err = l.Call(ctx, r.config.Stuck, func(ctx context.Context, c Client) error {
		page, err := c.PeekMessages(ctx, n, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
		got <- page
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-got, nil
}
