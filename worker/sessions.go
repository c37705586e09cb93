package worker

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/worker/internal/receiver"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

const (
	// acceptWait is how long the broker is asked to wait for a session. It answers that there is none, so a connection that has
	// become silent shows by acceptGrace later.
	acceptWait  = time.Minute
	acceptGrace = 5 * time.Second
	// sessionCloseTime bounds the closing of a session and of its connection.
	sessionCloseTime = 5 * time.Second
)

// A sessionLoop accepts one session at a time and takes its messages one by one. The messages of a session are in order because
// the next is asked for only when the broker has confirmed the settlement of the one before. After anything else, and whenever
// a receive call brought nothing and may have left credit behind, the session is closed: the broker then has all its messages
// back in their order. Only its own goroutine uses it.
type sessionLoop struct {
	w        *Worker
	broker   SessionBroker
	acceptor SessionAcceptor
	failures int
}

// runSessions accepts sessions and processes their messages until ctx ends. It returns when the session in hand is closed.
func (w *Worker) runSessions(ctx, work context.Context, b SessionBroker) {
	s := &sessionLoop{w: w, broker: b}
	defer s.disconnect()
	for ctx.Err() == nil {
		if !w.reserve(ctx) {
			return
		}
		if r := s.accept(ctx); r != nil {
			s.serve(ctx, work, r)
			continue
		}
		w.unreserve()
		if s.failures > 0 {
			backoff.Sleep(ctx, sessionBackoff().Wait(s.failures-1))
		}
	}
}

// reserve waits for a slot and takes it. It returns false when ctx ends first.
func (w *Worker) reserve(ctx context.Context) bool {
	for ctx.Err() == nil {
		changed := w.room.changed()
		if w.slots.takeIf(w.roomBeside) {
			return true
		}
		select {
		case <-changed:
		case <-w.slots.wake:
		case <-ctx.Done():
		}
	}
	return false
}

// unreserve ends a reservation that no message came for.
func (w *Worker) unreserve() {
	w.slots.free()
	w.slots.done()
}

// accept returns a session, or nil when there is none or when ctx ends.
func (s *sessionLoop) accept(ctx context.Context) SessionReceiver {
	if s.acceptor == nil {
		a, err := s.broker.OpenSessions(ctx)
		if err != nil {
			s.failed(err)
			return nil
		}
		s.acceptor = a
	}
	actx, cancel := s.w.whileClosed(ctx, acceptWait+acceptGrace)
	defer cancel()
	asked := deadlineContext{actx, time.Now().Add(acceptWait)}
	r, err := supervise.Call(asked, nil, s.w.config.Watchdog.Stuck, s.acceptor.Accept, func(late SessionReceiver, err error) {
		if err == nil {
			_ = closeBounded(late.Close) // nobody waits for it
		}
	})
	switch {
	case err == nil:
		s.reached()
		return r
	case actx.Err() == context.Canceled:
		// The broker may still give a session to a call that was cut short, so that the connection is given up with it.
		s.disconnect()
	case isAcceptTimeout(err) && actx.Err() == nil:
		s.reached()
	default:
		s.failed(err)
	}
	return nil
}

// reached records that the broker answers.
func (s *sessionLoop) reached() {
	s.failures = 0
	s.w.conditions.clear(partBroker)
}

// failed gives the connection up.
func (s *sessionLoop) failed(err error) {
	s.failures++
	s.disconnect()
	if s.failures > 1 {
		s.w.conditions.set(partBroker, brokerfault.Explain(receiver.FaultOf(err), err))
	}
}

func (s *sessionLoop) disconnect() {
	if s.acceptor != nil {
		_ = closeBounded(s.acceptor.Close) // it is given up since it does not work, or at the end
		s.acceptor = nil
	}
}

// serve processes the messages of a session until it is idle, lost or no longer wanted, and closes it. It begins with a slot
// that is reserved, and leaves none.
func (s *sessionLoop) serve(ctx, work context.Context, r SessionReceiver) {
	until := r.LockedUntil()
	l := receiver.NewLink(r, s.w.pool)
	k := newLock([16]byte{}, s.w.config.LockDuration, &until)
	for s.next(ctx, work, r, l, k) {
		// Asked for without a wait: a session that must wait for a slot is better off with another worker.
		if ctx.Err() != nil || !s.w.slots.takeIf(s.w.roomBeside) {
			break
		}
	}
	if err := closeBounded(r.Close); err != nil {
		s.disconnect()
	}
}

