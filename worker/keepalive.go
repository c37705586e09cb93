package worker

import (
	"context"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
)

// idleLook is how long a receive call waits before the queue is looked at beside it, and again each time. A connection whose
// other end is gone says nothing, and with no message in process nothing else would show it: with the two tries that follow
// it shows after 10 to 16 s. An idle worker makes six such calls a minute, each for one message at most.
const idleLook = 10 * time.Second

// watchIdle looks at the queue now and then while a receive call waits on l, until ctx ends. When neither a look nor the renewal of a lock that
// nobody has is answered, the worker is not ready and l is given up, which ends the receive call. Blind tells that the queue
// cannot be looked at.
func (w *Worker) watchIdle(ctx context.Context, l *link, blind bool) {
	for ; ctx.Err() == nil; backoff.Sleep(ctx, idleLook) {
		if !l.proven.Load() || w.answers(ctx, l, blind) || ctx.Err() != nil || !w.connection.uses(l) {
			continue
		}
		w.conditions.set(partBroker, "the queue cannot be looked at. "+brokerfault.Connection.Advice())
		w.replace(l, replacedNoAnswer, nil)
		return
	}
}

// answers asks twice whether the broker answers, each time within oneTry.
func (w *Worker) answers(ctx context.Context, l *link, blind bool) bool {
	if !blind {
		if _, err := w.peek(ctx, l, 0, 1); err == nil || faultOf(err) == brokerfault.Panic {
			return true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	return w.touch(ctx, l) == nil
}
