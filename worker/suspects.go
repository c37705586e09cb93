package worker

import "time"

const (
	// ownFailures is how many times a message must fail, each time with a commit of another message in between, before the
	// failure is its own and not the store's. It is high because a store that sheds load refuses some and takes others.
	ownFailures = 10
	// ownFailureTime is how long that must have gone on.
	ownFailureTime = 10 * time.Minute
	// failureLife is how long a failure is remembered, and maxRemembered how many messages are.
	failureLife   = time.Hour
	maxRemembered = 1000
)

// suspects remembers messages over which the store was called unavailable although it may not be: one message that the
// store always refuses, with an answer that says nothing of the message, must not stop all others. A suspect lets others try
// first, does not open the breaker while others are committed, does not count against the room for others, and at last is
// told that the fault is its own. The lock of the breaker guards it.
type suspects struct {
	seen map[int64]*failures // by sequence number
	// proofs counts commits that proved that the store works.
	proofs int
	// present counts suspects in process, and waiting those of them that wait for a permit.
	present, waiting int
}

// failures are those of one message.
type failures struct {
	first, last time.Time
	proofs      int // at its last failure
	own         int // failures with a proof since the one before
	suspect     bool
	inProcess   bool
}

// enter tells that a delivery of a message is in process, and leave that it no longer is.
func (s *suspects) enter(sequence int64) { s.place(sequence, true) }
func (s *suspects) leave(sequence int64) { s.place(sequence, false) }

func (s *suspects) place(sequence int64, inProcess bool) {
	p := s.seen[sequence]
	if p == nil || p.inProcess == inProcess {
		return
	}
	p.inProcess = inProcess
	if p.suspect {
		s.present += step(inProcess)
	}
}

func step(up bool) int {
	if up {
		return 1
	}
	return -1
}

// is reports whether a message is a suspect.
func (s *suspects) is(sequence int64) bool {
	p := s.seen[sequence]
	return p != nil && p.suspect
}

// failed records a failure of a message in process. Alone tells that it was the only one that tried, on the word of
// the store that it was ready. It reports whether others were committed since the message's failure before, so that this one
// says nothing of the store.
func (s *suspects) failed(sequence int64, alone bool, now time.Time) (others bool) {
	s.enter(sequence) // an earlier delivery of it, whose lock was lost, may have left meanwhile
	p := s.seen[sequence]
	if p == nil {
		if p = s.remember(sequence, now); p == nil {
			return false
		}
	} else if others = s.proofs > p.proofs; others {
		p.own++
	}
	p.last, p.proofs = now, s.proofs
	if !p.suspect && (alone || p.own > 0) {
		p.suspect = true
		s.present++
	}
	return others
}

// remember starts the failures of a message, unless there are too many already.
func (s *suspects) remember(sequence int64, now time.Time) *failures {
	if len(s.seen) >= maxRemembered {
		for n, p := range s.seen {
			if !p.inProcess && now.Sub(p.last) > failureLife {
				delete(s.seen, n)
			}
		}
		if len(s.seen) >= maxRemembered {
			return nil
		}
	}
	p := &failures{first: now, inProcess: true, proofs: s.proofs}
	s.seen[sequence] = p
	return p
}

// own reports whether the failures of a message are known to be its own.
func (s *suspects) own(sequence int64, now time.Time) bool {
	p := s.seen[sequence]
	return p != nil && p.own >= ownFailures && now.Sub(p.first) >= ownFailureTime
}

// cleared records that the store gave an answer about a message.
func (s *suspects) cleared(sequence int64) {
	if p := s.seen[sequence]; p != nil {
		if p.suspect && p.inProcess {
			s.present--
		}
		delete(s.seen, sequence)
	}
	s.proofs++
}
