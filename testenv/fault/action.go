package fault

import "time"

// Kind names what an emulator does at a point besides waiting.
type Kind int

// The kinds. Each emulator documents which it can carry out and refuses the others loudly.
const (
	// None carries on normally.
	None Kind = iota
	// Drop cuts the connection without a reply.
	Drop
	// Silence never answers, and keeps the connection alive.
	Silence
	// Refuse answers with Status and Substatus, or with the AMQP error Condition.
	Refuse
	// Detach ends the AMQP link with Condition.
	Detach
	// EndSession ends the AMQP session with Condition.
	EndSession
	// CloseConnection closes the AMQP connection with Condition.
	CloseConnection
	// Lag serves a read from a replica that has not seen the last write.
	Lag
	// Garble answers with a malformed reply.
	Garble
)

// An Action says what an emulator does at a point. The zero Action is no fault.
type Action struct {
	Kind Kind
	// Delay is waited before anything else, by the clock of the emulator.
	Delay time.Duration
	// Status is an HTTP status, or the status-code of an AMQP management reply.
	Status int
	// Substatus is the Cosmos DB substatus.
	Substatus int
	// RetryAfter is sent as x-ms-retry-after-ms when RetryHint is true.
	RetryAfter time.Duration
	RetryHint  bool
	// Condition is an AMQP error condition such as "amqp:link:detach-forced".
	Condition string
	// Body replaces the body of a refused HTTP request, and the description of an AMQP error or reply, when not empty.
	Body string
	// Do is called before the action is carried out, for example to kill a process.
	Do func()
}

// Wait returns an action that only delays.
func Wait(d time.Duration) Action { return Action{Delay: d} }

// DropReply returns an action that cuts the connection without a reply.
func DropReply() Action { return Action{Kind: Drop} }

// Reply returns an action that answers with an HTTP status and a Cosmos DB substatus.
func Reply(status, substatus int) Action {
	return Action{Kind: Refuse, Status: status, Substatus: substatus}
}

// Throttle returns a 429 with a retry hint.
func Throttle(after time.Duration) Action {
	return Action{Kind: Refuse, Status: 429, Substatus: 3200, RetryAfter: after, RetryHint: true}
}

// Reject returns an action that refuses with an AMQP error condition.
func Reject(condition string) Action { return Action{Kind: Refuse, Condition: condition} }

// DetachLink returns an action that detaches the link with an AMQP error condition.
func DetachLink(condition string) Action { return Action{Kind: Detach, Condition: condition} }

// Call returns an action that calls f and then carries on.
func Call(f func()) Action { return Action{Do: f} }
