package breaker

import "time"

const (
	// ownFailures is how many times a message must fail, each time with a commit of another message in between, before the
	// failure is its own and not the store's. It is high because a store that sheds load refuses some and takes others.
	ownFailures = 10
	// ownFailureTime is how long that must have gone on.
	ownFailureTime = 20 * time.Minute
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
//	it cannot be used, or an error of no   writes of others were taken between 10 of the   the message, at once: each delivery
//	  class (UnavailableError)             failures, over at least 20 minutes                more may get lost on its way
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

// place tells whether a delivery of a message is in process.
func (b *blame) place(message int64, inProcess bool) {
	p := b.seen[message]
	if p == nil || p.inProcess == inProcess {
		return
	}
	p.inProcess = inProcess
	if p.suspect {
		b.present += step(inProcess)
	}
}

func step(up bool) int {
	if up {
		return 1
	}
	return -1
}

// is reports whether a message is a suspect.
func (b *blame) is(message int64) bool {
	p := b.seen[message]
	return p != nil && p.suspect
}

// failed records a failure of a message in process. Alone tells that it was the only one that tried, on the word of
// the store that it was ready. It reports whether others were committed since the message's failure before, so that this one
// says nothing of the store.
func (b *blame) failed(message int64, alone bool, now time.Time) (others bool) {
	b.place(message, true) // an earlier delivery of it, whose lock was lost, may have left meanwhile
	p := b.seen[message]
	if p == nil {
		if p = b.remember(message, now); p == nil {
			return false
		}
	} else if others = b.proofs > p.proofs; others {
		p.own++
	}
	p.last, p.proofs = now, b.proofs
	if !p.suspect && (alone || p.own > 0) {
		p.suspect = true
		b.present++
	}
	return others
}

// remember starts the failures of a message, unless there are too many already.
func (b *blame) remember(message int64, now time.Time) *failures {
	if len(b.seen) >= maxRemembered {
		for n, p := range b.seen {
			if !p.inProcess && now.Sub(p.last) > failureLife {
				delete(b.seen, n)
			}
		}
		if len(b.seen) >= maxRemembered {
			return nil
		}
	}
	p := &failures{first: now, inProcess: true, firstProofs: b.proofs, proofs: b.proofs}
	b.seen[message] = p
	return p
}

// own reports whether the failures of a message are known to be its own.
func (b *blame) own(message int64, now time.Time) bool {
	p := b.seen[message]
	return p != nil && p.own >= ownFailures && now.Sub(p.first) >= ownFailureTime
}

// cleared records that the store gave an answer about a message, and whether it took its write.
func (b *blame) cleared(message int64, wrote bool) {
	if p := b.seen[message]; p != nil {
		if p.suspect && p.inProcess {
			b.present--
		}
		delete(b.seen, message)
	}
	if wrote {
		b.proofs++
	}
}

// ownRefusal reports whether the refusal of a message is known to be its own. The first one never is.
func (b *blame) ownRefusal(message int64) bool {
	p := b.seen[message]
	return p != nil && b.proofs > p.firstProofs
}
