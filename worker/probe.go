package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
)

// quietAfter is how long nothing may have been heard of the store before it is asked how it is. A worker without work
// would never notice an outage otherwise.
const quietAfter = 20 * time.Second

// probeLoop asks the store whether it can be used, whenever the breaker is not sure, and now and then when nothing was
// heard of it, until ctx ends.
func (w *Worker) probeLoop(ctx context.Context) {
	for ctx.Err() == nil {
		state, changed := w.breaker.watch()
		if state == breakerStarting || state == breakerOpen {
			if !backoff.Sleep(ctx, w.breaker.probeWait()) {
				continue
			}
			if r := w.probe(ctx); r.Cause == 0 || ctx.Err() == nil {
				w.breaker.probed(r) // what was cut short by a stop says nothing of the store
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-trialOver(w.breaker.onTrial()):
			w.breaker.unproven(w.slots.inUse())
		case <-time.After(quietAfter + rand.N(quietAfter)):
			w.checkUp(ctx)
		}
	}
}

// trialOver fires when the trial after an incident has waited long enough for a message to try.
func trialOver(onTrial bool) <-chan time.Time {
	if !onTrial {
		return nil
	}
	return time.After(trialWait)
}

// checkUp asks a store of which nothing was heard for a while. One failure may be chance; two in a row open the breaker.
func (w *Worker) checkUp(ctx context.Context) {
	begun := time.Now()
	if w.breaker.heardSince(begun.Add(-quietAfter)) {
		return
	}
	r := w.probe(ctx)
	if r.Cause != 0 && backoff.Sleep(ctx, w.config.Breaker.ProbeBase/2+w.config.Breaker.backoff().Wait(0)) {
		r = w.probe(ctx)
	}
	if ctx.Err() == nil {
		w.breaker.checked(r, begun)
	}
}

// probe asks the store once, within the time that a commit has.
func (w *Worker) probe(ctx context.Context) Result {
	pctx, cancel := context.WithTimeout(ctx, w.config.StoreTimeout)
	defer cancel()
	if err := call(pctx, nil, callGrace, w.pipeline.store.Ready); err != nil {
		r := Result{}.failed(ctx, err)
		if r.Cause != CauseMisconfigured {
			r.Cause = CauseUnavailable // whatever it was, it was no message's fault
		}
		return r
	}
	return Result{}
}

// breakerChanged reports a change of the circuit breaker in events and in health.
func (w *Worker) breakerChanged(c breakerChange) {
	if c.closed {
		w.conditions.clear(partStore)
		if c.lasted > 0 {
			w.observe(Event{Kind: EventBreakerClosed, Duration: c.lasted})
		}
		return
	}
	detail := "the store cannot be used now. Nothing is received until it can; no message is lost"
	e := Event{Kind: EventBreakerOpened, Cause: CauseUnavailable, Err: c.cause}
	if c.misconfigured {
		e.Cause = CauseMisconfigured
		detail = "nothing can be stored until somebody changes something"
	}
	e.Detail = detail
	w.observe(e)
	if c.cause != nil {
		detail += ": " + clip(c.cause.Error(), maxDescription)
	}
	w.conditions.set(partStore, detail)
}
