package worker

import (
	"time"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// A Result says what one pass over a message came to, and why. It is a value: nothing has been settled.
type Result struct {
	// Cause is what the pass came to; zero while a pass is under way.
	Cause Cause
	// Admitted tells that Message and Commit are set.
	Admitted bool
	Message  Message
	Commit   Commit
	// Outcome is the store's answer, and Judgement what it means; zero when the store was not asked or gave no answer.
	Outcome   Outcome
	Judgement Judgement
	// Reason is the word for a dead letter; empty when the message is not to be dead-lettered for this result.
	Reason string
	// Detail says in a sentence or two what happened, to what, and what to do. It never holds the body.
	Detail string
	// ArrivedHash is the hash of the message by the parameters of the stored record, when there is one.
	ArrivedHash string
	// Differences are the paths at which a conflict differs, without values, bounded in number.
	Differences []fingerprint.Difference
	// HandlerRuns counts the runs of the handler: more than one when what it read had changed before the commit.
	HandlerRuns int
	// RetryAfter is the wait that the handler or the store asked for.
	RetryAfter time.Duration
	// Unsent tells that the message is committed, and that messages of it are left to the relay.
	Unsent bool
	// Err is the error behind Cause, if there is one.
	Err error
	// Calls and Charge are the requests sent to the store by all passes, and their request units.
	Calls  int
	Charge float64

	// refused is [UncertainError.Refused].
	refused bool
	// stuck is open while a call of the handler or the store, that did not return in time, still runs.
	stuck <-chan struct{}
	// sent is what was sent and not yet recorded as sent, and unsentErr why something was not.
	sent      *Unsent
	unsentErr error
	// handled tells that Commit holds the effects of the handler.
	handled bool
	// held tells that the message is claimed for this attempt, by Commit.Claim; doubt that its handler may have had an effect since.
	held, doubt bool
	// previous tells that an earlier attempt may have had an effect.
	previous bool
	// looked tells that the store was asked before the handler ran.
	looked bool
	// readState tells that the handler read documents, so that what it returned may depend on what other messages did.
	readState bool
	// readFailed tells that a read of the handler found the store unavailable, so that it runs again only when the store can be used.
	readFailed bool
}

// Committed reports whether the documents of the message are known to be committed.
func (r Result) Committed() bool { return r.Cause == CauseCommitted }

// ofHandler reports whether the handler failed in a way that what it calls may be to blame for.
func (r Result) ofHandler() bool {
	return r.Cause == CauseHandlerError || r.Cause == CauseHandlerTimeout
}

// ended reports whether the message has had its effects, so that nothing is lost when it is not settled.
func (r Result) ended() bool { return r.Committed() || r.Cause == CauseIgnored }

// Settled outcomes of a judgement: the reason word for each that stands against the message.
func reasonOf(j Judgement) string {
	switch j {
	case Conflict:
		return reason.ContentConflict
	case HashMissing:
		return reason.StoredHashMissing
	case OtherKey:
		return reason.KeyCollision
	case Blocked:
		return reason.DocumentConflict
	case UnknownRecord:
		return reason.StoredRecordUnknown
	case Incomplete:
		return reason.DocumentsMissing
	}
	return reason.ConflictUnread
}

// running reports whether a call that did not return in time still runs.
func (r Result) running() bool {
	return r.stuck != nil && !closed(r.stuck)
}
