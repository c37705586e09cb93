package worker

import "sync"

// slots counts the messages that are handled and committed, and wakes the receive loop when one is through. It is safe
// for concurrent use.
type slots struct {
	// wake holds one token after a change, for a goroutine that receives.
	wake chan struct{}

	mu   sync.Mutex
	used int // slots in use
	all  int // messages in process, those that are being settled included
}

func newSlots() *slots {
	return &slots{wake: make(chan struct{}, 1)}
}

// take uses a slot for a new message. There is one: messages are asked for only when there are slots for them.
func (s *slots) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
	s.all++
}

// takeIf uses a slot if room says that there is one when so many are in use, and reports whether it did. Of several that wait
// the next is woken.
func (s *slots) takeIf(room func(used int) int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := room(s.used)
	if n <= 0 {
		return false
	}
	s.used++
	s.all++
	if n > 1 {
		s.nudge()
	}
	return true
}

// free makes a slot free for another message.
func (s *slots) free() {
	s.mu.Lock()
	s.used--
	s.mu.Unlock()
	s.nudge()
}

// done ends a message.
func (s *slots) done() {
	s.mu.Lock()
	s.all--
	s.mu.Unlock()
	s.nudge()
}

func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *slots) inFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

func (s *slots) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
