package deadletter

import (
	"context"
	"slices"
)

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
	for page, err := range r.Pages(ctx, a.Steps[0].Sequence, a.Steps[len(a.Steps)-1].Sequence) {
		if err != nil {
			return err
		}
		page = slices.DeleteFunc(page, func(l *DeadLetter) bool { _, ours := steps[l.Sequence]; return !ours })
		for _, item := range r.examine(ctx, page, slots) {
			yield(r.wouldDo(a.Command, steps[item.DeadLetter.Sequence], item))
			delete(steps, item.DeadLetter.Sequence)
		}
	}
	for _, s := range a.Steps {
		if _, left := steps[s.Sequence]; left {
			yield(s.outcome().absent())
		}
	}
	return nil
}

// DryRunImport says what [Reviewer.Import] would do with each message, and does nothing.
func (r *Reviewer) DryRunImport(ctx context.Context, c Command, messages []*DeadLetter, yield func(Outcome)) error {
	c.Origin = originImport
	slots := make(chan struct{}, lookups)
	for group := range slices.Chunk(messages, importGroup) {
		for _, item := range r.examine(ctx, group, slots) {
			yield(r.wouldDo(c, PlanStep{Sequence: item.DeadLetter.Sequence, Action: c.Action}, item))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (r *Reviewer) wouldDo(c Command, s PlanStep, item Item) Outcome {
	c = c.of(s)
	out := s.outcome()
	out.Verdict = item.Verdict.Kind
	out.MessageID, _ = item.DeadLetter.MessageID()
	if stop, ends := r.check(c, item, out); ends {
		return stop
	}
	return out.with(WouldAct, "")
}
