package servicebus

import "time"

// SessionSnapshot is what the broker knows of one session.
type SessionSnapshot struct {
	ID string
	// Messages is how many messages of the session are in the log, and Active how many of them wait for a receiver.
	Messages, Active int
	// Locked tells that a receiver has the session, until LockedUntil.
	Locked      bool
	LockedUntil time.Time
	State       []byte // nil: none
}

// Sessions returns the sessions at a path that have messages, a state or a holder, in the order of their ids.
func (b *Broker) Sessions(path string) ([]SessionSnapshot, error) {
	s, err := b.find(path)
	if err != nil || s.sessions == nil {
		return nil, err
	}
	s.entity.mu.Lock()
	defer s.entity.mu.Unlock()
	s.entity.advanceLocked(time.Now())
	var all []SessionSnapshot
	for _, id := range s.sessions.list(func(*session) bool { return true }) {
		n := s.sessions.byID[id]
		one := SessionSnapshot{ID: id, Messages: n.messages, Active: n.ready.len(), Locked: n.holder != nil, State: n.state}
		if one.Locked {
			one.LockedUntil = n.lockedUntil
		}
		all = append(all, one)
	}
	return all, nil
}
