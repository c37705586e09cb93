package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
)

const (
	// batchWindow is how long the client collects further messages after the first. Longer fills batches better on a
	// trickle, and makes each first message wait.
	batchWindow = 2 * time.Millisecond
	// stopGrace is how long a receive call may still return messages that are on their way when the worker stops.
	// Cancelled at once, it would leave them with a receiver that is about to be closed, locked until the lock ends.
	stopGrace = 250 * time.Millisecond
	// maxReceiveFailures is the number of receive calls in a row that fail, or come back early with nothing, after which that is no
	// accident.
	maxReceiveFailures = 2
)

// Why a receiver was replaced.
const (
	replacedLost       = "link_lost"       // its link or connection is lost, which is normal now and then
	replacedFailing    = "failing"         // its calls fail
	replacedStuck      = "stuck"           // its calls do not return
	replacedPanic      = "panic"           // the client panicked
	replacedSilent     = "silent"          // messages wait and it receives none
	replacedManagement = "management_link" // renewals or settlements fail
	replacedNoAnswer   = "no_answer"       // the queue cannot be looked at through it
)

// receiveBackoff returns the backoff after receive calls that failed. The client has no wait of its own: against a broker that
// flaps, a bare loop attaches some 200 times a second.
func receiveBackoff() backoff.Policy {
	return backoff.Policy{Base: 100 * time.Millisecond, Max: 30 * time.Second, Floor: 50 * time.Millisecond}
}

// A reception is how a receive call ended.
type reception int

const (
	receivedSome  reception = iota // messages came
	waitedInFull                   // the whole wait passed and none came
	cameBackEarly                  // no message, no error, and the wait had not passed
	interrupted                    // we ended it ourselves
	receiveFailed                  // it returned an error, panicked or did not return
)

// receiveLoop receives until ctx ends, and starts the work on each message at once: it asks for no more than there are
// free slots. The work goes on under its own context.
func (w *Worker) receiveLoop(ctx, work context.Context) {
	failures := 0
	w.contacted = time.Now()
	for ctx.Err() == nil {
		n, _ := w.room()
		if n <= 0 && !w.idle(ctx) {
			continue
		}
		l, err := w.connection.get(ctx)
		if err == nil {
			err = w.prepare(ctx, l)
		}
		if n <= 0 && err == nil {
			failures = 0
			continue // the broker was only asked whether it is there
		}
		begun, how := time.Now(), receiveFailed
		if err == nil {
			how, err = w.receive(ctx, work, l, n)
		}
		fault := faultOf(err)
		switch how {
		case receivedSome:
			failures = 0
			w.heard()
			continue
		case waitedInFull:
			failures = 0
			w.silence(ctx, l)
			continue
		case interrupted:
			continue
		case cameBackEarly:
			if w.lostEarly(begun) {
				failures = 0
			}
		}
		if fault == brokerfault.Panic {
			// The culprit is locked with the rest, so the next call has another message. No reason to wait for long.
			w.isolate(err)
			failures = min(failures, 1)
		}
		failures++
		w.receiveTrouble(l, failures, fault, err)
		if fault == brokerfault.None && failures < maxReceiveFailures {
			continue // a lost link is normal now and then
		}
		backoff.Sleep(ctx, receiveBackoff().Wait(failures-1))
	}
}

// room returns how many messages may be asked for. When the line is the only reason for none, wait is how long to wait.
func (w *Worker) room() (n int, wait time.Duration) {
	n = w.breaker.Room(w.slots.inUse())
	if n > 1 && time.Now().Before(w.isolateUntil) {
		n = 1
	}
	return w.intake.room(n, w.slots.inFlight(), time.Now())
}

