package worker

import (
	"context"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/worker/internal/receiver"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// demand says to the receiver how many messages there is room for. It implements [receiver.Demand].
type demand struct{ w *Worker }

func (d demand) Room() int { return d.w.roomBeside(d.w.slots.inUse()) }

// roomBeside returns how many messages there is room for when so many slots are in use.
func (w *Worker) roomBeside(used int) int { return min(w.breaker.Room(used), w.handlers.room(used)) }

func (d demand) Freed() <-chan struct{}  { return d.w.slots.wake }
func (d demand) InProcess() int          { return d.w.slots.inFlight() }
func (d demand) Has(sequence int64) bool { return d.w.flight.has(sequence) }

func (d demand) Changed() <-chan struct{} { return d.w.room.changed() }

// signal tells everyone who waits that something has changed. The zero value can be used. It is safe for concurrent use.
type signal struct {
	mu sync.Mutex
	c  chan struct{}
}

// changed returns a channel that is closed by the next send.
func (s *signal) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// start begins the work on messages.
func (w *Worker) start(work context.Context, messages []*azservicebus.ReceivedMessage, l *receiver.Link) {
	w.starting.Lock()
	defer w.starting.Unlock()
	if w.stopping() { // the call was so late that nobody waited for it
		go w.abandonLate(messages)
		return
	}
	for _, m := range messages {
		w.slots.take()
		d := w.newDelivery(m, l)
		w.deliveries.Add(1)
		w.pool.Go(func() {
			defer w.deliveries.Done()
			w.process(work, d)
		})
	}
}

// abandonLate abandons what a call brought after nobody waited for it any more. There is no slot for it.
func (w *Worker) abandonLate(late []*azservicebus.ReceivedMessage) {
	for _, m := range late {
		w.settle(context.Background(), w.newDelivery(m, nil), abandon, deadLetterNote{})
	}
}

// noticed reports what happened to the receiver in events and in health.
func (w *Worker) noticed(n receiver.Notice) {
	switch n.Kind {
	case receiver.Arrived:
		w.last.Store(time.Now().UnixNano())
		w.logs.calm()
		w.conditions.clear(partBroker)
		w.conditions.clear(partNotReceiving)
	case receiver.Reached:
		w.conditions.clear(partBroker)
	case receiver.Unreached:
		w.conditions.set(partBroker, n.Detail)
	case receiver.Deaf:
		w.conditions.set(partNotReceiving, n.Detail)
	case receiver.NoneWaiting:
		w.conditions.clear(partNotReceiving)
	case receiver.Replaced:
		w.observe(Event{Kind: EventReceiverReplaced, Reason: n.Reason, Err: brokerfault.Readable(n.Err)})
	case receiver.Panicked:
		w.observe(Event{Kind: EventReceivePanicked, Reason: n.Reason, Detail: n.Detail, Err: brokerfault.Readable(n.Err), Stack: supervise.Stack(n.Err)})
	case receiver.Unreadable:
		w.observe(Event{Kind: EventReceiveUnreadable, Detail: n.Detail})
	case receiver.ThinLine:
		w.observe(Event{Kind: EventThinLine, Detail: n.Detail})
	}
}
