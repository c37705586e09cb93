package worker

import (
	"context"
	"errors"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker/internal/breaker"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// movedBase and movedMax bound the wait before the handler runs again because what it read has changed. Many messages may
// change one document, and only one of them can be first each time.
const (
	movedBase = 20 * time.Millisecond
	movedMax  = 2 * time.Second
)

// maxHold bounds how long a message is held in one delivery.
const maxHold = 24 * time.Hour

// process takes one message from receipt to settlement, and returns what is known of that. It owns a slot until the settlement begins.
func (w *Worker) process(ctx context.Context, d *delivery) settlement {
	defer w.slots.done()
	w.flight.add(d.sequence())
	defer w.flight.remove(d.sequence())
	for _, b := range [...]*breaker.Breaker{w.breaker, w.handlers.Breaker} {
		b.Entered(d.sequence())
		defer b.Left(d.sequence())
	}
	ctx, span := w.telemetry.startSpan(ctx, d)
	defer span.End()
	d.span = span.SpanContext()
	received := d.event(EventReceived)
	received.Lag, received.InFlight = d.lag(), w.slots.inFlight()
	w.observe(received)

	r, a := w.attempt(ctx, d)
	w.yieldSlot(d, r)
	if r.Cause == CauseIgnored || r.Cause == CauseRefused || r.Cause == CauseRejected {
		w.makeRoom(d)
	}
	w.judged(d, r)
	s, recorded := settleUnknown, w.forget(ctx, r)
	switch a {
	case complete, abandon:
		s = w.settle(ctx, d, a, deadLetterNote{})
	case deadLetter:
		s = w.settle(ctx, d, a, noteOf(r, w.config.Program, w.config.Version))
	}
	<-recorded
	<-w.settling
	w.settled(d, r, a, s)
	w.telemetry.endSpan(span, r, a, s)
	return s
}

// yieldSlot frees the slot for the next message, once there is a place among those that are being settled. A settlement
// costs a round trip and nothing else, so it need not keep a slot; but it must not pile up either. A slot whose handler
// or store has not returned stays taken until it does.
func (w *Worker) yieldSlot(d *delivery, r Result) {
	w.settling <- struct{}{}
	if !r.running() {
		w.slots.free()
		return
	}
	w.stranded.more()
	w.makeRoom(d)
	stuck := r.stuck // the goroutine shall not keep the rest of the result
	go func() {
		<-stuck
		w.stranded.fewer()
		w.slots.free()
	}()
}

// makeRoom lets a process that has committed nothing receive one message more, once for each delivery that tells nothing of the
// store: one that is through without it, or waits for something else.
func (w *Worker) makeRoom(d *delivery) {
	if !d.madeRoom {
		d.madeRoom = true
		w.breaker.WithoutStore()
	}
}

// attempt works on a message, with its lock renewed, until there is nothing left to do but to settle it.
func (w *Worker) attempt(ctx context.Context, d *delivery) (Result, action) {
	// A message may come with little of its lock left, or none by our clock. The broker is asked before any work.
	if !d.lock.fresh() && !w.renew(ctx, d) && d.lock.left() == 0 {
		return Result{Cause: CauseLockLost, Err: ErrLockLost}, leave
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer w.keepLater(ctx, d, func() { cancel(ErrLockLost) })()

	r := w.pipeline.admit(d.message)
	for try := 1; ; try++ {
		if r.Cause == 0 {
			r = w.pass(ctx, d, r)
		}
		held := time.Since(d.received) // asked once: the wait and the decision rest on the same time
		wait := w.waitFor(r, try, w.holdFor(d)-held)
		switch a := decide(w.factsOf(d, r, try, held+wait)); a {
		case retry:
			w.observe(w.eventOf(EventRetried, d, r))
			w.makeRoom(d)
			if backoff.SleepUnless(ctx, w.stop, wait) {
				r.Cause = 0
			}
		case hold:
			if w.causeOf(r) == CauseHandlerOutage || w.pauseForStore(ctx, d, wait) { // for the handler it waits before the next call
				r.Cause = 0
			}
		case delay:
			if !w.delay(ctx, d) {
				return w.pipeline.finalRelease(ctx, r), leave
			}
		default:
			return w.pipeline.finalRelease(ctx, r), a
		}
		if cause := context.Cause(ctx); cause != nil && r.Cause != 0 {
			r = r.interrupted(cause)
		}
	}
}

// factsOf gathers what the decision depends on. Held is how long the message will have been held when it is tried again.
func (w *Worker) factsOf(d *delivery, r Result, try int, held time.Duration) facts {
	return facts{
		cause:         w.causeOf(r),
		delayed:       d.delayed || r.running(),
		lockLost:      d.lock.left() == 0,
		stopping:      w.stopping(),
		triesLeft:     try < w.config.Retry.Attempts,
		holdLeft:      held < w.holdFor(d),
		deliveries:    d.message.DeliveryCount,
		maxDeliveries: w.config.MaxDeliveryCount,
	}
}

// pass asks the handler for documents unless there are some from an earlier try, and commits them.
func (w *Worker) pass(ctx context.Context, d *delivery, r Result) Result {
	if !r.looked && (w.config.LookFirst || d.message.DeliveryCount > 1) {
		r = w.underPermit(ctx, d, r, w.pipeline.lookFirst)
	}
	r = w.claim(ctx, d, r)
	switch {
	case r.Cause != 0 || r.handled:
	case r.readFailed:
		r = w.handle(ctx, d, r, func(r Result) Result { return w.underPermit(ctx, d, r, w.pipeline.handle) })
	default:
		r = w.handle(ctx, d, r, func(r Result) Result { return w.pipeline.handle(ctx, r) })
	}
	if r.Cause == CauseRejected && r.readState && !r.looked && !r.held {
		// A copy of a message that is committed may be rejected for what that one has changed: it is a duplicate all the same.
		r = w.underPermit(ctx, d, r, w.pipeline.lookFirst)
	}
	if r.Cause == 0 {
		r = w.underPermit(ctx, d, r, w.pipeline.commit)
	}
	w.panicked(d, r)
	if r.releases() {
		r = w.underPermit(ctx, d, r, w.pipeline.release)
	}
	return w.sendOutgoing(ctx, d, r)
}

// sendOutgoing sends the messages that a committed message has to send.
func (w *Worker) sendOutgoing(ctx context.Context, d *delivery, r Result) Result {
	r = w.pipeline.send(ctx, r)
	switch {
	case r.Unsent:
		e := w.eventOf(EventUnsent, d, r)
		e.Err = r.unsentErr
		w.observe(e)
	case r.sent != nil:
		e := w.eventOf(EventSent, d, r)
		e.Messages = len(r.sent.Messages)
		w.observe(e)
	}
	return r
}

// forget records that everything was sent, at the same time as the message is completed. The channel is closed when that is done.
func (w *Worker) forget(ctx context.Context, r Result) <-chan struct{} {
	done := make(chan struct{})
	if r.sent == nil {
		close(done)
		return done
	}
	w.pool.Go(func() {
		defer close(done)
		if err := w.pipeline.forget(ctx, r); err != nil {
			w.observe(Event{Kind: EventUnrecorded, DocumentID: r.sent.DocumentID, Err: err})
		}
	})
	return done
}

// panicked reports the stack of a panic, for anyone who fixes it, once for each delivery.
func (w *Worker) panicked(d *delivery, r Result) {
	if r.Cause == 0 || r.Err == nil || d.panicked {
		return
	}
	if stack := supervise.Stack(r.Err); stack != "" {
		d.panicked = true
		e := w.eventOf(EventPanicked, d, r)
		e.Stack = stack
		w.observe(e)
	}
}

// underPermit waits for a permit, makes sure of the lock, and makes a call of the store.
func (w *Worker) underPermit(ctx context.Context, d *delivery, r Result, call func(context.Context, Result) Result) Result {
	p, err := w.permit(ctx, d, w.breaker)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return r.interrupted(cause)
		}
		r.Cause, r.Err = CauseUnavailable, errors.Join(r.Err, err)
		return r
	}
	if !d.lock.covers(w.config.StoreTimeout+callGrace) && !w.renew(ctx, d) && !d.lock.covers(w.config.StoreTimeout) {
		r.Cause = CauseLockTooShort
		if cause := context.Cause(ctx); cause != nil {
			r = r.interrupted(cause)
		}
		return r.blamed(w.breaker.Report(p, reportOf(r)))
	}
	r = call(ctx, r)
	return r.blamed(w.breaker.Report(p, reportOf(r)))
}

