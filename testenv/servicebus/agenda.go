package servicebus

import "time"

// An agenda knows when the broker has to look at something again: where a lock or a life ends, or a message is scheduled.
type agenda struct {
	deadlines heap[timed]
	timer     *time.Timer
	armed     time.Time // when timer fires; zero when it does not
}

// Something timed falls due once at a time that it was put on the agenda for. It is off the agenda when it falls due.
type timed interface {
	slot() *alarm
	fallDueLocked(now time.Time)
}

// An alarm is a place on the agenda.
type alarm struct {
	deadline time.Time
	index    int
}

func (a *alarm) slot() *alarm { return a }

func newAgenda() agenda {
	return agenda{deadlines: heap[timed]{
		less: func(a, b timed) bool { return a.slot().deadline.Before(b.slot().deadline) },
		at:   func(t timed) *int { return &t.slot().index },
	}}
}

// watchLocked sets the time at which the broker has to look at something; zero is never.
func (n *namespace) watchLocked(t timed, at time.Time) {
	n.deadlines.remove(t)
	if at.IsZero() || n.closed {
		return
	}
	t.slot().deadline = at
	n.deadlines.push(t)
	n.armLocked()
}

// armLocked makes the timer fire no later than the first deadline. A timer that fires too early costs nothing.
func (n *namespace) armLocked() {
	if n.deadlines.len() == 0 || n.closed {
		return
	}
	at := n.deadlines.first().slot().deadline
	if !n.armed.IsZero() && !at.Before(n.armed) {
		return
	}
	n.armed = at
	d := max(0, time.Until(at))
	if n.timer == nil {
		n.timer = time.AfterFunc(d, n.tick)
		return
	}
	n.timer.Reset(d)
}

func (n *namespace) tick() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.armed = time.Time{}
	n.advanceLocked(time.Now())
	n.armLocked()
}

// advanceLocked does everything that time has made due. Every operation begins with it, so that nothing depends on when
// the timer's goroutine runs.
func (n *namespace) advanceLocked(now time.Time) {
	for n.deadlines.len() > 0 {
		t := n.deadlines.first()
		if t.slot().deadline.After(now) {
			return
		}
		n.deadlines.remove(t)
		t.fallDueLocked(now)
	}
}
