package worker

import "sync"

// stranded counts the slots that stay taken by calls which ignored their context and were left behind. It is safe for
// concurrent use.
type stranded struct {
	capacity int
	// told is called, with the lock held, when the last slot is taken that way, and when one of them is free again.
	told func(all bool)

	mu    sync.Mutex
	slots int
}

// more records one, and fewer its end.
func (s *stranded) more()  { s.count(1) }
func (s *stranded) fewer() { s.count(-1) }

func (s *stranded) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.slots >= s.capacity
	s.slots += n
	if all := s.slots >= s.capacity; all != was {
		s.told(all)
	}
}

// allStranded reports it in health: nothing can be received while no slot is left, and no message is in process either that
// would show it.
func (w *Worker) allStranded(all bool) {
	if !all {
		w.conditions.clear(partHung)
		return
	}
	w.conditions.set(partHung, "every slot is taken by a call of the handler or of the store that ignored the end of its context and does not return. "+
		"Nothing is received. Restart the worker, and fix the handler: it must return when its context ends")
}
