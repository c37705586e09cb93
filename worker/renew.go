package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/worker/internal/receiver"
)

// minRenewal is the time that a renewal gets at least. A lock that has ended by our clock may live by the broker's.
const minRenewal = 2 * time.Second

// A renewal keeps the lock of one delivery, from when that is first due. Most messages are through before, so no goroutine
// waits for them.
type renewal struct {
	timer *time.Timer

	mu     sync.Mutex
	over   bool
	cancel context.CancelFunc // once the timer has fired
}

// keepLater begins to renew the lock of d when that is first due, until the function that it returns is called. Renewal
// outlives a cut of the work: only a locked message can be abandoned.
func (w *Worker) keepLater(ctx context.Context, d *delivery, lost func()) (stop func()) {
	r := &renewal{}
	w.deliveries.Add(1)
	r.timer = time.AfterFunc(d.lock.untilRenewal(), func() {
		defer w.deliveries.Done()
		if ctx := r.begin(context.WithoutCancel(ctx)); ctx != nil {
			w.keep(ctx, d, lost)
		}
	})
	return func() {
		if r.end() {
			w.deliveries.Done()
		}
	}
}

// begin returns the context in which to renew, or nil when the renewal is over already.
func (r *renewal) begin(ctx context.Context) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil
	}
	ctx, r.cancel = context.WithCancel(ctx)
	return ctx
}

// end ends the renewal, and reports whether it had not begun and never will.
func (r *renewal) end() bool {
	if r.timer.Stop() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.cancel != nil {
		r.cancel()
	}
	return false
}

// keep renews the lock of d half way to its end, until ctx ends. When the lock is lost it calls lost and returns. A
// renewal that fails otherwise is repeated until the lock has ended by our clock.
func (w *Worker) keep(ctx context.Context, d *delivery, lost func()) {
	failed := false
	for {
		left := d.lock.left()
		if left == 0 {
			lost()
			return
		}
		wait := d.lock.untilRenewal()
		if failed {
			wait = min(left/4+50*time.Millisecond, 5*time.Second)
		}
		if !backoff.Sleep(ctx, wait) {
			return
		}
		failed = !w.renew(ctx, d) && ctx.Err() == nil
	}
}

// renew renews the lock of d once, and reports whether that worked. It renews a copy that carries only the lock token:
// the client writes the new time into the message without a lock, and needs nothing else of it.
func (w *Worker) renew(ctx context.Context, d *delivery) bool {
	l, err := d.session, error(nil)
	if l == nil {
		l, err = w.receiver.Link(ctx)
	}
	if err != nil {
		return false
	}
	start := time.Now()
	left := d.lock.left()
	limit := left / 2 // a connection may have to be set up first
	if l.Proven() {
		limit = min(left/4, receiver.OneTry)
	}
	ctx, cancel := context.WithTimeout(ctx, max(limit, minRenewal))
	defer cancel()
	m := &azservicebus.ReceivedMessage{LockToken: d.lock.token}
	err = l.Call(ctx, callGrace, func(ctx context.Context, c receiver.Client) error { return c.RenewMessageLock(ctx, m, nil) })
	switch receiver.FaultOf(err) {
	case brokerfault.None:
		l.Worked()
		d.lock.renewed(start, m.LockedUntil)
		return true
	case brokerfault.LockLost:
		l.Worked()
		if left > 0 && !d.lock.wasRenewed() && d.session == nil {
			w.receiver.LostEarly(d.received)
		}
		d.lock.lose()
	default:
		if d.session == nil && !errors.Is(ctx.Err(), context.Canceled) { // whatever the cause: what we cut short says nothing of the link
			w.receiver.Failed(l, err)
		}
	}
	return false
}
