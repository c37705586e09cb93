package deadletter

import (
	"fmt"
	"slices"
	"time"

	"github.com/orderworker/orderworker/internal/messagejson"
	"github.com/orderworker/orderworker/worker/reason"
)

// An Action is what a person can have done with a dead letter.
type Action string

// The actions. Compare and Export change nothing.
const (
	Reprocess Action = "reprocess"
	Resubmit  Action = "resubmit"
	Discard   Action = "discard"
	Compare   Action = "compare"
	Export    Action = "export"
)

// Changes reports whether the action has an effect.
func (a Action) Changes() bool { return a == Reprocess || a == Resubmit || a == Discard }

// ParseAction reads an action that changes something.
func ParseAction(text string) (Action, bool) {
	a := Action(text)
	return a, slices.Contains([]Action{Reprocess, Resubmit, Discard}, a)
}

// An Offer says what one action would do to one message.
type Offer struct {
	Action Action
	// Label is the text of a button.
	Label string
	// Sentence says what will happen.
	Sentence string
	// Refused says why the action is not carried out; empty when it is.
	Refused string
	// Warning says what could be lost; the action is carried out only when it was acknowledged. Empty when nothing can.
	Warning string
}

// Choice is how a person wants an action carried out.
type Choice struct {
	// NewTTL is the time to live of a resubmitted copy. Zero keeps what the message has.
	NewTTL time.Duration
	// Acknowledged tells that the warning of the offer was read.
	Acknowledged bool
	// UnknownProgram accepts messages of which nobody can tell whether they belong to this program.
	UnknownProgram bool
	// Program is the other program whose messages may be discarded here.
	Program string
	// Resolution is what [Resolve] records.
	Resolution Resolution
}

// ParseTTL reads a time to live for a copy, such as 24h or P1D. Empty is none.
func ParseTTL(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	ttl, err := messagejson.ParseDuration(text)
	if err != nil || ttl <= 0 {
		return 0, fmt.Errorf("%q is not a time to live such as 24h or P1D", text)
	}
	return ttl, nil
}

// First returns the action that a verdict suggests.
func (v Verdict) First() Action {
	switch v.Kind {
	case AlreadyApplied, Stale:
		return Discard
	case NeverApplied, AppliedUnsent:
		return Reprocess
	case Conflict, HashMissing, OtherKey, Incomplete:
		return Compare
	case ClaimExpired:
		return Resolve
	}
	return Export
}

// Offers returns the three actions that change something, the suggested one first.
func Offers(l *DeadLetter, v Verdict, s Settings, c Choice, now time.Time) []Offer {
	offers := []Offer{OfferOf(Reprocess, l, v, s, c, now), OfferOf(Resubmit, l, v, s, c, now), OfferOf(Discard, l, v, s, c, now)}
	first := slices.IndexFunc(offers, func(o Offer) bool { return o.Action == v.First() })
	if first > 0 {
		offers[0], offers[first] = offers[first], offers[0]
	}
	return offers
}

// OfferOf says what one action would do to a message. It is a pure function; the size of a resubmitted copy is checked only
// when it is made.
func OfferOf(a Action, l *DeadLetter, v Verdict, s Settings, c Choice, now time.Time) Offer {
	var o Offer
	switch a {
	case Reprocess:
		o = offerReprocess(v)
	case Resubmit:
		o = offerResubmit(l, v, s, c, now)
	case Discard:
		o = offerDiscard(v)
	case Resolve:
		o = offerResolve(v)
	default:
		return Offer{Action: a, Refused: "There is no such action."}
	}
	if why := refuseOwner(a, l, v, s, c); why != "" && (o.Refused == "" || v.Kind == OtherProgram) {
		o.Refused = why
	}
	return o
}

func offerReprocess(v Verdict) Offer {
	o := Offer{Action: Reprocess, Label: "Reprocess in place", Sentence: "Runs the worker's own steps on this dead letter: its documents are stored under the same rules, and the dead letter is removed when they are. Nothing is sent."}
	switch v.Kind {
	case AlreadyApplied, Stale:
		o.Sentence = "Runs the worker's own steps again, which recognise what is stored, store nothing, and remove the dead letter."
	case AppliedUnsent:
		o.Label = "Send what is left"
		o.Sentence = "Sends the messages that were committed with it and not sent, under their own ids, and removes the dead letter. Its documents are stored already."
	}
	o.Warning, o.Refused = repeatWarning(v), staysSentence(v, "Reprocessing")
	return o
}

func offerDiscard(v Verdict) Offer {
	o := Offer{Action: Discard, Label: "Discard", Sentence: "Removes the dead letter. Nothing is stored or sent."}
	switch v.Kind {
	case AlreadyApplied:
		o.Label, o.Sentence = "Discard as duplicate", "Removes the dead letter. The documents that are stored stay as they are."
	case AppliedUnsent:
		o.Sentence = "Removes the dead letter. The documents that are stored stay as they are, and the messages that are left are sent by the relay of the workers, with or without it."
	case Stale:
		o.Label, o.Sentence = "Discard as stale", "Removes the dead letter. A newer version is stored and stays."
	case Conflict:
		o.Label, o.Sentence = "Keep what is stored", "Removes the dead letter. The stored documents stay as they are, and what this message says instead is gone."
		o.Warning = "Whatever only this message says is lost. Keep a copy if anybody may ask."
	case NeverApplied:
		o.Warning = "Nothing of this message is stored, so it is lost for good. Keep a copy if anybody may ask."
	case OtherProgram:
		o.Warning = "Only " + v.Program + " can tell whether it was applied, so it may be lost for good. Keep a copy."
	case Undecided:
		o.Refused = staysSentence(v, "")
	default:
		o.Warning = "Nobody can tell that this message was applied, so it may be lost for good. Keep a copy if anybody may ask."
	}
	return o
}

// repeatWarning says why the message may be applied a second time, or nothing.
func repeatWarning(v Verdict) string {
	switch {
	case v.Kind == ClaimExpired:
		return halfWayWarning
	case v.Kind != KeyForgotten:
		return ""
	case v.Gone:
		return "A document was stored under this key when the message was dead-lettered, and is gone. If its documents were stored and moved elsewhere, this makes it a second time."
	}
	return "This message is older than keys are remembered. If it was applied long ago, this applies it a second time."
}

// staysSentence says why an action that leads through the worker would end where it began, or nothing when it would not.
func staysSentence(v Verdict, doing string) string {
	switch v.Kind {
	case Conflict:
		return doing + " cannot help: other content is stored under this key and stays, so the message would come straight back. Compare the two; keep what is stored, or send the correction under a new key."
	case Unreadable:
		return doing + " cannot help: the worker cannot read this message, so it would come straight back. Export it, fix it, and import it."
	case Incomplete:
		return doing + " cannot help: what is stored lacks documents that no retry adds. Restore them by hand."
	case HashMissing:
		return doing + " cannot help: what is stored carries no hash to compare by. Compare the two by hand."
	case OtherKey:
		return doing + " cannot help: the document id is taken by another key. Look for a program that writes documents by itself."
	case OtherProgram:
		return doing + " would store the documents of another program under its key."
	case OtherSettings:
		return doing + " could store its documents a second time. " + v.Detail
	case InProgress:
		return doing + " must wait: " + v.Detail
	case Undecided:
		if v.Reason == reason.StoredRecordUnknown {
			return v.undecided() + " " + v.Detail
		}
		return v.undecided() + " Try again when it does."
	}
	return ""
}