// permit waits until a circuit breaker lets the work on d go on. It does not wait beyond the time that the message may be held for, if the
// message is known to survive being abandoned.
func (w *Worker) permit(ctx context.Context, d *delivery, b *breaker.Breaker) (breaker.Permit, error) {
	if p, ok := b.TryAcquire(d.sequence()); ok {
		return p, nil
	}
	f := facts{deliveries: d.message.DeliveryCount, maxDeliveries: w.config.MaxDeliveryCount}
	if f.spare() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.received.Add(w.holdFor(d)))
		defer cancel()
	}
	return b.Acquire(ctx, w.stop, d.sequence())
}

// holdFor is how long d may be held.
func (w *Worker) holdFor(d *delivery) time.Duration {
	return w.config.Retry.holdFor(d.message.DeliveryCount)
}

// waitFor returns the wait before the next try: what was asked for, or full jitter. A handler that asks for more than is left
// of this delivery gets that: abandoned at once, the message would come straight back, and spend all deliveries.
func (w *Worker) waitFor(r Result, try int, left time.Duration) time.Duration {
	if r.Cause == CauseStateMoved {
		return backoff.Policy{Base: movedBase, Max: movedMax}.Wait(r.HandlerRuns - 1)
	}
	wait := w.config.Retry.backoff().Wait(try - 1)
	if r.Cause == CauseRetryLater && r.RetryAfter > 0 {
		return max(min(r.RetryAfter, left-1), 1)
	}
	return max(wait, min(r.RetryAfter, breaker.MaxHint))
}

