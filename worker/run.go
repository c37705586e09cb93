package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker/internal/receiver"
)

const (
	// cutTime bounds how long a delivery may take to end once its work was cut: the handler's second, and the settlement.
	cutTime = callGrace + cutSettleTime + time.Second
	// detachTime bounds the wait for the end of the credit of a receiver.
	detachTime = time.Second
	// lastCloseTime bounds the closing of the connection when everything else is done.
	lastCloseTime = 3 * time.Second
)

// Run consumes the queue until ctx ends, and returns nil when it has stopped in good order. No fault of the broker or of
// the store ends it: it waits for them, is not ready meanwhile, and says so. It may be called once.
//
// When ctx ends it stops receiving, lets the messages in process finish for at most DrainTimeout, abandons the others, and
// closes the connection. [Worker.Abort] cuts that short.
func (w *Worker) Run(ctx context.Context) error {
	if w.started.Swap(true) {
		return errors.New("worker: a worker runs once. Make another with New")
	}
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	w.observe(Event{Kind: EventStarted})

	var loops sync.WaitGroup
	loops.Go(func() { w.breaker.Run(ctx, w.probe, w.slots.inUse) })
	loops.Go(func() { w.handlers.Run(ctx, handlerProbe, w.waitingOrIn) })
	if w.sessions == nil {
		loops.Go(func() {
			w.receiver.Run(ctx, func(m []*azservicebus.ReceivedMessage, l *receiver.Link) { w.start(work, m, l) })
		})
	} else {
		for range w.config.Concurrency {
			w.deliveries.Go(func() { w.runSessions(ctx, work, w.sessions) })
		}
	}
	loops.Go(func() { w.relay(ctx) })
	<-ctx.Done()

	begun := time.Now()
	w.conditions.set(partStopping, "the worker is stopping")
	// 1. The loops end first, and the credit of the receiver with them: no message may start any more. A receive call gets a
	// moment for what is on its way.
	w.stopLoops(&loops)
	// 2. Messages in process go on, with their locks renewed. Those that only wait are abandoned now; while there was
	// credit they would have come straight back, each time a delivery older.
	w.starting.Lock()
	close(w.stop)
	w.starting.Unlock()
	done := make(chan struct{})
	go func() { w.deliveries.Wait(); close(done) }()
	if !w.drain(done) {
		// 3. What does not fit is cut: its handlers are cancelled and it is abandoned. The connection is still open for it.
		close(w.cut)
		cut(ErrStopping)
		waitFor(done, cutTime)
	}
	left := w.slots.inFlight()
	// 4. The connection is closed last: closed before, nothing could be settled any more.
	w.receiver.Close(lastCloseTime)
	w.closeSender()
	w.pool.Close()
	w.observe(Event{Kind: EventStopped, Duration: time.Since(begun), InFlight: left})
	return nil
}

// Abort ends a stop that is under way at once: work in process is cut and abandoned. It is safe to call at any time, from
// any goroutine, and does nothing before Run was told to stop.
func (w *Worker) Abort() { w.abortOnce.Do(func() { close(w.abort) }) }

// stopLoops waits for the loops to end. One of them may be held by a call of the broker's client that does not return.
func (w *Worker) stopLoops(loops *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { loops.Wait(); close(done) }()
	if waitFor(done, receiver.StopGrace+2*time.Second) {
		w.receiver.Withdraw(detachTime)
	}
}

// drain waits for the messages in process, and reports whether all ended in time.
func (w *Worker) drain(done <-chan struct{}) bool {
	timer := time.NewTimer(w.config.DrainTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-w.abort:
	}
	return false
}

// waitFor waits until done is closed, at most for d, and reports whether it was.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
