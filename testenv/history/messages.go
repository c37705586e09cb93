package history

import (
	"fmt"
	"slices"
	"time"
)

// describe names a message for a person.
func (m *message) describe() string {
	return fmt.Sprintf("message %q (sequence number %d of %s)", m.key, m.sequence, m.entity)
}

func (m *message) endings() []Event {
	var found []Event
	for _, e := range m.events {
		if ends(e) {
			found = append(found, e)
		}
	}
	return found
}

func everyMessageEnds(v *view, expect Expect) (checked int, broken []Violation) {
	for _, m := range v.messages {
		if !m.sent || !expect.Drained {
			continue
		}
		checked++
		endings := m.endings()
		switch {
		case len(endings) == 0:
			broken = append(broken, Violation{What: m.describe() + " is still on the queue", Events: m.events[len(m.events)-1:]})
		case endings[0].Op == Take || endings[0].Op == Expired:
			broken = append(broken, Violation{What: m.describe() + " left the queue in another way", Events: endings})
		}
	}
	return checked, broken
}

func noMessageEndsTwice(v *view, _ Expect) (checked int, broken []Violation) {
	for _, m := range v.messages {
		endings := m.endings()
		if len(endings) > 0 {
			checked++
		}
		if len(endings) > 1 {
			broken = append(broken, Violation{What: m.describe() + " ended more than once", Events: endings})
		}
	}
	return checked, broken
}

func everyDeadLetterHasAReason(v *view, expect Expect) (checked int, broken []Violation) {
	for _, m := range v.messages {
		for _, e := range m.events {
			if e.Op != DeadLetter || !e.Effect {
				continue
			}
			checked++
			switch {
			case e.Note == "":
				broken = append(broken, Violation{What: m.describe() + " was dead-lettered without a reason", Events: []Event{e}})
			case expect.Reasons != nil && !slices.Contains(expect.Reasons, e.Note):
				broken = append(broken, Violation{What: fmt.Sprintf("%s was dead-lettered for %s", m.describe(), e.Note), Events: []Event{e}})
			}
		}
	}
	return checked, broken
}

// clockSlack is the time that may lie between the broker's decision and the record of it.
const clockSlack = time.Second

// lockState follows the lock of one message.
type lockState struct {
	token string
	since Event
}

func nothingSettledAfterItsLock(v *view, expect Expect) (checked int, broken []Violation) {
	for _, m := range v.messages {
		var lock lockState
		for _, e := range m.events {
			settled, wrong := lock.next(e, expect.LockDuration)
			if settled {
				checked++
			}
			if wrong != "" {
				broken = append(broken, Violation{What: m.describe() + wrong, Events: []Event{e}})
			}
		}
	}
	return checked, broken
}

// next takes in one event. It reports whether the event uses a lock, and what is wrong with that use.
func (l *lockState) next(e Event, duration time.Duration) (uses bool, wrong string) {
	if !e.Effect && e.Op != LockExpired {
		return false, ""
	}
	switch e.Op {
	case Lock, ReceiveDeferred:
		l.token, l.since = e.Lock, e
		return false, ""
	case LockExpired:
		l.token = ""
		return false, ""
	case Complete, Abandon, DeadLetter, Defer, Release, Renew:
	default:
		return false, ""
	}
	if e.Op == DeadLetter && e.Lock == "" {
		l.token = "" // by the broker itself
		return false, ""
	}
	wrong = l.judge(e, duration)
	if e.Op == Renew {
		l.since = e
	} else {
		l.token = ""
	}
	return true, wrong
}

func (l *lockState) judge(e Event, duration time.Duration) string {
	switch {
	case l.token == "":
		return " was settled or renewed without a lock"
	case e.Lock != l.token:
		return " was settled or renewed with the lock of another delivery"
	case duration > 0 && e.At.Sub(l.since.At) > duration+clockSlack:
		return fmt.Sprintf(" was settled or renewed %v after its lock began", e.At.Sub(l.since.At))
	}
	return ""
}