// idle waits until there may be room. When there is none for long it returns true: no receive call runs meanwhile, so the
// broker has to be asked whether it is there. Credit that is still out would let messages come to a receiver that nobody calls,
// which releases them one by one: the receiver is given up instead, for credit cannot be taken back otherwise.
func (w *Worker) idle(ctx context.Context) (overdue bool) {
	w.withdrawCredit()
	_, changed := w.breaker.Watch()
	n, wait := w.room()
	if n > 0 {
		return false
	}
	silence := time.Until(w.contacted.Add(w.config.Watchdog.Silence))
	timer := time.NewTimer(silence)
	if wait > 0 {
		timer.Reset(min(wait, silence))
	}
	defer timer.Stop()
	select {
	case <-timer.C:
		return wait == 0 || wait >= silence
	case <-ctx.Done():
	case <-w.slots.wake:
	case <-changed:
	}
	return false
}

// withdrawCredit gives the receiver up when the broker may still push messages to it, and reports whether it did.
func (w *Worker) withdrawCredit() bool {
	l := w.lastLink
	if l == nil || l.credit == 0 {
		return false
	}
	l.credit = 0
	return w.connection.retire(l)
}

// prepare makes sure that the links stand before a receive call, by looking at the queue. The receive call could set them
// up as well, but it cannot tell that from waiting for a message, and a call that renews a lock would have to wait with it.
// It does so now and then on links that stand, too: while messages come and no lock needs renewal, nothing else would find
// a management link that is beyond repair, over which the client burns a processor core.
func (w *Worker) prepare(ctx context.Context, l *link) error {
	stood := l.proven.Load()
	if stood && !w.wary && !w.blind.over() && time.Since(l.contacted) < w.config.Watchdog.Silence {
		return nil
	}
	err := w.tellingSilence(func() error {
		err := w.contact(ctx, l)
		if err != nil && stood && faultOf(err) != brokerfault.Canceled {
			err = w.contact(ctx, l)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil // the worker stops, and receives no more
	case err == nil:
		w.reached(l)
	case stood:
		w.replace(l, replacedNoAnswer, err)
	}
	return err
}

// silentAfter is how long setting up the links may take before the worker says that it is not ready. The call goes on: the
// client tries again by itself, and cut short it would have to begin anew.
const silentAfter = 8 * time.Second

// tellingSilence makes a call that waits for the broker, and says so when that takes long.
func (w *Worker) tellingSilence(f func() error) error {
	told := make(chan struct{})
	timer := time.AfterFunc(silentAfter, func() {
		defer close(told)
		w.conditions.set(partBroker, fmt.Sprintf("no answer for %v: %s", silentAfter, brokerfault.Connection.Advice()))
	})
	err := f()
	if !timer.Stop() {
		<-told // or it would come after the good news
	}
	return err
}

// receive makes one receive call for n messages and starts what it brings.
func (w *Worker) receive(ctx, work context.Context, l *link, n int) (reception, error) {
	if ctx.Err() != nil {
		return interrupted, nil // a call would issue credit all the same
	}
	w.lastLink = l
	if l.credit == 0 {
		l.asked = time.Now()
	}
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.patience())
	defer cancel()
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { w.interrupt(ctx, rctx, l, n, done, cancel) })
	defer watcher.Wait()
	defer close(done)

	options := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: batchWindow}
	messages, err := supervised(rctx, w.crew, w.config.Watchdog.Stuck, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
		defer l.begin()()
		if closed(l.retired) { // its closing does not wait for a call that begins now, and the client would make this one wait for that
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return l.receiver.ReceiveMessages(ctx, n, options)
	}, func(late []*azservicebus.ReceivedMessage, _ error) { w.giveBackLate(late, l) })
	l.credit = max(n, l.credit) - len(messages)
	w.weigh(messages, l)
	w.start(work, messages, l)
	switch {
	case len(messages) > 0:
		l.proven.Store(true)
		w.wary = cameAgain(messages) && time.Since(l.contacted) > w.config.LockDuration/4
		return receivedSome, nil
	case faultOf(err) == brokerfault.Stuck, faultOf(err) == brokerfault.Panic:
		return receiveFailed, err
	case rctx.Err() == context.DeadlineExceeded:
		return waitedInFull, nil
	case rctx.Err() != nil:
		return interrupted, nil
	case err != nil:
		return receiveFailed, err
	}
	// The links of the client are lost, or the receiver is beyond repair. The client would attach anew with the next call.
	// We do not let it: when two calls find links lost at once it makes them twice, and one set of them is never closed; a
	// message that came before can no longer be settled through its own object anyway; and a receiver that is beyond repair
	// burns a processor core between the calls. Another client costs one connection.
	w.replace(l, replacedLost, nil)
	return cameBackEarly, nil
}

