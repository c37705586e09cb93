package worker

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// minRenewal is the time that a renewal gets at least. A lock that has ended by our clock may live by the broker's.
const minRenewal = 2 * time.Second

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
		wait := left - d.lock.duration/2
		if failed {
			wait = min(left/4+50*time.Millisecond, 5*time.Second)
		}
		if !sleep(ctx, max(wait, 0)) {
			return
		}
		failed = !w.renew(ctx, d) && ctx.Err() == nil
	}
}

// renew renews the lock of d once, and reports whether that worked. It renews a copy that carries only the lock token:
// the client writes the new time into the message without a lock, and needs nothing else of it.
func (w *Worker) renew(ctx context.Context, d *delivery) bool {
	l, err := w.connection.get(ctx)
	if err != nil {
		return false
	}
	start := time.Now()
	limit := max(d.lock.left()/3, minRenewal)
	if l.proven.Load() {
		limit = min(limit, 10*time.Second)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m := &azservicebus.ReceivedMessage{LockToken: d.lock.token}
	until, err := supervised(ctx, callGrace, func(ctx context.Context) (*time.Time, error) {
		err := l.receiver.RenewMessageLock(ctx, m, nil)
		return m.LockedUntil, err
	}, nil)
	switch classifyBroker(err) {
	case faultNone:
		l.worked()
		d.lock.renewed(start, until)
		return true
	case faultLockLost:
		l.worked()
		d.lock.lose()
	default:
		if context.Cause(ctx) != context.Canceled {
			w.trouble(l, err)
		}
	}
	return false
}

// trouble takes note of a failure on the management link of l, and gives l up after some in a row.
func (w *Worker) trouble(l *link, err error) {
	if l.trouble.Add(1) >= maxTrouble {
		w.replace(l, replacedManagement, err)
	}
}
