package servicebus

import (
	"time"

	"github.com/orderworker/orderworker/testenv/history"
)

// publishLocked gives each subscription of a topic the copies of a message that its rules ask for: with a sequence number, a time to live, a lock and
// a delivery count of its own. The number that the topic gave it stays known as the one of its first enqueuing. A message
// that no rule selects is gone, as in the service.
func (e *entity) publishLocked(m *message, now time.Time) {
	e.main.recordLocked(effect(history.Publish), m)
	for _, s := range e.subscriptions {
		for _, c := range s.rules.copies(m) {
			s.arriveLocked(c, now)
		}
		s.main.dispatchLocked(now)
	}
}
