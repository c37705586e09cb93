package worker

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/worker/internal/receiver"
)

// A settlement says what is known of a settlement that was tried.
type settlement int

const (
	// settleUnknown: it may have happened or not. Redelivery will tell.
	settleUnknown settlement = iota
	// settleDone: the broker confirmed it.
	settleDone
	// settleLockLost: it did not happen, because the lock was lost.
	settleLockLost
)

const (
	// firstSettleTimeout bounds the first try on a connection that must be set up: cutting that short does harm.
	firstSettleTimeout = 15 * time.Second
	// maxSettleTries bounds the tries by lock token. A completion is tried for as long as the lock lasts: what is committed
	// shall not come back because the broker was busy for half a minute. What is refused for good shall not loop.
	maxSettleTries = 5
	// cutSettleTime bounds all tries together once the worker must stop now.
	cutSettleTime = 2 * time.Second
)

// settle carries out a settlement, in two phases. The first uses the message's own object, once, on the link that it came
// by. When that fails, or when that link has been given up, the second uses nothing but the lock token, on a fresh
// object, over whatever link is in use: a message outlives the link it came by, and the client can never settle its
// object again. It is bounded by the lock, and goes on while the worker drains.
func (w *Worker) settle(ctx context.Context, d *delivery, a action, note deadLetterNote) settlement {
	ctx = context.WithoutCancel(ctx) // detached from every stop of the worker
	if d.session != nil {
		return w.settleInSession(ctx, d, a, note)
	}
	until, doubt := time.Now().Add(w.settleTime(d)), false
	if d.link != nil && w.receiver.Uses(d.link) {
		l := d.link
		d.link = nil // once per object: a second call would return nil without doing anything
		switch fault := receiver.FaultOf(w.settleOnce(ctx, l, d.message, a, note, min(time.Until(until), receiver.OneTry))); fault {
		case brokerfault.None:
			l.Prove()
			return settleDone
		case brokerfault.LockLost:
			return settleLockLost
		default:
			doubt = true
			if tooMuch(fault) {
				note = note.bare()
			}
		}
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return w.settleByToken(ctx, d, a, note, doubt)
}

// settleByToken is the second phase. Doubt tells that the first may have had its effect.
func (w *Worker) settleByToken(ctx context.Context, d *delivery, a action, note deadLetterNote, doubt bool) settlement {
	for try := 0; a == complete || try < maxSettleTries; try++ {
		if try > 0 && !backoff.Sleep(ctx, settleBackoff().Wait(try)) {
			break
		}
		l, err := w.receiver.Link(ctx)
		if errors.Is(err, receiver.ErrClosed) {
			break
		}
		if err != nil {
			continue
		}
		timeout := receiver.OneTry
		if !l.Proven() {
			timeout = firstSettleTimeout
		}
		m := &azservicebus.ReceivedMessage{LockToken: d.lock.token}
		err = w.settleOnce(ctx, l, m, a, note, timeout)
		switch receiver.FaultOf(err) {
		case brokerfault.None:
			l.Worked()
			return settleDone
		case brokerfault.LockLost:
			l.Worked()
			if doubt {
				return settleUnknown
			}
			return settleLockLost
		default:
			doubt = true
			note = note.bare()
			if ctx.Err() == nil {
				w.receiver.Failed(l, err)
			}
		}
	}
	return settleUnknown
}

// settleBackoff returns the backoff between tries by lock token.
func settleBackoff() backoff.Policy {
	return backoff.Policy{Base: 200 * time.Millisecond, Max: 5 * time.Second}
}

// tooMuch reports whether a fault may be the size of the note rather than the state of the link.
func tooMuch(f brokerfault.Fault) bool {
	return f == brokerfault.TooLarge || f == brokerfault.Quota || f == brokerfault.Unknown
}

// settleTime is how long a settlement may take: as long as the lock lasts, and less once the worker must stop now.
func (w *Worker) settleTime(d *delivery) time.Duration {
	left := d.lock.left()
	if closed(w.cut) {
		left = min(left, cutSettleTime)
	}
	return left
}

// settleOnce makes one call.
func (w *Worker) settleOnce(ctx context.Context, l *receiver.Link, m *azservicebus.ReceivedMessage, a action, note deadLetterNote, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return l.Call(ctx, callGrace, func(ctx context.Context, c receiver.Client) error {
		switch a {
		case complete:
			return c.CompleteMessage(ctx, m, nil)
		case deadLetter:
			return c.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{
				Reason: &note.reason, ErrorDescription: &note.description, PropertiesToModify: note.properties,
			})
		default:
			return c.AbandonMessage(ctx, m, nil)
		}
	})
}
