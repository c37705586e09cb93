package worker

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderworker/orderworker/worker/internal/breaker"
	"github.com/orderworker/orderworker/worker/internal/receiver"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// A Worker consumes one queue. Make one with [New] and run it once.
type Worker struct {
	config     Config
	pipeline   *Pipeline
	receiver   *receiver.Receiver
	sessions   SessionBroker // nil without sessions
	breaker    *breaker.Breaker
	handlers   *handlerHealth
	parking    *parking
	room       signal
	conditions *conditions
	telemetry  *telemetry
	logs       *logObserver
	observers  observers

	slots     *slots
	settling  chan struct{} // one token for each message that is being settled
	stranded  *stranded
	flight    *flight
	conflicts *conflicts
	unsent    unsentAge
	last      atomic.Int64 // when a message was last received, in nanoseconds since 1970

	started   atomic.Bool
	stop      chan struct{} // closed when the worker begins to stop
	cut       chan struct{} // closed when it must stop now
	abort     chan struct{} // closed by Abort
	abortOnce sync.Once
	// pool processes the messages, and makes the calls that must be bounded from outside.
	pool *supervise.Pool
	// deliveries waits for the messages in process and for the renewal of their locks. starting is held to begin one, and to
	// close stop: from then on none begins.
	deliveries sync.WaitGroup
	starting   sync.Mutex
}

// New returns a worker that takes messages from b, has h make documents of them, and commits those to s. It reports every
// fault of c at once, and does no I/O.
func New(c Config, b Broker, s Store, h Handler) (*Worker, error) {
	p, err := NewPipeline(c, s, h)
	if err != nil {
		return nil, err
	}
	if absent(b) {
		return nil, errors.New("worker: a broker is needed")
	}
	if b.Queue() == "" {
		return nil, errors.New("worker: the broker needs the name of a queue")
	}
	sessions, ok := b.(SessionBroker)
	if c.Sessions && !ok {
		return nil, errors.New("worker: the broker accepts no sessions")
	}
	if !c.Sessions {
		sessions = nil
	}
	c = c.withDefaults()
	w := &Worker{
		config:    c,
		sessions:  sessions,
		pipeline:  p,
		logs:      newLogObserver(c.Logger, b.Queue()),
		slots:     newSlots(),
		settling:  make(chan struct{}, c.Concurrency),
		flight:    newFlight(),
		conflicts: newConflicts(),
		stop:      make(chan struct{}),
		cut:       make(chan struct{}),
		abort:     make(chan struct{}),
		pool:      &supervise.Pool{},
	}
	w.pipeline.pool = w.pool
	w.pipeline.posting.changed = w.destinationChanged
	w.breaker = breaker.New(breaker.Config{Failures: c.Breaker.Failures, Backoff: c.Breaker.backoff(), Capacity: c.Concurrency, Notify: w.breakerChanged, Wake: w.room.send})
	w.handlers, w.parking = newHandlerHealth(c, w.handlerChanged, w.room.send), &parking{most: parkedPerSlot * c.Concurrency}
	w.receiver = receiver.New(receiver.Config{
		Open: func(ctx context.Context) (receiver.Client, error) { return b.Open(ctx) }, LockDuration: c.LockDuration, Concurrency: c.Concurrency,
		Silence: c.Watchdog.Silence, Stuck: c.Watchdog.Stuck, NotReceiving: c.Watchdog.NotReceiving, HoldFor: c.Retry.holdFor,
		Demand: demand{w}, Late: w.abandonLate, Notify: w.noticed, Pool: w.pool,
	})
	w.conditions = newConditions(w.observe)
	w.stranded = &stranded{capacity: c.Concurrency, told: w.allStranded}
	if w.telemetry, err = newTelemetry(c, b.Queue(), w.breaker, &w.unsent); err != nil {
		return nil, err
	}
	w.observers = observers{w.logs}
	if c.MeterProvider != nil {
		w.observers = append(w.observers, w.telemetry)
	}
	if !absent(c.Observer) {
		w.observers = append(w.observers, &containedObserver{observer: c.Observer, logs: w.logs})
	}
	return w, nil
}

// absent reports whether there is nothing behind an interface: no value, or a nil function or pointer that has a type, as
// what is left of an Open whose error was overlooked. Each message would panic on it, and be dead-lettered for that.
func absent(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Func, reflect.Pointer:
		return r.IsNil()
	default:
		return false
	}
}

func (w *Worker) observe(e Event) { w.observers.Observe(e) }

// lastMessage returns when a message was last received.
func (w *Worker) lastMessage() time.Time {
	if n := w.last.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// stopping reports whether the worker has begun to stop.
func (w *Worker) stopping() bool { return closed(w.stop) }

// closed reports whether a channel that nobody sends on is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
