package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// sweepPage bounds the outboxes of one sweep.
const sweepPage = 100

// relay sends what no delivery has sent: the incoming message may have expired, been purged, or been completed while a destination
// was away. It sweeps at intervals that differ by up to half, so that replicas do not come together.
func (w *Worker) relay(ctx context.Context) {
	c := w.config.Outbox
	if w.pipeline.outbox == nil || absent(c.Sender) {
		return
	}
	for backoff.Sleep(ctx, c.SweepEvery/2+rand.N(c.SweepEvery)) {
		w.sweep(ctx)
	}
}

// sweep sends what has been left for long enough. It begins anew at once while there is more.
func (w *Worker) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		overdue, err := w.overdue(ctx)
		if err != nil {
			w.observe(Event{Kind: EventSweepFailed, Err: err})
			return
		}
		var oldest time.Duration
		relayed := 0
		for _, u := range overdue {
			if w.relayed(ctx, u) {
				relayed++
			} else {
				oldest = max(oldest, u.Age)
			}
		}
		if oldest > 0 {
			w.unsent.saw(time.Now(), oldest)
			w.observe(Event{Kind: EventWaiting, Lag: oldest, Messages: len(overdue) - relayed})
		}
		if relayed == 0 || len(overdue) < sweepPage {
			return
		}
	}
}

func (w *Worker) overdue(ctx context.Context) ([]Unsent, error) {
	sctx, cancel := context.WithTimeout(ctx, w.config.StoreTimeout)
	defer cancel()
	return supervise.Call(sctx, w.pool, callGrace, func(ctx context.Context) ([]Unsent, error) {
		return w.pipeline.outbox.Overdue(ctx, w.config.Outbox.SweepAfter, sweepPage)
	}, nil)
}

// relayed sends one outbox unless another worker does so, and reports whether nothing of it is left to this one.
func (w *Worker) relayed(ctx context.Context, u Unsent) bool {
	if w.pipeline.posting.hopeless(u) {
		return false
	}
	sent, err := w.pipeline.Relay(ctx, u)
	if _, moved := errors.AsType[*StateMovedError](err); moved {
		return true
	}
	if err != nil {
		return false
	}
	w.observe(Event{Kind: EventRelayed, DocumentID: sent.DocumentID, Messages: len(sent.Messages)})
	return true
}

// Relay sends an outbox that [Outbox.Overdue] returned: it takes it up, sends everything, and records that. The error is a
// [StateMovedError] when another worker has been faster.
func (p *Pipeline) Relay(ctx context.Context, u Unsent) (Unsent, error) {
	sctx, cancel := context.WithTimeout(ctx, p.storeTimeout)
	defer cancel()
	u, err := supervise.Call(sctx, p.pool, callGrace, func(ctx context.Context) (Unsent, error) { return p.outbox.TakeUp(ctx, u) }, nil)
	if err == nil {
		err = p.posting.post(ctx, p.pool, u)
	}
	if err != nil {
		return u, err
	}
	return u, p.forget(ctx, Result{sent: &u})
}

// unsentAge remembers how long the oldest message that a sweep could not send has waited.
type unsentAge struct {
	mu   sync.Mutex
	at   time.Time // when it was committed
	seen time.Time
}

func (a *unsentAge) saw(now time.Time, age time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.seen = now.Add(-age), now
}

// age returns how long the oldest has waited now, zero when no sweep has seen one lately. What a sweep has tried to send is not seen
// by the next ones for a while.
func (a *unsentAge) age(now time.Time, lately time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen.IsZero() || now.Sub(a.seen) > lately {
		return 0
	}
	return now.Sub(a.at)
}

// destinationChanged tells of a destination that cannot be sent to, or can be again.
func (w *Worker) destinationChanged(to string, err error) {
	if err != nil {
		w.observe(Event{Kind: EventDestinationDown, Reason: to, Detail: describeUnsent(to, explained(err)), Err: err})
		return
	}
	w.observe(Event{Kind: EventDestinationUp, Reason: to})
}

// closeSender ends the connection over which messages are sent.
func (w *Worker) closeSender() {
	if s := w.config.Outbox.Sender; !absent(s) {
		ctx, cancel := context.WithTimeout(context.Background(), senderCloseTime)
		defer cancel()
		_ = supervise.Do(ctx, nil, callGrace, s.Close)
	}
}
