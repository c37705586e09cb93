package servicebus

import (
	"time"

	"github.com/orderworker/orderworker/testenv/history"
)

// publishLocked gives a copy of a message to each subscription of a topic: with a sequence number, a time to live, a lock and
// a delivery count of its own. The number that the topic gave it stays known as the one of its first enqueuing. A message
// that no subscription wants is gone, as in the service.
func (e *entity) publishLocked(m *message, now time.Time) {
	e.main.recordLocked(effect(history.Publish), m)
	for _, s := range e.subscriptions {
		s.arriveLocked(m.copy(), now)
		s.main.dispatchLocked(now)
	}
}
