package deadletter

import (
	"slices"
	"time"
)

// A Filter selects dead letters. Zero fields select all.
type Filter struct {
	Kinds []Kind
	// Reasons are reason words, compared as they are.
	Reasons   []string
	MessageID string
	// Before and After bound the time at which the message came into the queue. A letter without one is selected by neither.
	Before, After time.Time
	// FirstSequence and LastSequence bound the sequence number, both included; zero is no bound.
	FirstSequence, LastSequence int64
}

// MatchesLetter reports whether a letter can be selected, before anything is known of its verdict.
func (f Filter) MatchesLetter(l *DeadLetter) bool {
	if f.MessageID != "" {
		if id, _ := l.MessageID(); id != f.MessageID {
			return false
		}
	}
	dated := !l.EnqueuedAt.IsZero()
	return (len(f.Reasons) == 0 || slices.Contains(f.Reasons, l.Reason())) &&
		(f.Before.IsZero() || (dated && l.EnqueuedAt.Before(f.Before))) &&
		(f.After.IsZero() || (dated && !l.EnqueuedAt.Before(f.After))) &&
		l.Sequence >= f.FirstSequence && (f.LastSequence == 0 || l.Sequence <= f.LastSequence)
}

// Matches reports whether a letter with this verdict is selected.
func (f Filter) Matches(l *DeadLetter, v Verdict) bool {
	return f.MatchesLetter(l) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, v.Kind))
}
