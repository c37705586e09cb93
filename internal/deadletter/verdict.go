package deadletter

import (
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// A Kind says whether the message of a dead letter was applied.
type Kind string

// The kinds of verdicts, in the order in which a list shows them.
const (
	// NeverApplied: nothing is stored under the key.
	NeverApplied Kind = "never-applied"
	// AlreadyApplied: equal content is stored.
	AlreadyApplied Kind = "already-applied"
	// AppliedUnsent: equal content is stored, and messages that it sends have not been sent yet.
	AppliedUnsent Kind = "applied-not-sent"
	// Stale: the message was processed, and changed nothing since an equal or newer version was stored.
	Stale Kind = "stale"
	// Conflict: other content is stored under the key.
	Conflict Kind = "conflict"
	// KeyForgotten: nothing is stored, but something may have been, longer ago than keys are remembered.
	KeyForgotten Kind = "key-forgotten"
	// Incomplete: equal content is stored, and some of its documents are missing.
	Incomplete Kind = "incomplete"
	// HashMissing: what is stored carries no hash to compare by.
	HashMissing Kind = "hash-missing"
	// OtherKey: what is stored under the document id belongs to another key.
	OtherKey Kind = "other-key"
	// OtherProgram: another program has dead-lettered the message, and only that one can tell.
	OtherProgram Kind = "other-program"
	// OtherSettings: the worker that dead-lettered the message computed another document id than the settings here do.
	OtherSettings Kind = "other-settings"
	// Unreadable: the message cannot be admitted, so it can neither be applied nor compared.
	Unreadable Kind = "unreadable"
	// Undecided: the store gave no answer.
	Undecided Kind = "undecided"
)

// processed reports whether the message is known to have been processed: reprocessing it changes nothing.
func (k Kind) processed() bool { return k == AlreadyApplied || k == AppliedUnsent || k == Stale }

// Kinds returns every kind in the order in which a list shows them.
func Kinds() []Kind {
	return []Kind{NeverApplied, AlreadyApplied, AppliedUnsent, Stale, InProgress, ClaimExpired, Conflict, KeyForgotten, Incomplete, HashMissing, OtherKey, OtherProgram, OtherSettings, Unreadable, Undecided}
}

// ParseKind reads a kind as a person types it.
func ParseKind(text string) (Kind, bool) {
	k := Kind(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), " ", "-"))
	return k, slices.Contains(Kinds(), k)
}

// Settings are what is known of the queue and of the memory of keys. They are configured, since reading them from the
// broker takes the right to manage it. What is not known counts as the worst.
type Settings struct {
	// Program is the name of the program whose pipeline is used. Empty accepts the messages of any program.
	Program string
	// Queue is the path of the queue to which the dead letters belong, such as "orders".
	Queue string
	// Duplicates is the duplicate detection of the queue.
	Duplicates DuplicateDetection
	// KeyMemory is how long a stored key is remembered, counted from its commit. Zero is for ever.
	KeyMemory time.Duration
	// RequiresSession tells that the queue takes no message without a session.
	RequiresSession bool
	// Forwarded tells that the dead letters are ordinary messages of the queue, to which others forward theirs.
	Forwarded bool
	// Lock is the lock duration of the queue. Defaults to one minute.
	Lock time.Duration
}

func (s Settings) lock() time.Duration {
	if s.Lock <= 0 {
		return time.Minute
	}
	return s.Lock
}

// DuplicateDetection is what is known of a queue's duplicate detection. The zero value is that nothing is known.
type DuplicateDetection struct {
	Known bool
	// Window is how long the queue remembers a MessageId; zero when duplicate detection is off.
	Window time.Duration
}

// longestWindow is the longest history that the service allows, and what an unknown one counts as.
const longestWindow = 7 * 24 * time.Hour

func (d DuplicateDetection) window() time.Duration {
	if !d.Known {
		return longestWindow
	}
	return d.Window
}

