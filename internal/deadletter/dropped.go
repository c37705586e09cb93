package deadletter

import "time"

// The application properties that a resubmit adds, so that the next reader knows of it.
const (
	PropertyResubmitCount = "orderworker-resubmit-count"
	PropertyResubmitAt    = "orderworker-resubmit-at"
)

// resubmitCount returns how often this product has resubmitted the message, and when last.
func (l *DeadLetter) resubmitCount() (int, time.Time) {
	at, _ := l.Message.ApplicationProperties[PropertyResubmitAt].(time.Time)
	switch n := l.Message.ApplicationProperties[PropertyResubmitCount].(type) {
	case int32:
		return int(n), at
	case int64:
		return int(n), at
	}
	return 0, at
}

// DroppedAsDuplicate returns until when duplicate detection may drop a copy that is sent now under the same MessageId, although the
// send would look like a success. It is false when a copy would surely be taken. The time is zero when not even the age of
// the message is known.
func DroppedAsDuplicate(l *DeadLetter, d DuplicateDetection, now time.Time) (until time.Time, dropped bool) {
	if d.window() <= 0 {
		return time.Time{}, false
	}
	if id, text := l.MessageID(); text && id == "" {
		return time.Time{}, false
	}
	if l.EnqueuedAt.IsZero() {
		return time.Time{}, true
	}
	last := l.EnqueuedAt
	if _, at := l.resubmitCount(); at.After(last) {
		last = at
	}
	until = last.Add(d.window())
	return until, until.After(now)
}
