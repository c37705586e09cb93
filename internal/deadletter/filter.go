package deadletter

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Filter selects dead-lettered messages. Zero fields select all.
type Filter struct {
	Kinds []Kind
	// Reasons are reason codes as they are, or as [Group] names them: [NoReason] selects messages without one.
	Reasons   []string
	MessageID string
	// Key is a key, or the document id that belongs to it.
	Key string
	// Text is searched for in any case: in ids, dead-letter texts, properties and the body, as sent and as the worker reads it.
	// The sequence number is found as a whole.
	Text string
	// Before and After bound the time at which the message came into the queue. One without a time is selected by neither.
	Before, After time.Time
	// FirstSequence and LastSequence bound the sequence number, both included; zero is no bound.
	FirstSequence, LastSequence int64
	// Sequences are the only numbers that are selected; nil is no bound.
	Sequences []int64
}

// NoReason names the messages that were dead-lettered without a reason.
const NoReason = "(none)"

// reasonName is the reason by which messages are counted.
func reasonName(l *DeadLetter) string { return cmp.Or(Clip(l.Reason(), 80), NoReason) }

// MatchesMessage reports whether a message can be selected, before anything is known of its verdict.
func (f Filter) MatchesMessage(l *DeadLetter) bool {
	if f.MessageID != "" {
		if id, _ := l.MessageID(); id != f.MessageID {
			return false
		}
	}
	dated := !l.EnqueuedAt.IsZero()
	return (len(f.Reasons) == 0 || slices.Contains(f.Reasons, l.Reason()) || slices.Contains(f.Reasons, reasonName(l))) &&
		(f.Before.IsZero() || (dated && l.EnqueuedAt.Before(f.Before))) &&
		(f.After.IsZero() || (dated && !l.EnqueuedAt.Before(f.After))) &&
		l.Sequence >= f.FirstSequence && (f.LastSequence == 0 || l.Sequence <= f.LastSequence) &&
		(f.Sequences == nil || slices.Contains(f.Sequences, l.Sequence)) &&
		(l.compressed() || l.contains(f.Text))
}

// Matches reports whether a message with this verdict is selected.
func (f Filter) Matches(i Item) bool {
	return f.MatchesMessage(i.DeadLetter) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, i.Verdict.Kind)) &&
		(f.Key == "" || f.Key == i.Key || f.Key == i.DocumentID) &&
		(i.DeadLetter.contains(f.Text) || containsFold(i.Content, f.Text))
}

// NeedsVerdict reports whether the store must be asked to tell what is selected.
func (f Filter) NeedsVerdict() bool { return len(f.Kinds) > 0 || f.Key != "" || f.Text != "" }

// compressed reports whether only the worker's own reading can tell what the body says.
func (l *DeadLetter) compressed() bool {
	return len(l.Message.Data) > 0 && bytes.HasPrefix(l.Message.Data[0], []byte{0x1f, 0x8b})
}

// contains reports whether the message carries the text anywhere. The empty text is everywhere.
func (l *DeadLetter) contains(text string) bool {
	if text == "" || text == strconv.FormatInt(l.Sequence, 10) {
		return true
	}
	id, _ := l.MessageID()
	texts := []string{id}
	for _, f := range l.Facts("") {
		texts = append(texts, f.Value)
	}
	for name, v := range l.Message.ApplicationProperties {
		texts = append(texts, name, Value(v))
	}
	content, _ := l.Content()
	return containsFold([]byte(strings.Join(texts, "\n")), text) || containsFold(content, text)
}

func containsFold(content []byte, text string) bool {
	return bytes.Contains(bytes.ToLower(content), bytes.ToLower([]byte(text)))
}
