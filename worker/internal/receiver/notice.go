package receiver

// A NoticeKind says what a [Notice] reports.
type NoticeKind int

// The kinds of notices.
const (
	// Arrived: messages arrived, so the receiver works.
	Arrived NoticeKind = iota + 1
	// Reached: the broker answers for the queue.
	Reached
	// Unreached: the broker does not answer, or refuses. Detail says what to do.
	Unreached
	// Deaf: messages wait in the queue and none arrives. Detail says what to do.
	Deaf
	// NoneWaiting: no message waits in the queue.
	NoneWaiting
	// Replaced: the link was given up for another. Reason says why.
	Replaced
	// Panicked: the broker's client panicked over a message that it was handed.
	Panicked
	// Unreadable: the queue answers and cannot be looked at.
	Unreadable
	// ThinLine: locks arrive old, so fewer messages are asked for. Detail names lock, size and bandwidth.
	ThinLine
)

// A Notice is one thing that happened to the receiver.
type Notice struct {
	Kind   NoticeKind
	Reason string
	Detail string
	Err    error
}

// Why a link was replaced.
const (
	ReplacedLost       = "link_lost"       // its link or connection is lost, which is normal now and then
	ReplacedFailing    = "failing"         // its calls fail
	ReplacedStuck      = "stuck"           // its calls do not return
	ReplacedPanic      = "panic"           // the client panicked
	ReplacedSilent     = "silent"          // messages wait and it receives none
	ReplacedManagement = "management_link" // renewals or settlements fail
	ReplacedNoAnswer   = "no_answer"       // the queue cannot be looked at through it
)
