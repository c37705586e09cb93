package deadletter

import (
	"context"
	"io"
	"time"

	"github.com/orderworker/orderworker/worker/reason"
)

// Planning says what a plan is to contain.
type Planning struct {
	Filter Filter
	// Action is what is to be done with every message that the filter selects. Empty chooses by verdict: what was applied is
	// discarded, what was never applied is reprocessed, and everything else is left for a person to decide.
	Action Action
	Choice Choice
	// Most bounds the number of steps. Zero is no bound.
	Most int
	// Progress is called after each message with the number of messages seen. It may be nil.
	Progress func(seen int)
}

// A PlanCount counts messages that a plan treats alike.
type PlanCount struct {
	Verdict Kind   `json:"verdict"`
	Action  Action `json:"action,omitempty"`
	// LeftOut says why they are not in the plan; empty for those that are.
	LeftOut string `json:"leftOut,omitempty"`
	Count   int    `json:"count"`
}

// A PlanSummary says what became of the messages that the filter selected.
type PlanSummary struct {
	Seen, Steps int
	Counts      []PlanCount
}

func (s *PlanSummary) add(v Kind, a Action, leftOut string) {
	for i := range s.Counts {
		if c := &s.Counts[i]; c.Verdict == v && c.Action == a && c.LeftOut == leftOut {
			c.Count++
			return
		}
	}
	s.Counts = append(s.Counts, PlanCount{Verdict: v, Action: a, LeftOut: leftOut, Count: 1})
}

// Plan looks at every message that is selected and writes what would be done, as a file for [ReadPlan]. It changes nothing.
// The plan holds no messages that come later, and is done step by step by [Reviewer.Apply]. A file of a plan that failed has
// no end, and is refused. The header needs no more than an id, a time and a person.
func (r *Reviewer) Plan(ctx context.Context, h PlanHeader, p Planning, out io.Writer) (PlanSummary, error) {
	h.Queue, h.Program, h.Acknowledged, h.UnknownProgram = r.settings.Queue, r.settings.Program, p.Choice.Acknowledged, p.Choice.UnknownProgram
	w, err := NewPlanWriter(out, h)
	if err != nil {
		return PlanSummary{}, err
	}
	s, err := r.planSteps(ctx, p, w)
	if err != nil {
		return s, err
	}
	return s, w.Close()
}

func (r *Reviewer) planSteps(ctx context.Context, p Planning, w *PlanWriter) (PlanSummary, error) {
	var s PlanSummary
	for item, err := range r.List(ctx, p.Filter) {
		if err != nil {
			return s, err
		}
		s.Seen++
		action, leftOut := r.planned(p, item, s.Steps)
		s.add(item.Verdict.Kind, action, leftOut)
		if leftOut == "" {
			s.Steps++
			if err := w.Add(stepOf(item, action)); err != nil {
				return s, err
			}
		}
		if p.Progress != nil {
			p.Progress(s.Seen)
		}
	}
	return s, nil
}

// The reasons why a message is left out of a plan.
const (
	leftToDecide   = "a person must decide"
	leftRefused    = "the action would be refused"
	leftWarned     = "the action carries a warning that was not acknowledged"
	leftMost       = "the plan is as long as it may be"
	leftUnreached  = "it is deferred, has no sequence number, or cannot be read by the client library"
	leftBlocked    = "one of its further documents exists already, so that it can only fail; show says which"
	leftOutOfOrder = "the store gave no answer"
	leftProgram    = "it belongs to another program, which can plan it"
	leftDoubt      = "nobody knows to which program it belongs; --accept-unknown-program plans it"
)

func (r *Reviewer) planned(p Planning, item Item, steps int) (Action, string) {
	action := p.Action
	if action == "" {
		switch item.Verdict.Kind {
		case AlreadyApplied:
			action = Discard
		case NeverApplied:
			if action = Reprocess; item.DeadLetter.Reason() == reason.DocumentConflict {
				return "", leftBlocked
			}
		case Undecided:
			return "", leftOutOfOrder
		case OtherProgram:
			return "", leftProgram
		default:
			return "", leftToDecide
		}
	}
	offer := OfferOf(action, item.DeadLetter, item.Verdict, r.settings, p.Choice, time.Now())
	switch {
	case item.DeadLetter.Sequence == 0 || item.DeadLetter.Unreachable() != "":
		return action, leftUnreached
	case item.Verdict.Doubt != "" && !p.Choice.UnknownProgram && offer.Refused != "":
		return action, leftDoubt
	case offer.Refused != "":
		return action, leftRefused
	case offer.Warning != "" && !p.Choice.Acknowledged:
		return action, leftWarned
	case p.Most > 0 && steps >= p.Most:
		return action, leftMost
	}
	return action, ""
}

func stepOf(item Item, action Action) PlanStep {
	id, _ := item.DeadLetter.MessageID()
	document := item.DocumentID
	if document == id {
		document = ""
	}
	return PlanStep{
		DocumentID: document, Sequence: item.DeadLetter.Sequence, Action: action, Verdict: item.Verdict.Kind, MessageID: id,
		EnqueuedAt: item.DeadLetter.EnqueuedAt, Reason: Clip(item.DeadLetter.Reason(), maxLedgerText),
		ArrivedHash: item.Verdict.ArrivedHash, StoredHash: item.Verdict.StoredHash,
	}
}
