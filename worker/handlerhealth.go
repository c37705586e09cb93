package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker/internal/breaker"
)

// handlerHealth tells an outage of what the handler calls from messages that fail by themselves. It is a second circuit breaker,
// before the handler: errors and timeouts of several messages in a row, with no run between them that ended well, open it. Then
// nothing is received, no message is dead-lettered, and one at a time tries whether the handler works again. A rejection, a
// panic and a [RetryAfter] say nothing of what the handler calls. It is safe for concurrent use.
type handlerHealth struct {
	*breaker.Breaker
	// messages is how many must fail in a row.
	messages int

	mu sync.Mutex
	// failed are messages that have failed before, by sequence number: that they fail again is no news.
	failed map[int64]bool
	// row counts those that failed for the first time since a run ended well.
	row    int
	outage bool
}

// maxFailedBefore bounds the messages that are remembered to have failed.
const maxFailedBefore = 10_000

func newHandlerHealth(c Config, notify func(breaker.Change), wake func()) *handlerHealth {
	h := &handlerHealth{messages: 2 * c.Breaker.Failures, failed: map[int64]bool{}}
	h.Breaker = breaker.New(breaker.Config{Failures: 1, Proven: true, Backoff: c.Breaker.backoff(), Capacity: c.Concurrency, Wake: wake, Notify: func(change breaker.Change) {
		h.mu.Lock()
		h.outage = change.Opened
		h.mu.Unlock()
		notify(change)
	}})
	return h
}

// report says what a run of the handler over a message means.
func (h *handlerHealth) report(message int64, r Result) breaker.Report {
	switch {
	case r.Cause == 0, r.Cause == CauseIgnored, r.Cause == CauseInvalidEffects:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.row = 0
		return breaker.Report{Answer: breaker.Wrote}
	case !r.ofHandler():
		return breaker.Report{}
	}
	state, _ := h.Watch()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.failed[message] {
		if len(h.failed) >= maxFailedBefore {
			clear(h.failed)
		}
		h.failed[message] = true
		h.row++
	}
	if h.row < h.messages && (!h.outage || state == breaker.Ramp) {
		return breaker.Report{Err: r.Err}
	}
	return breaker.Report{Answer: breaker.Unavailable, Err: r.Err}
}

// room returns how many more messages may be in process for the sake of what the handler calls.
func (h *handlerHealth) room(inProcess int) int {
	if state, _ := h.Watch(); state == breaker.Closed {
		return math.MaxInt
	}
	return h.RoomBesideWaiting(inProcess)
}

// away reports whether there is an outage.
func (h *handlerHealth) away() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.outage
}

// handle asks the handler for the effects, when its circuit breaker allows it.
func (w *Worker) handle(ctx context.Context, d *delivery, r Result, call func(Result) Result) Result {
	p, err := w.handlerPermit(ctx, d)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return r.interrupted(cause)
		}
		r.Cause, r.Err = CauseHandlerOutage, errors.Join(r.Err, err)
		return r
	}
	r = call(r)
	w.handlers.Report(p, w.handlers.report(d.sequence(), r))
	return r
}

// handlerPermit waits for a permit of the handler's circuit breaker, without a slot: messages that wait, because they are bad or because
// what the handler calls is away, shall not keep those behind them from trying.
func (w *Worker) handlerPermit(ctx context.Context, d *delivery) (breaker.Permit, error) {
	if p, ok := w.handlers.TryAcquire(d.sequence()); ok {
		return p, nil
	}
	if size := len(d.message.Body); d.session == nil && w.parking.enter(size) {
		defer w.parking.leave(size)
		w.slots.free()
		defer w.slots.take()
	}
	return w.permit(ctx, d, w.handlers.Breaker)
}

// waitingOrIn counts the messages that are in process for the handler's circuit breaker.
func (w *Worker) waitingOrIn() int { return w.slots.inUse() + w.handlers.Waiting() }

// causeOf is the cause of a result, or that what the handler calls is away when that is behind it.
func (w *Worker) causeOf(r Result) Cause {
	if r.ofHandler() && w.handlers.away() {
		return CauseHandlerOutage
	}
	return r.Cause
}

// delay waits until d is given up for its next delivery, without a slot. It reports false when too many wait: the message is left
// to its lock then, which is a wait too.
func (w *Worker) delay(ctx context.Context, d *delivery) bool {
	size := len(d.message.Body)
	if !w.parking.enter(size) {
		return false
	}
	defer w.parking.leave(size)
	d.delayed = true
	w.makeRoom(d)
	w.slots.free()
	defer w.slots.take()
	backoff.SleepUnless(ctx, w.stop, w.config.Retry.delayFor(d.message.DeliveryCount, w.config.MaxDeliveryCount))
	return true
}

// maxParkedBytes bounds the bodies of all deliveries that wait without a slot, and parkedPerSlot their number.
const (
	maxParkedBytes = 32 << 20
	parkedPerSlot  = 32
)

// parking bounds the deliveries that wait without a slot, whose locks are renewed and whose bodies are kept meanwhile. It is safe for
// concurrent use.
type parking struct {
	most int

	mu    sync.Mutex
	count int
	bytes int
}

func (p *parking) enter(size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count >= p.most || p.bytes+size > maxParkedBytes {
		return false
	}
	p.count, p.bytes = p.count+1, p.bytes+size
	return true
}

func (p *parking) leave(size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.bytes = p.count-1, p.bytes-size
}

// handlerChanged reports a change of the handler's circuit breaker in events and in health.
func (w *Worker) handlerChanged(c breaker.Change) {
	if c.Closed {
		w.conditions.clear(partHandler)
		if c.Lasted > 0 {
			w.observe(Event{Kind: EventHandlerRecovered, Duration: c.Lasted})
		}
		return
	}
	detail := fmt.Sprintf("the handler failed on %d messages in a row, so that what it calls seems to be away. Nothing is received until it works again; no message is dead-lettered for it", w.handlers.messages)
	w.observe(Event{Kind: EventHandlerOutage, Cause: CauseHandlerOutage, Err: c.Cause, Detail: detail})
	if c.Cause != nil {
		detail += ": " + clip(c.Cause.Error(), maxDescription)
	}
	w.conditions.set(partHandler, detail)
}

// handlerProbe lets a message try: there is no other way to ask a handler whether it works.
func handlerProbe(context.Context) breaker.Report { return breaker.Report{Answer: breaker.Answered} }
