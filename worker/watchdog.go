package worker

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	// peekTimeout bounds one look at the queue, which may have to set a connection up.
	peekTimeout = 20 * time.Second
	// recheckAfter is the time that a waiting message gets to arrive after all.
	recheckAfter = 5 * time.Second
	// peekPage and peekPages bound what is looked at: messages may be big, and those in front may all be scheduled, deferred
	// or our own.
	peekPage  = 10
	peekPages = 5
)

// A watchdog looks at the queue from the side. It finds the receiver that looks healthy and receives nothing.
type watchdog struct {
	fresh  chan *link
	silent chan *link
}

func newWatchdog() *watchdog {
	return &watchdog{fresh: make(chan *link, 1), silent: make(chan *link, 1)}
}

// confirm asks to look whether a new link reaches the queue at all.
func (d *watchdog) confirm(l *link) { offer(d.fresh, l) }

// silentOn tells that a receive call on l waited in full and nothing came.
func (d *watchdog) silentOn(l *link) { offer(d.silent, l) }

// offer sends unless the channel is full: then the watchdog is at work already.
func offer(c chan *link, l *link) {
	select {
	case c <- l:
	default:
	}
}

// A sighting is what one look at the queue showed.
type sighting struct {
	// failed tells that the look itself failed.
	failed bool
	// waiting is the sequence number of the first message that waits and is not ours; 0 when none does.
	waiting int64
}

// suspicion is what the watchdog has seen since a message last arrived.
type suspicion struct {
	sequence int64     // the waiting message that was seen first
	since    time.Time // and when
	failures int       // looks in a row that failed
	replaced int       // receivers given up
	next     time.Time // when another may be
}

// A finding is what to do about a silent receiver.
type finding struct {
	replace  string // why the receiver is to be given up, or ""
	deaf     bool   // not ready: messages wait and none arrives
	noAnswer bool   // not ready: the broker does not answer
}

// judge adds a sighting, confirmed by a second look a little later, to the suspicion. It is a pure function of its
// arguments. A waiting message may be locked by another replica, so one alone proves nothing: the receiver is replaced,
// which costs little, at growing intervals, and only a message that waits longer than any replica may hold one is proof.
func (s suspicion) judge(now time.Time, seen sighting, deafAfter time.Duration) (suspicion, finding) {
	if seen.failed {
		s.failures++
		f := finding{noAnswer: true}
		if s.failures >= 2 {
			f.replace, s.failures = replacedNoAnswer, 0
		}
		return s, f
	}
	s.failures = 0
	if seen.waiting == 0 {
		return suspicion{}, finding{}
	}
	if s.sequence != seen.waiting {
		s.sequence, s.since = seen.waiting, now
	}
	f := finding{deaf: now.Sub(s.since) >= deafAfter}
	if !now.Before(s.next) {
		f.replace = replacedSilent
		s.next = now.Add(doubled(time.Minute, 15*time.Minute, s.replaced))
		s.replaced++
	}
	return s, f
}

// watchLoop looks at the queue when asked, until ctx ends.
func (w *Worker) watchLoop(ctx context.Context) {
	var s suspicion
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-w.watchdog.fresh:
			if seen := w.look(ctx, l, true); !seen.failed {
				w.reached(l)
			}
		case l := <-w.watchdog.silent:
			s = w.inspect(ctx, l, s)
		}
	}
}

// inspect looks at the queue beside a receiver that was silent for long.
func (w *Worker) inspect(ctx context.Context, l *link, s suspicion) suspicion {
	start := time.Now()
	if w.lastMessage().After(start.Add(-w.config.Watchdog.Silence)) {
		s = suspicion{}
	}
	seen := w.look(ctx, l, false)
	if seen.waiting != 0 {
		if !sleep(ctx, recheckAfter) || w.lastMessage().After(start) {
			return suspicion{}
		}
		seen = w.look(ctx, l, false)
	}
	if ctx.Err() != nil || !w.connection.uses(l) {
		return s
	}
	s, f := s.judge(time.Now(), seen, w.config.Watchdog.Deaf)
	switch {
	case f.noAnswer:
		w.conditions.set(partBroker, "the queue cannot be looked at. "+faultConnection.advice(), nil)
	case f.deaf:
		w.conditions.set(partDeaf, "messages wait in the queue and none arrives, although the receiver was replaced. Look at the state of the namespace, and restart the worker if other workers receive", nil)
	case seen.waiting == 0:
		w.conditions.clear(partDeaf)
	}
	if !f.noAnswer {
		w.reached(l)
	}
	if f.replace != "" {
		w.replace(l, f.replace, nil)
	}
	return s
}

// reached takes note that the broker answers for the queue.
func (w *Worker) reached(l *link) {
	l.proven.Store(true)
	w.conditions.clear(partBroker)
}

// look peeks at the queue from its front. Quick is content with any answer. A message that makes the client panic is a
// message all the same.
func (w *Worker) look(ctx context.Context, l *link, quick bool) sighting {
	from := int64(0)
	for range peekPages {
		page, err := w.peek(ctx, l, from)
		switch {
		case classifyBroker(err) == faultPanic:
			return sighting{waiting: from + 1}
		case err != nil:
			return sighting{failed: true}
		case len(page) == 0 || quick:
			return sighting{}
		}
		for _, m := range page {
			if m.SequenceNumber == nil {
				continue
			}
			if m.State == azservicebus.MessageStateActive && !w.flight.has(*m.SequenceNumber) {
				return sighting{waiting: *m.SequenceNumber}
			}
			from = *m.SequenceNumber + 1
		}
	}
	return sighting{}
}

func (w *Worker) peek(ctx context.Context, l *link, from int64) ([]*azservicebus.ReceivedMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	return supervised(ctx, w.config.Watchdog.Stuck, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
		return l.receiver.PeekMessages(ctx, peekPage, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
	}, nil)
}
