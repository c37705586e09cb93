package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/worker/reason"
)

// Planning says what a plan is to contain.
type Planning struct {
	Filter Filter
	// Action is what is to be done with every message that the filter selects. Empty chooses by verdict: what was processed is
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

// Plan looks at every message that is selected and says what would be done. It changes nothing. The plan holds no messages that
// come later, and is done step by step by [Reviewer.Apply]. The header needs no more than an id, a time and a person.
func (r *Reviewer) Plan(ctx context.Context, h PlanHeader, p Planning) (Plan, PlanSummary, error) {
	h.Queue, h.Program, h.Acknowledged, h.UnknownProgram = r.settings.Queue, r.settings.Program, p.Choice.Acknowledged, p.Choice.UnknownProgram
	plan := Plan{PlanHeader: h}
	var s PlanSummary
	for item, err := range r.List(ctx, p.Filter) {
		if err != nil {
			return plan, s, err
		}
		s.Seen++
		action, leftOut := r.planned(p, item, len(plan.Steps))
		if s.add(item.Verdict.Kind, action, leftOut); leftOut == "" {
			plan.Steps = append(plan.Steps, stepOf(item, action))
		}
		if p.Progress != nil {
			p.Progress(s.Seen)
		}
	}
	s.Steps = len(plan.Steps)
	return plan, s, nil
}

// Application is the plan with a command that says who applies it and why. It fails for a plan of another program or queue.
func (r *Reviewer) Application(p Plan, c Command) (Application, error) {
	switch s := r.settings; {
	case p.Program != "" && p.Program != s.Program:
		return Application{}, fmt.Errorf("the plan was made by the program %s, and this is %s. Run:  %s deadletter apply", p.Program, s.Program, p.Program)
	case p.Queue != s.Queue:
		return Application{}, fmt.Errorf("the plan was made for queue %q, and this is %q", p.Queue, s.Queue)
	}
	c.Action, c.Plan = "", p.ID
	c.Choice = Choice{Acknowledged: p.Acknowledged, UnknownProgram: p.UnknownProgram}
	var err error
	if c.Choice.NewTTL, err = ParseTTL(p.NewTTL); err != nil {
		return Application{}, err
	}
	return Application{Command: c, Steps: p.Steps}, nil
}

// The reasons why a message is left out of a plan.
const (
	leftToDecide   = "a person must decide"
	leftRefused    = "the action would be refused"
	leftWarned     = "the action carries a warning that was not acknowledged"
	leftMost       = "the plan is as long as it may be"
	leftUnreached  = "the broker did not say its sequence number"
	leftBlocked    = "one of its further documents exists already, so that it can only fail; show says which"
	leftOutOfOrder = "the store gave no answer"
	leftProgram    = "it belongs to another program, which can plan it"
	leftDoubt      = "nobody knows to which program it belongs; --accept-unknown-program plans it"
)

func (r *Reviewer) planned(p Planning, item Item, steps int) (Action, string) {
	action := p.Action
	if action == "" {
		action = item.Verdict.First()
		switch kind := item.Verdict.Kind; {
		case kind == Undecided:
			return "", leftOutOfOrder
		case kind == OtherProgram:
			return "", leftProgram
		case !action.Changes():
			return "", leftToDecide
		case kind == NeverApplied && item.DeadLetter.Reason() == reason.DocumentConflict:
			return "", leftBlocked
		}
	}
	offer := OfferOf(action, item.DeadLetter, item.Verdict, r.settings, p.Choice, time.Now())
	switch {
	case item.DeadLetter.Sequence == 0:
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
		EnqueuedAt: item.DeadLetter.EnqueuedAt.UTC(), Reason: Clip(item.DeadLetter.Reason(), maxLedgerText),
		ArrivedHash: item.Verdict.ArrivedHash, StoredHash: item.Verdict.StoredHash,
	}
}
