package deadletter

import (
	"context"
	"slices"
)

// Act carries out one command for a few messages, given by their sequence numbers. It is [Reviewer.Apply] without a plan: each
// message is looked at anew, and Expect bounds what may be done.
func (r *Reviewer) Act(ctx context.Context, a Application, sequences ...int64) (Summary, error) {
	slices.Sort(sequences)
	a.Steps = nil
	for _, n := range slices.Compact(sequences) {
		a.Steps = append(a.Steps, PlanStep{Sequence: n, Action: a.Command.Action})
	}
	a.Command.Plan = ""
	return r.Apply(ctx, a)
}

// DryRun says what [Reviewer.Apply] would do with each step now, and does nothing.
func (r *Reviewer) DryRun(ctx context.Context, a Application, yield func(Outcome)) error {
	if len(a.Steps) == 0 {
		return nil
	}
	steps := make(map[int64]PlanStep, len(a.Steps))
	for _, s := range a.Steps {
		steps[s.Sequence] = s
	}
	slots := make(chan struct{}, lookups)
	for messages, err := range r.Pages(ctx, a.Steps[0].Sequence, a.Steps[len(a.Steps)-1].Sequence) {
		if err != nil {
			return err
		}
		messages = slices.DeleteFunc(messages, func(l *DeadLetter) bool { _, ours := steps[l.Sequence]; return !ours })
		for _, item := range r.examine(ctx, messages, slots) {
			yield(r.wouldDo(a.Command, steps[item.DeadLetter.Sequence], item))
			delete(steps, item.DeadLetter.Sequence)
		}
	}
	for _, s := range a.Steps {
		if _, left := steps[s.Sequence]; left {
			yield(absent(s))
		}
	}
	return nil
}

func (r *Reviewer) wouldDo(o Command, s PlanStep, item Item) Outcome {
	o.Action = s.Action
	if o.Plan != "" {
		o.Step = &s
	}
	out := Outcome{Sequence: s.Sequence, Action: s.Action, Verdict: item.Verdict.Kind}
	out.MessageID, _ = item.DeadLetter.MessageID()
	if stop, ends := r.check(o, item, out); ends {
		return stop
	}
	return out.with(WouldAct, "")
}
