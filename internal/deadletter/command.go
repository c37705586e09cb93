package deadletter

import (
	"time"
)

// MaxWhy bounds the reason for an action, in characters.
const MaxWhy = 500

// A Command says what is to be done with a message, and who wants it.
type Command struct {
	Action Action
	Choice Choice
	// Actor is who acts, and Why the reason that was given. Both are needed.
	Actor, Why string
	// Plan is the plan of which this is a part, and Step what the plan says of the message. Step is nil for a single action.
	Plan string
	Step *PlanStep
	// Expect is the verdict that the person saw who gave the command. The message is skipped when it has another one now. Empty
	// accepts any.
	Expect Kind

	// Origin says where the message came from when it did not lie in the dead letters, such as "import".
	Origin string

	// Archive keeps what is discarded. Nil keeps nothing.
	Archive Archive

	// LockLimit bounds the other messages that are kept locked meanwhile. Defaults to [DefaultLockLimit].
	LockLimit int
	// Patience is how long to wait for a message that somebody else holds, such as an earlier run that was killed, and, without
	// a plan, for the store. Defaults to the lock duration and five seconds more.
	Patience time.Duration
	// Paused is called with why nothing goes on now. It may be nil.
	Paused func(why string)

	// deadline ends the wait for the store; zero is never.
	deadline time.Time
	resubmission
}

// An Archive keeps messages that are discarded. It is safe for concurrent use.
type Archive interface {
	// Keep returns when the message is kept; again for the same message it does nothing. A message that cannot be kept is not
	// discarded.
	Keep(*DeadLetter) error
	// Drop takes out a message that was kept and then not removed.
	Drop(sequence int64)
}

// begin sets the defaults, and when the wait for the store ends: a person waits for a few messages, and a plan can wait for ever.
func (c Command) begin(s Settings) Command {
	if c.Patience <= 0 {
		c.Patience = s.lock() + 5*time.Second
	}
	if c.Paused == nil {
		c.Paused = func(string) {}
	}
	if c.Plan == "" && c.Origin == "" {
		c.deadline = time.Now().Add(c.Patience)
	}
	return c
}

// expected is the verdict for which the action was chosen, empty when any will do.
func (c Command) expected() Kind {
	if c.Step != nil {
		return c.Step.Verdict
	}
	return c.Expect
}

// of is the command for one step.
func (c Command) of(s PlanStep) Command {
	c.Action = s.Action
	if c.Plan != "" {
		c.Step = &s
	}
	return c
}

// A Result is what came of a command.
type Result string

// The results. Only the first five mean that the dead letter is removed.
const (
	// Applied: the documents were stored now.
	Applied Result = "applied"
	// Duplicate: the documents were stored before.
	Duplicate Result = "duplicate"
	// Outdated: it was processed and changed nothing, since an equal or newer version is stored.
	Outdated Result = "stale"
	// Resubmitted: the broker has taken a copy.
	Resubmitted Result = "resubmitted"
	// Discarded: the dead letter was removed.
	Discarded Result = "discarded"
	// Skipped: nothing was done, since something other is true of the message than was expected.
	Skipped Result = "skipped"
	// Refused: nothing was done, since it would have been of no use or done harm.
	Refused Result = "refused"
	// Rejected: the worker's own steps ended without committed documents.
	Rejected Result = "rejected"
	// NotSeen: a copy was sent and not seen since, so that the dead letter stays.
	NotSeen Result = "not-seen"
	// Absent: the dead letter is gone.
	Absent Result = "gone"
	// Locked: somebody else holds the dead letter.
	Locked Result = "locked"
	// StoreDown: the store cannot be used now.
	StoreDown Result = "store-unavailable"
	// Broken: a step failed, and the dead letter is where it was.
	Broken Result = "failed"
	// WouldAct: the action would be carried out. Only [Reviewer.DryRun] says so.
	WouldAct Result = "would-act"
	// Uncertain: the action had its effect, but nobody knows whether the dead letter is removed.
	Uncertain Result = "uncertain"
)

// Removed reports whether the dead letter is known to be removed by this action.
func (r Result) Removed() bool {
	return r == Applied || r == Duplicate || r == Outdated || r == Resubmitted || r == Discarded || r == Resolved
}

// An Outcome says what came of a command for one message.
type Outcome struct {
	Sequence  int64  `json:"sequence"`
	MessageID string `json:"messageId,omitempty"`
	Action    Action `json:"action"`
	Verdict   Kind   `json:"verdict,omitempty"`
	Result    Result `json:"result"`
	Detail    string `json:"detail,omitempty"`
	// RetryAfter is what the store asked for.
	RetryAfter time.Duration `json:"-"`
}

func (o Outcome) with(r Result, detail string) Outcome {
	o.Result, o.Detail = r, detail
	return o
}

// absent is the outcome of a message that is gone.
func (o Outcome) absent() Outcome {
	return o.with(Absent, "The dead letter is not there any more. The log may say who removed it.")
}

// held is the outcome of a message that is locked by somebody else.
func (o Outcome) held() Outcome {
	return o.with(Locked, "Somebody else holds the dead letter: another review, or a run that was killed. Try again when its lock has ended.")
}
