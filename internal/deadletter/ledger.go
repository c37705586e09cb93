package deadletter

import (
	"context"
	"iter"
	"time"
)

// A State says how far an action has come.
type State string

// The states. Every action has an intended entry, and one more for what came of it; a resubmit has a sent entry between.
const (
	// Intended: nothing has happened yet.
	Intended State = "intended"
	// Sent: the broker has taken the copy, and the dead letter is not removed yet.
	Sent State = "sent"
	// Done: the action had its effect and the dead letter is removed.
	Done State = "done"
	// Failed: the dead letter is where it was.
	Failed State = "failed"
	// Unknown: the broker gave no answer that says which of the two.
	Unknown State = "unknown"
)

// An Entry is one record of what was done to a dead letter. It holds no content of the message.
type Entry struct {
	// ID is unique; entries of one action share ActionID.
	ID       string    `json:"id"`
	ActionID string    `json:"actionId"`
	State    State     `json:"state"`
	At       time.Time `json:"at"`
	// Actor is who did it, and Why the reason that was given.
	Actor string `json:"actor"`
	Why   string `json:"why"`
	// Plan is the id of the plan of which the action was a part, empty for a single action.
	Plan string `json:"plan,omitempty"`
	// Origin is where the message came from when it did not lie in the dead letters.
	Origin string `json:"origin,omitempty"`
	Queue  string `json:"queue"`
	// Program is the program whose steps were used.
	Program    string    `json:"program,omitempty"`
	Sequence   int64     `json:"sequence"`
	EnqueuedAt time.Time `json:"enqueuedAt,omitzero"`
	MessageID  string    `json:"messageId,omitempty"`
	DocumentID string    `json:"documentId,omitempty"`
	// Reason is the reason code with which the message was dead-lettered.
	Reason      string `json:"reason,omitempty"`
	Verdict     Kind   `json:"verdict"`
	Action      Action `json:"action"`
	StoredHash  string `json:"storedHash,omitempty"`
	ArrivedHash string `json:"arrivedHash,omitempty"`
	// SentHash is the SHA-256 of a message of a file that was to be sent, without what a send adds to it.
	SentHash string `json:"sentHash,omitempty"`
	// Result is a code, and Detail a sentence, of what came of it.
	Result string `json:"result,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// A Query selects entries. Zero fields select all.
type Query struct {
	// From and To bound At. From must be set.
	From, To  time.Time
	MessageID string
	Sequence  int64
	Plan      string
	State     State
	// Most bounds the number of entries, the newest first. Zero is no bound.
	Most int
}

// Matches reports whether an entry is selected.
func (q Query) Matches(e Entry) bool {
	return !e.At.Before(q.From) && (q.To.IsZero() || e.At.Before(q.To)) &&
		(q.MessageID == "" || q.MessageID == e.MessageID) && (q.Sequence == 0 || q.Sequence == e.Sequence) &&
		(q.Plan == "" || q.Plan == e.Plan) && (q.State == "" || q.State == e.State)
}

// Members returns the members of an [Entry], by their JSON names, that must have these values to be selected.
func (q Query) Members() map[string]any {
	m := map[string]any{}
	if q.MessageID != "" {
		m["messageId"] = q.MessageID
	}
	if q.Sequence != 0 {
		m["sequence"] = q.Sequence
	}
	if q.Plan != "" {
		m["plan"] = q.Plan
	}
	if q.State != "" {
		m["state"] = q.State
	}
	return m
}

// Ledger keeps the entries for ever, or for as long as the store keeps documents. Nothing in it is changed or removed.
type Ledger interface {
	// Append adds an entry. It returns nil only when the entry is known to be stored, and repeats ambiguous writes by
	// itself: an entry with an ID that is there already is the same entry. It is safe for concurrent use.
	Append(ctx context.Context, e Entry) error
	// Entries returns what a query selects, newest first, and stops at the first error.
	Entries(ctx context.Context, q Query) iter.Seq2[Entry, error]
}
