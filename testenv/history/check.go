package history

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Expect says what a run must have come to, beyond what always holds. The zero value fits every run.
type Expect struct {
	// Drained tells that the run was given the time to end. Then every message that was sent must have ended too.
	Drained bool
	// DocumentID gives the id of the document whose creation decides for a MessageId. Defaults to the MessageId itself.
	DocumentID func(messageID string) string
	// Guard gives, for a further document of a message, the id of the document together with which it must be created.
	// Defaults to none: every document stands for itself.
	Guard func(documentID string) (guard string, further bool)
	// Ignored reports whether a MessageId stands for nothing: its messages are completed without a judgement, and no document
	// may be made of them. Defaults to none.
	Ignored func(messageID string) bool
	// Changes says how a document may change after its creation. Defaults to not at all.
	Changes func(documentID string) Change
	// Record reports whether a document is the inbox record of a message. Defaults to none.
	Record func(documentID string) bool
	// Version names a member, a number that must grow with every change of a document that has it. Empty means that there is none.
	Version string
	// Stored are the ids that are stored in the containers at the end, in any order. Nil means that nobody looked.
	Stored []string
	// Reasons are the only reasons for which a message may be dead-lettered. Nil allows every reason.
	Reasons []string
	// LockDuration is the lock duration of the queues. Zero leaves the judgement of time to the broker.
	LockDuration time.Duration
	// Unimplemented allows requests that the environment does not imitate.
	Unimplemented bool
}

// Change says how a document may change after its creation.
type Change int

// The ways to change.
const (
	// Never allows no change and no deletion by a client.
	Never Change = iota
	// WithRecord allows a write, the creation too, only in one transaction with the creation of an inbox record.
	WithRecord
	// Freely allows every write.
	Freely
)

// A Promise is one invariant as a sentence, with how often it was at stake and how often it was broken.
type Promise struct {
	Sentence string
	// Checked is the number of messages, documents or events that could have broken it.
	Checked int
	Broken  []Violation
}

// A Violation is one case in which a promise was broken.
type Violation struct {
	// What tells a person what happened to which message or document.
	What string
	// Events are the events that show it.
	Events []Event
}

// Report holds every promise in a fixed order.
type Report []Promise

// Err returns nil when no promise was broken, and otherwise an error that names every broken promise.
func (r Report) Err() error {
	var broken []error
	for _, p := range r {
		if len(p.Broken) > 0 {
			broken = append(broken, p.err())
		}
	}
	return errors.Join(broken...)
}

// maxShown bounds how many violations of one promise an error spells out.
const maxShown = 5

func (p Promise) err() error {
	var b strings.Builder
	fmt.Fprintf(&b, "broken promise (%d of %d): %s", len(p.Broken), p.Checked, p.Sentence)
	for i, v := range p.Broken {
		if i == maxShown {
			fmt.Fprintf(&b, "\n  and %d more", len(p.Broken)-maxShown)
			break
		}
		fmt.Fprintf(&b, "\n  %s%s", v.What, positions(v.Events))
	}
	return errors.New(b.String())
}

func positions(events []Event) string {
	if len(events) == 0 {
		return ""
	}
	parts := make([]string, len(events))
	for i, e := range events {
		parts[i] = fmt.Sprintf("#%d %s", e.Seq, e.Op)
	}
	return " [" + strings.Join(parts, ", ") + "]"
}

// Check holds a whole log against every promise. It returns nil, or an error that names each broken promise with the
// events that show it. The events must be complete and in order, as [Log.Events] gives them.
func Check(events []Event, expect Expect) error { return Examine(events, expect).Err() }

// Examine is [Check] with the counts of each promise.
func Examine(events []Event, expect Expect) Report {
	if expect.DocumentID == nil {
		expect.DocumentID = func(messageID string) string { return messageID }
	}
	if expect.Guard == nil {
		expect.Guard = func(string) (string, bool) { return "", false }
	}
	if expect.Changes == nil {
		expect.Changes = func(string) Change { return Never }
	}
	if expect.Record == nil {
		expect.Record = func(string) bool { return false }
	}
	v := index(events)
	promises := []struct {
		sentence string
		check    func(*view, Expect) (int, []Violation)
	}{
		{"Every message that was sent ends completed or dead-lettered.", everyMessageEnds},
		{"No message ends twice.", noMessageEndsTwice},
		{"A message is completed only after this very delivery found its documents created, or already there and read, or has written them.", everyCompletionIsJudged},
		{"Nothing is settled after its lock has ended.", nothingSettledAfterItsLock},
		{"A dead letter has a reason, and one that this run may give.", everyDeadLetterHasAReason},
		{"No document is created twice, and none is changed that must not be.", noDocumentHasTwoEffects},
		{"A document is changed in one transaction with the record of one message.", changesHaveTheirRecord},
		{"A version never goes backwards, and never comes again.", versionsGrow},
		{"The documents of a message are created together or not at all.", documentsAreCreatedTogether},
		{"What is stored is exactly what was created.", storeHoldsWhatWasCreated},
		{"Nobody asked the environment for something that it does not imitate.", nothingUnimplemented},
	}
	var r Report
	for _, p := range promises {
		checked, broken := p.check(v, expect)
		r = append(r, Promise{Sentence: p.sentence, Checked: checked, Broken: broken})
	}
	return r
}
