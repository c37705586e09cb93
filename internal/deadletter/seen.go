package deadletter

import (
	"fmt"
	"sync"
	"time"
)

// seen has when a message of an id came into the queue last, as far as is known. Duplicate detection drops a copy under an id
// that it remembers, whichever message it remembers it from, and whatever the two say. It is safe for concurrent use.
type seen struct {
	window time.Duration

	mu   sync.Mutex
	last map[string]sighting // guarded by mu
}

// A sighting is when, and by which message. Messages have numbers above zero.
type sighting struct {
	at time.Time
	by int64
}

// someone is who is seen when it does not matter who it was.
const someone = -1

func newSeen(d DuplicateDetection) *seen {
	return &seen{window: d.window(), last: map[string]sighting{}}
}

// note adds a sighting, unless it is forgotten already.
func (s *seen) note(id string, at time.Time, by int64, now time.Time) {
	if id == "" || at.IsZero() || !at.Add(s.window).After(now) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.last[id].at) {
		s.last[id] = sighting{at, by}
	}
}

// claim notes that a message is about to be sent under its id. It refuses when a copy would be dropped because of another
// message. Nil refuses nothing.
func (s *seen) claim(id string, by int64, now time.Time) (refused string) {
	if s == nil || id == "" || s.window <= 0 {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.last[id]; ok && other.by != by && other.at.Add(s.window).After(now) {
		return fmt.Sprintf("Another message with this MessageId came into the queue or was sent to it at %s. Duplicate detection may drop the copy until %s, while the send looks like a success. Reprocess it in place.",
			stamp(other.at), stamp(other.at.Add(s.window)))
	}
	s.last[id] = sighting{now, by}
	return ""
}