// next processes one message, and reports whether the session may go on. It uses up the slot that is reserved.
func (s *sessionLoop) next(ctx, work context.Context, r SessionReceiver, l *receiver.Link, k *lock) bool {
	w := s.w
	messages, err := s.receive(ctx, r, l, k)
	if len(messages) == 0 || ctx.Err() != nil {
		w.unreserve()
		switch receiver.FaultOf(err) {
		case brokerfault.Panic:
			// Closed at once, the session would have the message back as often delivered as before, and would never be rid of
			// it. A lock that ends is counted.
			w.noticed(receiver.Notice{Kind: receiver.Panicked, Reason: receiver.ReplacedPanic, Detail: brokerfault.Panic.Advice(), Err: err})
			backoff.Sleep(ctx, k.left()+time.Second)
		case brokerfault.Stuck:
			s.disconnect()
		}
		return false
	}
	w.noticed(receiver.Notice{Kind: receiver.Arrived})
	d := w.newDelivery(messages[0], l)
	d.lock, d.session = k, l
	return w.process(work, d) == settleDone && k.left() > 0
}

// receive waits for the next message of a session while its lock lasts.
func (s *sessionLoop) receive(ctx context.Context, r SessionReceiver, l *receiver.Link, k *lock) ([]*azservicebus.ReceivedMessage, error) {
	w := s.w
	if d := (&delivery{lock: k, session: l}); !k.covers(w.config.LockDuration) && !w.renew(ctx, d) {
		return nil, ErrLockLost
	}
	ctx, cancel := w.whileClosed(ctx, min(w.config.SessionIdle, k.left()/2))
	defer cancel()
	if ctx.Err() != nil {
		return nil, ctx.Err() // a call would issue credit all the same
	}
	return supervise.Call(ctx, w.pool, w.config.Watchdog.Stuck, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
		return r.ReceiveMessages(ctx, 1, nil)
	}, nil)
}

// whileClosed returns a context that ends after d, and is cancelled when a circuit breaker opens.
func (w *Worker) whileClosed(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	go func() {
		for ctx.Err() == nil {
			changed := w.room.changed()
			if w.roomBeside(0) <= 0 {
				cancel()
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	return ctx, cancel
}

// settleInSession settles a message over the receiver that has its session, in one try: the client does not settle one message
// twice, and nothing settles a message of a session from outside. What is in doubt is told by the next delivery.
func (w *Worker) settleInSession(ctx context.Context, d *delivery, a action, note deadLetterNote) settlement {
	if d.lock.left() == 0 {
		return settleLockLost
	}
	if len(d.message.Body) > maxNotedBody {
		note = note.bare()
	}
	switch receiver.FaultOf(w.settleOnce(ctx, d.session, d.message, a, note, min(w.settleTime(d), receiver.OneTry))) {
	case brokerfault.None:
		return settleDone
	case brokerfault.LockLost:
		return settleLockLost
	}
	return settleUnknown
}

// maxNotedBody is the size of a body beside which a full dead-letter note may be too much for the broker.
const maxNotedBody = 128 << 10

// sessionBackoff returns the backoff after sessions that could not be accepted.
func sessionBackoff() backoff.Policy {
	return backoff.Policy{Base: 100 * time.Millisecond, Max: 30 * time.Second, Floor: 50 * time.Millisecond}
}

// closeBounded closes something of the client, or leaves it behind when that takes too long.
func closeBounded(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionCloseTime)
	defer cancel()
	return supervise.Do(ctx, nil, callGrace, f)
}

// deadlineContext states another deadline than the one at which it ends. The client tells the broker to wait until the deadline,
// and the broker's answer needs a moment more.
type deadlineContext struct {
	context.Context //nolint:containedctx // it is one
	deadline        time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.deadline, true }