// pauseForStore waits for d before the next commit. When the breaker is open the breaker has the say over when that is, so there
// is no wait of the message's own: it gets in line. Where the breaker would let it through at once, it waits.
func (w *Worker) pauseForStore(ctx context.Context, d *delivery, wait time.Duration) bool {
	if w.breaker.Suspected(d.sequence()) {
		return backoff.SleepUnless(ctx, w.stop, wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		state, changed := w.breaker.Watch()
		if state != breaker.Closed && state != breaker.Trial {
			return !w.stopping()
		}
		select {
		case <-changed:
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-w.stop:
			return false
		}
	}
}

// eventOf is an event of a message with what its result says.
func (w *Worker) eventOf(k EventKind, d *delivery, r Result) Event {
	e := d.event(k)
	e.DocumentID, e.Judgement, e.Cause = r.Commit.DocumentID, r.Judgement, r.Cause
	e.Reason, e.Detail, e.Err = r.Reason, r.Detail, r.Err
	e.Calls, e.Charge = r.Calls, r.Charge
	return e
}

// judged tells what the work on a message came to, before it is settled.
func (w *Worker) judged(d *delivery, r Result) {
	switch {
	case r.Cause == CauseCommitted && r.Judgement == Created:
		w.observe(w.eventOf(EventCreated, d, r))
	case r.Cause == CauseCommitted && r.Judgement == Stale:
		w.observe(w.eventOf(EventStale, d, r))
	case r.Cause == CauseCommitted && r.Judgement == Own:
		w.observe(w.eventOf(EventOwn, d, r))
	case r.Cause == CauseCommitted && r.Judgement == Redelivered:
		w.observe(w.eventOf(EventRedelivered, d, r))
	case r.Cause == CauseCommitted:
		w.observe(w.eventOf(EventDuplicate, d, r))
	case r.Cause == CauseIgnored:
		w.observe(w.eventOf(EventIgnored, d, r))
	case r.Judgement == Conflict:
		e := w.eventOf(EventConflict, d, r)
		e.Run = w.conflicts.count(r.Commit.DocumentID, time.Now())
		w.observe(e)
	case r.Cause == CauseLockLost:
		w.observe(w.eventOf(EventLockLost, d, r))
	}
}

// settled tells how the delivery ended.
func (w *Worker) settled(d *delivery, r Result, a action, s settlement) {
	switch {
	case a == leave && r.Cause == CauseLockLost:
	case a == leave && r.ended(), s == settleLockLost:
		w.observe(w.eventOf(EventLockLost, d, r))
	case a == leave:
		w.observe(w.eventOf(EventNotSettled, d, r))
	case s == settleUnknown:
		w.observe(w.eventOf(EventSettleFailed, d, r))
	case a == deadLetter:
		w.observe(w.eventOf(EventDeadLettered, d, r))
	case a == abandon:
		w.observe(w.eventOf(EventAbandoned, d, r))
	}
	e := w.eventOf(EventFinished, d, r)
	e.Duration, e.InFlight = time.Since(d.received), w.slots.inFlight()
	w.observe(e)
}
