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

// blame is the one rule for whether message or store is to blame when a write fails, by the evidence of this process. The
// store classifies single answers; blame weighs what happened since. The breaker acts on it.
//
//	the store answers                      and since this message's first failure          to blame
//	documents are invalid, or can never    anything                                        the message, at once
//	  be stored (UnstorableError)
//	a cause that may pass, known to be     anything                                        the message, at its last delivery
//	  the message's (UncertainError)
//	a refusal while probes are answered    the store took a write of another message       the message, at its last delivery
//	  (UncertainError.Refused)             it took none                                    the store
//	it cannot be used, or an error of no   writes of others were taken between 10 of the   the message, at its last delivery
//	  class (UnavailableError)             failures, over at least 10 minutes
//	                                       anything else                                   the store
//
// Only a write that created documents counts as taken: a duplicate and a conflict show that the store answers, and a store that
// refuses every write answers them as well. While the store is to blame, no message is settled for it. A message that failed
// alone, or while others were stored, is a suspect: it lets others try first, does not open the breaker while others are
// stored, and does not count against the room for others. The lock of the breaker guards it.
type blame struct {
	seen map[int64]*failures // by sequence number
	// proofs counts writes that the store took.
	proofs int
	// present counts suspects in process, and waiting those of them that wait for a permit.
	present, waiting int
}

// failures are those of one message.
type failures struct {
	first, last time.Time
	firstProofs int // writes taken at its first failure
	proofs      int // and at its last
	own         int // failures with a proof since the one before
	suspect     bool
	inProcess   bool
}

// enter tells that a delivery of a message is in process, and leave that it no longer is.
func (s *blame) enter(sequence int64) { s.place(sequence, true) }
func (s *blame) leave(sequence int64) { s.place(sequence, false) }

func (s *blame) place(sequence int64, inProcess bool) {
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
func (s *blame) is(sequence int64) bool {
	p := s.seen[sequence]
	return p != nil && p.suspect
}

// failed records a failure of a message in process. Alone tells that it was the only one that tried, on the word of
// the store that it was ready. It reports whether others were committed since the message's failure before, so that this one
// says nothing of the store.
func (s *blame) failed(sequence int64, alone bool, now time.Time) (others bool) {
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
func (s *blame) remember(sequence int64, now time.Time) *failures {
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
	p := &failures{first: now, inProcess: true, firstProofs: s.proofs, proofs: s.proofs}
	s.seen[sequence] = p
	return p
}

// own reports whether the failures of a message are known to be its own.
func (s *blame) own(sequence int64, now time.Time) bool {
	p := s.seen[sequence]
	return p != nil && p.own >= ownFailures && now.Sub(p.first) >= ownFailureTime
}

// cleared records that the store gave an answer about a message.
func (s *blame) cleared(sequence int64) {
	if p := s.seen[sequence]; p != nil {
		if p.suspect && p.inProcess {
			s.present--
		}
		delete(s.seen, sequence)
	}
}

// taken records that the store took a write.
func (s *blame) taken() { s.proofs++ }

// refusal reports whether the refusal of a message is known to be its own. The first one never is.
func (s *blame) refusal(sequence int64) bool {
	p := s.seen[sequence]
	return p != nil && s.proofs > p.firstProofs
}
