package receiver

import (
	"context"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

const (
	// batchWindow is how long the client collects further messages after the first. Longer fills batches better on a
	// trickle, and makes each first message wait.
	batchWindow = 2 * time.Millisecond
	// StopGrace is how long a receive call may still return messages that are on their way when the worker stops.
	// Cancelled at once, it would leave them with a receiver that is about to be closed, locked until the lock ends.
	StopGrace = 250 * time.Millisecond
)

// receive makes one receive call for n messages and hands over what it brings.
func (r *Receiver) receive(ctx context.Context, start func([]*azservicebus.ReceivedMessage, *Link), l *Link, n int) (reception, error) {
	if ctx.Err() != nil {
		return interrupted, nil // a call would issue credit all the same
	}
	r.last = l
	if l.credit == 0 {
		l.asked = time.Now()
	}
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.patience())
	defer cancel()
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { r.interrupt(ctx, rctx, l, n, done, cancel) })
	defer watcher.Wait()
	defer close(done)

	options := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: batchWindow}
	messages, err := supervise.Call(rctx, r.config.Pool, r.config.Stuck, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
		defer l.begin()()
		if l.isRetired() { // its closing does not wait for a call that begins now, and the client would make this one wait for that
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return l.client.ReceiveMessages(ctx, n, options)
	}, func(late []*azservicebus.ReceivedMessage, _ error) { r.config.Late(late) })
	l.credit = max(n, l.credit) - len(messages)
	r.weigh(messages, l)
	start(messages, l)
	switch {
	case len(messages) > 0:
		l.proven.Store(true)
		r.wary = cameAgain(messages) && time.Since(l.contacted) > r.config.LockDuration/4
		return receivedSome, nil
	case FaultOf(err) == brokerfault.Stuck, FaultOf(err) == brokerfault.Panic:
		return receiveFailed, err
	case rctx.Err() == context.DeadlineExceeded:
		return waitedInFull, nil
	case rctx.Err() != nil:
		return interrupted, nil
	case err != nil:
		return receiveFailed, err
	}
	// The links of the client are lost, or the receiver is beyond repair. The client would attach anew with the next call.
	// We do not let it: when two calls find links lost at once it makes them twice, and one set of them is never closed; a
	// message that came before can no longer be settled through its own object anyway; and a receiver that is beyond repair
	// burns a processor core between the calls. Another client costs one connection.
	r.replace(l, ReplacedLost, nil)
	return cameBackEarly, nil
}

// interrupt ends a receive call when the worker stops, when the link is given up, and when there is no longer room for
// what it asked for. It returns when done is closed.
func (r *Receiver) interrupt(ctx, rctx context.Context, l *Link, n int, done <-chan struct{}, cancel context.CancelFunc) {
	for {
		changed := r.config.Demand.Changed()
		if r.config.Demand.Room() < n && rctx.Err() == nil {
			cancel()
			return
		}
		select {
		case <-done:
			return
		case <-l.retired:
			cancel()
			return
		case <-changed:
		case <-ctx.Done():
			timer := time.NewTimer(StopGrace)
			defer timer.Stop()
			select {
			case <-done:
			case <-timer.C:
				cancel()
			}
			return
		}
	}
}
