package servicebus

import (
	"cmp"
	"sync"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

func isNone(a fault.Action) bool { return a.Kind == fault.None && a.Delay == 0 && a.Do == nil }

// endure waits and calls what an action asks for. It reports false when the broker was closed meanwhile.
func (b *Broker) endure(a fault.Action) bool {
	if !b.sleep(a.Delay) {
		return false
	}
	if a.Do != nil {
		a.Do()
	}
	return true
}

// later calls f in a goroutine when what the action asks for has been endured, unless the broker is closed before.
func (b *Broker) later(a fault.Action, f func()) {
	b.spawn(func() {
		if b.endure(a) {
			f()
		}
	})
}

// applyFault carries out the kind of an action on a link, which is not [fault.None]. refuse answers with an error; without it
// a refusal detaches the link.
func (b *Broker) applyFault(l *amqp.Link, a fault.Action, refuse func(fault.Action)) {
	switch a.Kind {
	case fault.Drop:
		l.Conn().Drop()
	case fault.None, fault.Silence: // None: the link went away while the plan waited
	case fault.Refuse:
		if refuse != nil {
			refuse(a)
			return
		}
		l.Detach(planned(a, amqp.InternalError))
	case fault.Detach:
		l.Detach(planned(a, amqp.DetachForced))
	case fault.EndSession:
		l.Session().End(planned(a, amqp.InternalError))
	case fault.CloseConnection:
		l.Conn().Close(planned(a, amqp.ConnectionForced))
	case fault.Garble:
		l.Conn().SendRaw([]byte{0, 0, 0, 12, 2, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef})
	default:
		b.refuse("fault of kind Lag at a Service Bus operation: queues have no replicas that lag")
	}
}

// planned returns the error of an action.
func planned(a fault.Action, condition string) *amqp.Error {
	return amqp.Errorf(cmp.Or(a.Condition, condition), "%s", cmp.Or(a.Body, "planned fault"))
}

// A step is one operation of a client under the fault plan.
type step struct {
	point fault.Point
	link  *amqp.Link
	// line keeps the order of the steps of a link, when it is not nil.
	line *line
	// do has the effect; it is called at most once. answer tells the client, and refuse tells it an error of the plan.
	do     func()
	answer func()
	refuse func(fault.Action)
}

// perform carries out a step. It does not block: what has to wait goes on in a goroutine of its own.
func (b *Broker) perform(s step) {
	s.point.Phase = fault.Before
	a := b.opts.Faults.At(s.point)
	wait := s.line.enter(!isNone(a))
	if isNone(a) && wait == nil {
		b.finish(s)
		return
	}
	b.spawn(func() {
		alive := b.endure(a)
		if wait != nil {
			defer close(wait.mine)
			select {
			case <-wait.before:
			case <-b.done:
				return
			}
		}
		switch {
		case !alive:
		case a.Kind == fault.None:
			b.finish(s)
		default:
			b.applyFault(s.link, a, s.refuse)
		}
	})
}

// finish has the effect of a step and answers it.
func (b *Broker) finish(s step) {
	s.do()
	s.point.Phase = fault.After
	a := b.opts.Faults.At(s.point)
	switch {
	case isNone(a):
		s.answer()
	case a.Kind == fault.None:
		b.later(a, s.answer)
	default:
		b.later(a, func() { b.applyFault(s.link, a, s.refuse) })
	}
}

// A line lets the steps of one link have their effects in order although some of them wait. A nil line keeps no order.
type line struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last step in line has had its effect; nil when there was none
}

// A place is a step's turn: it may go when before is closed, and closes mine when it has gone.
type place struct {
	before <-chan struct{}
	mine   chan struct{}
}

// enter queues a step that will wait, or that comes behind one that waits. It returns nil when the step may go at once.
func (l *line) enter(waits bool) *place {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.last
	if before != nil {
		select {
		case <-before:
			before = nil
		default:
		}
	}
	if before == nil && !waits {
		l.last = nil
		return nil
	}
	p := &place{before: before, mine: make(chan struct{})}
	if before == nil {
		free := make(chan struct{})
		close(free)
		p.before = free
	}
	l.last = p.mine
	return p
}
