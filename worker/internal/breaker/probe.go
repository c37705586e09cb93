package breaker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
)

const (
	// quietAfter is how long nothing may have been heard of the store before it is asked how it is. A worker without work
	// would never notice an outage otherwise.
	quietAfter = 20 * time.Second
	// trialWait is how long the trial after an incident waits for a message to try.
	trialWait = 10 * time.Second
)

// Run asks the store by probe whether it can be used, whenever the breaker is not sure, and now and then when nothing was heard
// of it, until ctx ends. InProcess returns the number of messages in process.
func (b *Breaker) Run(ctx context.Context, probe func(context.Context) Report, inProcess func() int) {
	for ctx.Err() == nil {
		state, changed := b.Watch()
		if state == Starting || state == Open {
			if !backoff.Sleep(ctx, b.probeWait()) {
				continue
			}
			if r := probe(ctx); !r.failed() || ctx.Err() == nil {
				b.probed(r) // what was cut short by a stop says nothing of the store
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-b.trialOver():
			b.unproven(inProcess())
		case <-time.After(quietAfter + rand.N(quietAfter)):
			b.checkUp(ctx, probe)
		}
	}
}

// trialOver fires when the trial after an incident has waited long enough for a message to try.
func (b *Breaker) trialOver() <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Trial || !b.incidentLocked() {
		return nil
	}
	return time.After(trialWait)
}

// checkUp asks a store of which nothing was heard for a while. One failure may be chance; two in a row open the breaker.
func (b *Breaker) checkUp(ctx context.Context, probe func(context.Context) Report) {
	begun := time.Now()
	if b.heardSince(begun.Add(-quietAfter)) {
		return
	}
	r := probe(ctx)
	if r.failed() && backoff.Sleep(ctx, b.config.Backoff.Base/2+b.config.Backoff.Wait(0)) {
		r = probe(ctx)
	}
	if ctx.Err() == nil {
		b.checked(r, begun)
	}
}

// probeWait returns how long to wait before the store is asked again, and counts the probe.
func (b *Breaker) probeWait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := time.Duration(0)
	if b.state != Starting {
		wait = b.config.Backoff.Wait(b.probes)
		b.probes++
	}
	return max(wait, time.Until(b.hint))
}

// probed records what the store said of itself.
func (b *Breaker) probed(r Report) {
	b.mu.Lock()
	var change Change
	b.heard = time.Now()
	switch {
	case b.state != Open && b.state != Starting:
	case r.failed():
		change = b.openLocked(r)
	default:
		if b.state == Starting { // its first commit proves the store, but it is ready for it
			change = Change{Closed: true}
		}
		b.state, b.suspectsTurn = Trial, false
		b.broadcastLocked()
	}
	b.mu.Unlock()
	b.notify(change)
}

// heardSince reports whether a commit or a probe has told of the store since t.
func (b *Breaker) heardSince(t time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard.After(t)
}

// checked records what a store said that was asked out of turn, from begun on. What a commit told meanwhile counts for more.
func (b *Breaker) checked(r Report, begun time.Time) {
	b.mu.Lock()
	var change Change
	working := b.state == Closed || b.state == Ramp || b.state == Trial && !b.incidentLocked()
	switch {
	case working && r.failed() && !b.heard.After(begun):
		change = b.openLocked(r)
	case !r.failed() && b.state == Ramp && b.active == 0:
		b.closeLocked() // nothing came for long enough to be asked
	}
	b.heard = time.Now()
	b.mu.Unlock()
	b.notify(change)
}

// unproven ends a trial for which there was nothing to try: the store's own word must do then. When only suspects wait, it is
// their turn.
func (b *Breaker) unproven(inProcess int) {
	b.mu.Lock()
	var change Change
	switch {
	case b.state != Trial || b.active > 0:
	case inProcess == 0 && !b.proven:
		change = b.overLocked() // ready, and the first commit is still to come
	case inProcess == 0:
		change = b.rampLocked()
	case b.waiting > 0 && b.waiting == b.blame.waiting && !b.suspectsTurn:
		b.suspectsTurn = true
		b.broadcastLocked()
	}
	b.mu.Unlock()
	b.notify(change)
}