// interrupt ends a receive call when the worker stops, when the link is given up, and when there is no longer room for
// what it asked for. It returns when done is closed.
func (w *Worker) interrupt(ctx, rctx context.Context, l *link, n int, done <-chan struct{}, cancel context.CancelFunc) {
	for {
		_, changed := w.breaker.Watch()
		if w.breaker.Room(w.slots.inUse()) < n && rctx.Err() == nil {
			cancel()
			return
		}
		select {
		case <-done:
			return
		case <-l.retired:
			cancel()
			return
		case <-changed:
		case <-ctx.Done():
			timer := time.NewTimer(stopGrace)
			defer timer.Stop()
			select {
			case <-done:
			case <-timer.C:
				cancel()
			}
			return
		}
	}
}

// start begins the work on messages.
func (w *Worker) start(work context.Context, messages []*azservicebus.ReceivedMessage, l *link) {
	w.starting.Lock()
	defer w.starting.Unlock()
	if w.stopping() { // the call was so late that nobody waited for it
		go w.giveBackLate(messages, l)
		return
	}
	for _, m := range messages {
		w.slots.take()
		d := w.newDelivery(m, l)
		w.deliveries.Add(1)
		w.crew.do(func() {
			defer w.deliveries.Done()
			w.process(work, d)
		})
	}
}

// giveBackLate gives back what a call brought after it was left behind. Nobody has a slot for it.
func (w *Worker) giveBackLate(late []*azservicebus.ReceivedMessage, l *link) {
	for _, m := range late {
		d := w.newDelivery(m, l)
		d.link = nil
		w.settle(context.Background(), d, abandon, deadLetterNote{})
	}
}

// isolate makes the next calls ask for one message at a time, so that a message that makes the client panic takes no
// other down with it. It comes back when its lock ends, until the broker dead-letters it.
func (w *Worker) isolate(err error) {
	w.isolateUntil = time.Now().Add(2 * w.config.LockDuration)
	w.blind.isolated = w.isolateUntil // a good look after one that failed does not lift this
	w.observe(Event{Kind: EventReceivePanicked, Reason: replacedPanic, Detail: brokerfault.Panic.Advice(), Err: brokerfault.Readable(err), Stack: stackOf(err)})
}

// receiveTrouble records a receive call that failed, for the nth time in a row, and gives the receiver up when there
// is reason to think that it will not recover.
func (w *Worker) receiveTrouble(l *link, failures int, fault brokerfault.Fault, err error) {
	switch {
	case fault == brokerfault.Panic:
		w.replace(l, replacedPanic, err)
		return
	case fault == brokerfault.Stuck:
		w.replace(l, replacedStuck, err)
	case failures >= maxReceiveFailures:
		w.replace(l, replacedFailing, err)
	}
	if fault != brokerfault.None || failures > maxReceiveFailures {
		if fault == brokerfault.None {
			fault = brokerfault.Connection
		}
		w.conditions.set(partBroker, brokerfault.Explain(fault, err))
	}
}

// replace gives a receiver up because it does not work. The next call opens another, on a connection of its own.
func (w *Worker) replace(l *link, why string, err error) {
	if w.connection.retire(l) {
		w.observe(Event{Kind: EventReceiverReplaced, Reason: why, Err: brokerfault.Readable(err)})
	}
}
