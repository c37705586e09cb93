package receiver

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/brokerfault"
)

// prepare makes sure that the links stand before a receive call, by looking at the queue. The receive call could set them
// up as well, but it cannot tell that from waiting for a message, and a call that renews a lock would have to wait with it.
// It does so now and then on links that stand, too: while messages come and no lock needs renewal, nothing else would find
// a management link that is beyond repair, over which the client burns a processor core.
func (r *Receiver) prepare(ctx context.Context, l *Link) error {
	stood := l.proven.Load()
	if stood && !r.wary && !r.blind.over() && time.Since(l.contacted) < r.config.Silence {
		return nil
	}
	err := r.reportingSilence(func() error {
		err := r.contact(ctx, l)
		if err != nil && stood && FaultOf(err) != brokerfault.Canceled {
			err = r.contact(ctx, l)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil // the worker stops, and receives no more
	case err == nil:
		r.reached(l)
	case stood:
		r.replace(l, ReplacedNoAnswer, err)
	}
	return err
}

// silentAfter is how long setting up the links may take before the worker says that it is not ready. The call goes on: the
// client tries again by itself, and cut short it would have to begin anew.
const silentAfter = 8 * time.Second

// reportingSilence makes a call that waits for the broker, and says so when that takes long.
func (r *Receiver) reportingSilence(f func() error) error {
	told := make(chan struct{})
	timer := time.AfterFunc(silentAfter, func() {
		defer close(told)
		r.config.Notify(Notice{Kind: Unreached, Detail: fmt.Sprintf("no answer for %v: %s", silentAfter, brokerfault.Connection.Advice())})
	})
	err := f()
	if !timer.Stop() {
		<-told // or it would come after the good news
	}
	return err
}

// contact makes the cheapest call that sets the links up and shows that the queue answers: a look at it. Where that is
// not answered, the renewal of a lock that nobody has: the queue says that it does not know it.
func (r *Receiver) contact(ctx context.Context, l *Link) error {
	if r.blind.now() || r.intake.thin() {
		return r.touch(ctx, l)
	}
	if (r.wary || r.blind.over()) && !l.proven.Load() {
		// On links that stand the next look is short.
		if err := r.touch(ctx, l); err != nil {
			return err
		}
		l.proven.Store(true)
	}
	n := 1
	if r.wary {
		r.wary, n = false, peekPage
	}
	_, err := r.peek(ctx, l, 0, n)
	switch FaultOf(err) {
	case brokerfault.None, brokerfault.Panic: // a message that makes the client panic was an answer, too
		if r.blind.looks == 1 {
			r.isolateUntil = r.blind.isolated
		}
		r.blind = peekFailure{}
		return nil
	case brokerfault.Canceled:
		if ctx.Err() == nil && r.touch(ctx, l) == nil {
			r.unreadable()
			return nil
		}
	}
	return err
}

// touch asks for the renewal of a lock that nobody has.
func (r *Receiver) touch(ctx context.Context, l *Link) error {
	timeout := peekTimeout
	if l.proven.Load() {
		timeout = touchTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m := &azservicebus.ReceivedMessage{LockToken: [16]byte{15: 1}}
	err := l.Call(ctx, r.config.Stuck, func(ctx context.Context, c Client) error { return c.RenewMessageLock(ctx, m, nil) })
	if FaultOf(err) == brokerfault.LockLost {
		return nil
	}
	return err
}

// reached records that the broker answers for the queue.
func (r *Receiver) reached(l *Link) {
	l.proven.Store(true)
	l.contacted = time.Now()
	r.contacted = l.contacted
	r.config.Notify(Notice{Kind: Reached})
}
