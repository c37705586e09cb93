package breaker

// A State is one of the states of a [Breaker].
type State int

// The states.
const (
	// Starting: the store has not been asked yet. Nothing is received.
	Starting State = iota
	// Closed: the store works, and nothing is limited.
	Closed
	// Open: nothing is received and nothing committed until the store says that it is ready.
	Open
	// Trial: the store says that it is ready, and one commit may prove it. A process begins so, too: while it has committed
	// nothing, one message is in process at a time, so that a stop abandons no more.
	Trial
	// Ramp: a commit has proved it, and the number of messages in process grows with each success.
	Ramp
)

func (s State) String() string {
	return [...]string{"starting", "closed", "open", "trial", "ramp"}[s]
}
