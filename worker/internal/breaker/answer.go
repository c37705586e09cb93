package breaker

import "time"

// An Answer is what a call told of the store.
type Answer int

// The answers.
const (
	// Silent: the call told nothing of the store.
	Silent Answer = iota
	// Answered: the store answered as only a working store does, and wrote nothing.
	Answered
	// Wrote: the store took a write.
	Wrote
	// Refused: the store refused the write of this message while it answers probes, so that either may be to blame.
	Refused
	// Unavailable: the store cannot be used now.
	Unavailable
	// Misconfigured: the store cannot be used until a person changes something.
	Misconfigured
)

// A Report is what one call, or a probe, came to.
type Report struct {
	Answer Answer
	// RetryAfter is the wait that the store asked for.
	RetryAfter time.Duration
	Err        error
}

func (r Report) failed() bool { return r.Answer == Unavailable || r.Answer == Misconfigured }

// A Blame says who is to blame for a write that failed.
type Blame int

// The sides.
const (
	Nobody Blame = iota
	Store
	Message
)

// A Change tells that the breaker opened, or closed after some time.
type Change struct {
	Opened, Closed bool
	// Misconfigured tells that a person must change something.
	Misconfigured bool
	Cause         error
	// Lasted is how long the incident took that is over; zero when there was none.
	Lasted time.Duration
}
