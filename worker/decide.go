package worker

// A Cause says what one pass over a message came to.
type Cause int

// The causes. Two of them allow a message to be completed: [CauseCommitted] and [CauseIgnored].
const (
	// CauseCommitted: the documents are known to be committed, by this pass or before. See [Judgement].
	CauseCommitted Cause = iota + 1
	// CauseRefused: the message cannot be admitted.
	CauseRefused
	// CauseRejected: the handler rejected the message.
	CauseRejected
	// CauseConflict: what stands in the store is judged not to be this message.
	CauseConflict
	// CauseUnstorable: the store can never take the message.
	CauseUnstorable
	// CauseInvalidEffects: the handler returned documents that no store, or this one, can ever take.
	CauseInvalidEffects
	// CauseHandlerError: the handler failed.
	CauseHandlerError
	// CauseHandlerPanic: the handler panicked.
	CauseHandlerPanic
	// CauseHandlerTimeout: the handler was too slow.
	CauseHandlerTimeout
	// CauseRetryLater: the handler asks for a later retry and blames something else than the message.
	CauseRetryLater
	// CauseUncertain: the message could not be committed or judged for a cause of its own that may pass.
	CauseUncertain
	// CauseUnavailable: the store cannot be used now.
	CauseUnavailable
	// CauseMisconfigured: the store cannot be used until a person changes something.
	CauseMisconfigured
	// CauseLockTooShort: the lock is too short for a commit and cannot be renewed.
	CauseLockTooShort
	// CauseStopped: the worker must stop before the message is committed.
	CauseStopped
	// CauseLockLost: the lock was lost before the message was committed.
	CauseLockLost
	// CauseIgnored: the handler said that the message is none of its business, and nothing is stored.
	CauseIgnored
	// CauseStateMoved: what the handler read has changed meanwhile, so that it must run again.
	CauseStateMoved
	// CauseInProgress: another attempt has claimed the message.
	CauseInProgress
	// CauseClaimExpired: an earlier attempt may have got half way, and a person is to find out.
	CauseClaimExpired
	// CauseHandlerOutage: what the handler calls seems to be away, since it fails on every message.
	CauseHandlerOutage
)

func (c Cause) String() string {
	names := [...]string{"none", "committed", "refused", "rejected", "conflict", "unstorable", "invalid_effects", "handler_error", "handler_panic",
		"handler_timeout", "retry_later", "uncertain", "store_unavailable", "store_misconfigured", "lock_too_short", "stopped", "lock_lost", "ignored", "state_moved",
		"in_progress", "claim_expired", "handler_outage"}
	if c < 0 || int(c) >= len(names) {
		return "unknown"
	}
	return names[c]
}

// An action is what is done with a message next.
type action int

const (
	// leave settles nothing: the message comes back when its lock ends.
	leave action = iota
	complete
	deadLetter
	// retry tries again after a wait, in place.
	retry
	// hold waits in place until the store can be used, or what the handler calls.
	hold
	abandon
	// delay waits before the delivery is given up, without a slot.
	delay
)

func (a action) String() string {
	return [...]string{"leave", "complete", "dead-letter", "retry", "hold", "abandon", "delay"}[a]
}

// facts are all that the decision on a message depends on.
type facts struct {
	cause Cause
	// lockLost tells that no settlement can reach the message any more.
	lockLost bool
	// stopping tells that nothing may wait any more.
	stopping bool
	// triesLeft tells that the message may be tried again in place for a fault of its own.
	triesLeft bool
	// holdLeft tells that the message may be held longer for a fault that is not its own.
	holdLeft bool
	// delayed tells that the message has waited for its next delivery already, or cannot.
	delayed bool
	// deliveries counts the deliveries of the message with this one, 0 when the broker did not say.
	deliveries    uint32
	maxDeliveries int
}

// last reports whether the broker dead-letters the message when this delivery ends without a settlement that removes it.
// An unknown count is never taken for the last.
func (f facts) last() bool { return f.deliveries > 0 && int64(f.deliveries) >= int64(f.maxDeliveries) }

// spare reports whether the message is known to have two deliveries more, so that it survives being abandoned and one accident
// besides, such as a receiver that is given up while the message is on its way to it.
func (f facts) spare() bool {
	return f.deliveries > 0 && int64(f.deliveries)+1 < int64(f.maxDeliveries)
}

// decide says what is done with a message. It is total: every combination of facts has an action, and an unknown cause
// leaves the message alone.
func decide(f facts) action {
	if f.lockLost || f.cause == CauseLockLost {
		return leave
	}
	switch f.cause {
	case CauseCommitted, CauseIgnored:
		return complete
	case CauseRefused, CauseRejected, CauseConflict, CauseUnstorable, CauseInvalidEffects, CauseClaimExpired:
		return deadLetter
	case CauseUncertain:
		if f.triesLeft && !f.stopping {
			return retry
		}
		return giveUp(f)
	case CauseHandlerError, CauseHandlerPanic:
		if f.triesLeft && !f.stopping {
			return retry
		}
		return giveUpLater(f)
	case CauseHandlerTimeout:
		// A handler that used up its time once would double it here, so its next try is another delivery's.
		return giveUpLater(f)
	case CauseRetryLater:
		if f.stopping {
			return abandonOrLeave(f)
		}
		if f.holdLeft {
			return retry
		}
		return giveUp(f)
	case CauseStateMoved:
		// Somebody else was faster, which is nobody's fault. The handler runs again as long as the message may be held.
		if f.stopping {
			return abandonOrLeave(f)
		}
		if f.holdLeft {
			return retry
		}
		return giveUp(f)
	case CauseInProgress: // which is nobody's fault
		if f.holdLeft && !f.stopping {
			return retry
		}
		return abandonOrLeave(f)
	case CauseUnavailable, CauseMisconfigured, CauseHandlerOutage:
		// The last two deliveries are held as long as the process lives: if the last one were abandoned or lost, the broker
		// would dead-letter the message for the fault of the store, or of what the handler calls.
		if !f.stopping && (f.holdLeft || !f.spare()) {
			return hold
		}
		return abandonOrLeave(f)
	case CauseLockTooShort, CauseStopped:
		return abandonOrLeave(f)
	}
	return leave
}

// giveUp ends a delivery that failed by a fault of the message's own: the last one is dead-lettered with the real cause.
func giveUp(f facts) action {
	if f.last() {
		return deadLetter
	}
	return abandon
}

// giveUpLater is giveUp after a wait that spreads the deliveries over time: what fails now may work in an hour.
func giveUpLater(f facts) action {
	if !f.last() && !f.delayed && !f.stopping {
		return delay
	}
	return giveUp(f)
}

// abandonOrLeave ends a delivery that failed by no fault of the message. Nothing that we could settle saves the last delivery
// from the broker's delivery limit, so it is left alone.
func abandonOrLeave(f facts) action {
	if f.last() {
		return leave
	}
	return abandon
}