// A Verdict says what is true of a dead letter now. It is a value, as old as the answers it was computed from.
type Verdict struct {
	Kind Kind
	// Reason and Detail say why a message is unreadable or undecided, and Detail also says of other kinds what the worker
	// would say.
	Reason, Detail string
	// Gone tells, for KeyForgotten, that a document was stored under it when the message was dead-lettered.
	Gone bool
	// StoredHash and ArrivedHash are the hashes by the stored parameters; a message that lacks what that compares has none.
	// Without a stored document, ArrivedHash is by the configured one.
	StoredHash, ArrivedHash string
	// CommittedAt is when the stored document was committed; zero when unknown or when there is none.
	CommittedAt time.Time
	// Differences are the paths at which a conflict differs.
	Differences []fingerprint.Difference
	// MissingParts are the documents that are missing, for Incomplete.
	MissingParts []string
	// Program is the other program to which the message belongs, for OtherProgram.
	Program string
	// Doubt says why it is not known whether the message belongs to this program; empty when nothing speaks against it.
	Doubt string
	// Outcome is the small JSON text that the handler had recorded for the message, nil when there is none.
	Outcome []byte
	// Retry tells that the store could not be reached, so that asking again may help.
	Retry bool
	// RetryAfter is how long the store asked to wait.
	RetryAfter time.Duration
}

// Decide computes the verdict of a message from a preview by the worker's pipeline. It is a pure function.
func Decide(l *DeadLetter, r worker.Result, s Settings, now time.Time) Verdict {
	if other := foreign(l, s); other != "" {
		return Verdict{Kind: OtherProgram, Program: other}
	}
	if len(l.Damage) > 0 {
		return Verdict{Kind: Unreadable, Reason: reason.UnsupportedBody, Detail: "Part of the message is in a form that this program cannot read: " + strings.Join(l.Damage, "; ") + "."}
	}
	if r.Admitted || r.Cause == worker.CauseRefused {
		if detail := otherSettings(l, r.Commit); detail != "" {
			return Verdict{Kind: OtherSettings, Detail: detail}
		}
	}
	v := Verdict{Kind: kindOf(r), Reason: r.Reason, Detail: r.Detail, Differences: r.Differences, ArrivedHash: r.ArrivedHash}
	if v.ArrivedHash == "" && r.Admitted && r.Judgement != worker.Conflict {
		v.ArrivedHash = r.Commit.Fingerprint.Hash
	}
	if e := r.Outcome.Existing; e != nil {
		v.CommittedAt, v.MissingParts, v.Outcome = e.CommittedAt, e.MissingParts, e.Outcome
		if e.Fingerprint != nil {
			v.StoredHash = e.Fingerprint.Hash
		}
	}
	switch v.Kind {
	case Undecided:
		v.Retry, v.RetryAfter = r.Cause == worker.CauseUnavailable, r.RetryAfter
		if v.Detail == "" && r.Err != nil {
			v.Detail = r.Err.Error()
		}
	case NeverApplied:
		switch {
		case storedWhenDeadLettered(l):
			v.Kind, v.Gone = KeyForgotten, true
		case forgotten(l, s, now):
			v.Kind = KeyForgotten
		}
	}
	return v
}

func kindOf(r worker.Result) Kind {
	switch r.Judgement {
	case worker.Created, worker.Own, worker.Redelivered, worker.Duplicate, worker.Stale:
		if r.Judgement == worker.Stale || r.Outcome.Existing != nil && r.Outcome.Existing.Stale {
			return Stale
		}
		if r.Unsent {
			return AppliedUnsent
		}
		return AlreadyApplied
	case worker.InProgress:
		return InProgress
	case worker.ClaimExpired:
		return ClaimExpired
	case worker.Conflict:
		return Conflict
	case worker.Incomplete:
		return Incomplete
	case worker.HashMissing:
		return HashMissing
	case worker.OtherKey:
		return OtherKey
	}
	switch {
	case r.Cause == worker.CauseRefused:
		return Unreadable
	case r.Cause != 0 || !r.Admitted:
		return Undecided
	}
	return NeverApplied
}

// forgotten reports whether the key of a message may have been committed and forgotten. A commit is never older than the
// message, so a message younger than the memory proves that nothing was forgotten.
func forgotten(l *DeadLetter, s Settings, now time.Time) bool {
	return s.KeyMemory > 0 && (l.EnqueuedAt.IsZero() || now.Sub(l.EnqueuedAt) >= s.KeyMemory)
}

// storedWhenDeadLettered reports whether the worker dead-lettered the message because of a document that stood in its way.
func storedWhenDeadLettered(l *DeadLetter) bool {
	switch l.Reason() {
	case reason.ContentConflict, reason.StoredHashMissing, reason.KeyCollision, reason.DocumentsMissing:
		return true
	}
	_, compared := l.Message.ApplicationProperties[worker.PropertyStoredHash]
	return compared
}
