package deadletter

import (
	"fmt"
	"strings"
	"time"

	"github.com/orderworker/orderworker/worker/reason"
)

// Meaning says in a sentence or two what the verdict means.
func (v Verdict) Meaning() string { return strings.TrimSpace(v.meaning() + " " + v.Doubt) }

func (v Verdict) meaning() string {
	switch v.Kind {
	case AlreadyApplied:
		return "This message was applied: equal content is stored under its key" + v.since() + "."
	case AppliedUnsent:
		return "This message was applied: equal content is stored under its key" + v.since() + ". Messages that it sends have not been sent yet."
	case Stale:
		return "This message was processed" + v.since() + " and changed nothing, since an equal or newer version was stored. Its record says so."
	case InProgress, ClaimExpired:
		return "Nobody knows yet whether this message was applied. " + v.Detail
	case NeverApplied:
		return "This message was not applied: nothing is stored under its key."
	case Conflict:
		return "Another message with the same key was applied first" + v.since() + ", and says something else" + v.where() + ". What is stored is unchanged."
	case KeyForgotten:
		if v.Gone {
			return "Nothing is stored under its key now, but a document was stored under it when the message was dead-lettered. It was deleted, moved or has expired, so nobody can tell whether this message was applied."
		}
		return "Nothing is stored under its key, but the message is older than keys are remembered. It may have been applied and forgotten."
	case Incomplete:
		return "Equal content is stored under its key, but some of its documents are missing: " + strings.Join(v.MissingParts, ", ") + "."
	case HashMissing:
		return "A document without a hash to compare by is stored under its key, so nobody can tell whether it is this message."
	case OtherKey:
		return "The document that is stored under its id belongs to another key."
	case OtherProgram:
		return "This message belongs to the program " + v.Program + ", so only " + v.Program + " can tell whether it was applied."
	case OtherSettings:
		return "Nobody can tell here whether this message was applied. " + v.Detail
	case Unreadable:
		return "The worker cannot read this message (" + v.Reason + "), so it can neither apply it nor compare it with what is stored. " + v.Detail
	}
	return v.undecided() + " " + v.Detail
}

// undecided says why nobody knows.
func (v Verdict) undecided() string {
	if v.Reason == reason.StoredRecordUnknown {
		return "Nobody can tell here whether this message was applied: what is stored under its key cannot be read."
	}
	return "Nobody knows whether this message was applied: the store gave no answer."
}

func (v Verdict) since() string {
	if v.CommittedAt.IsZero() {
		return ""
	}
	return ", since " + stamp(v.CommittedAt)
}

// where names the first paths of a conflict.
func (v Verdict) where() string {
	const most = 3
	var paths []string
	for _, d := range v.Differences {
		if d.Path != "" && len(paths) < most {
			paths = append(paths, d.Path)
		}
	}
	switch {
	case len(paths) == 0:
		return ""
	case len(v.Differences) > len(paths):
		return fmt.Sprintf(" at %s and %d more", strings.Join(paths, ", "), len(v.Differences)-len(paths))
	}
	return " at " + strings.Join(paths, ", ")
}

// NoticeKind names a circumstance that a person should know besides the verdict.
type NoticeKind string

// The circumstances.
const (
	NoticeDropped  NoticeKind = "would-be-dropped"
	NoticeExpired  NoticeKind = "expired"
	NoticeReturned NoticeKind = "came-back"
	NoticeSession  NoticeKind = "session-order"
	NoticeDeferred NoticeKind = "deferred"
)

// A Notice is such a circumstance in words.
type Notice struct {
	Kind NoticeKind
	Text string
}

// Notices returns the circumstances of a message.
func Notices(l *DeadLetter, s Settings, now time.Time) []Notice {
	var out []Notice
	add := func(k NoticeKind, format string, args ...any) {
		out = append(out, Notice{Kind: k, Text: fmt.Sprintf(format, args...)})
	}
	if until, dropped := DroppedAsDuplicate(l, s.Duplicates, now); dropped {
		switch {
		case until.IsZero(), !s.Duplicates.Known:
			add(NoticeDropped, "A resubmitted copy may be dropped by duplicate detection: its window is not known.")
		default:
			add(NoticeDropped, "A resubmitted copy would be dropped by duplicate detection until %s.", stamp(until))
		}
	}
	if at, expires := l.expiresAt(); expires && !at.After(now) {
		add(NoticeExpired, "Its time to live ended at %s.", stamp(at))
	}
	if n, at := l.resubmitCount(); n > 0 {
		add(NoticeReturned, "It was resubmitted before (%d times, last at %s) and came back.", n, stamp(at))
	}
	if id, has := l.sessionID(); has {
		add(NoticeSession, "It belongs to session %q: later messages of the session may have been applied already, so the order of the session is lost.", id)
	}
	if l.deferred() {
		add(NoticeDeferred, "Somebody has deferred it: the broker hands it out by its sequence number alone, as the actions here do.")
	}
	return out
}
