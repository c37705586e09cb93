package worker

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// A containedObserver tells the program's own observer and outlives its panics: an observer must cost no message.
type containedObserver struct {
	observer Observer
	logs     *logObserver
	told     sync.Once
}

// Observe implements [Observer].
func (o *containedObserver) Observe(e Event) {
	defer func() {
		if v := recover(); v != nil {
			err := &supervise.PanicError{Value: v, Trace: debug.Stack()}
			o.told.Do(func() { o.tell(e, err) })
		}
	}()
	o.observer.Observe(e)
}

// tell logs a panic. It is not an event, since the observer would be told of it.
func (o *containedObserver) tell(e Event, err *supervise.PanicError) {
	o.logs.Observe(Event{
		Kind: EventPanicked, At: e.At, MessageID: e.MessageID, SequenceNumber: e.SequenceNumber, DeliveryCount: e.DeliveryCount,
		DocumentID: e.DocumentID, Err: err, Stack: supervise.Stack(err),
		Detail: fmt.Sprintf("The observer of this program panicked when it was told of the event %s. The message does not suffer from it, and "+
			"later panics of the observer are not logged. Fix the observer.", e.Kind),
	})
}
