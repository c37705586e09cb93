package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Apply carries out the steps in their order and returns when each has an outcome, or why it stopped. When ctx ends it
// begins nothing more, finishes what it has begun, and releases every lock. To go on, apply the same plan again: what is
// done is done, and its messages are gone.
func (r *Reviewer) Apply(ctx context.Context, a Application) (Summary, error) {
	run := r.newRun(a)
	there, err := run.prepare(ctx)
	if err != nil || len(there) == 0 {
		return run.summary, err
	}
	run.locks = r.lockRange(ctx, there, run.Command.LockLimit)
	err = run.groups(ctx)
	if endErr := run.locks.end(ctx); err == nil {
		err = endErr
	}
	if ctx.Err() != nil {
		run.summary.Stopped, err = interrupted, nil
	}
	return run.summary, err
}

// interrupted is why something stopped whose context has ended.
const interrupted = "it was interrupted"

func (r *Reviewer) newRun(a Application) *run {
	a.Pace = a.Pace.withDefaults()
	run := &run{Reviewer: r, Application: a, pacer: pacer{rate: a.Pace.Rate}, steps: map[int64]PlanStep{}, summary: Summary{Steps: len(a.Steps), Counts: map[Result]int{}}}
	run.Command = a.Command.begin(r.settings)
	run.Command.Paused = run.paused
	return run
}

// run is one application under way. Its fields belong to the goroutine of Apply, except those under mu.
type run struct {
	*Reviewer
	Application
	steps map[int64]PlanStep // those whose message is still there
	locks *lockRange         // nil for an import
	tail  tail
	pacer pacer

	mu      sync.Mutex
	summary Summary // guarded by mu
}

// prepare finds out which messages are still there, and whether each is deferred, and what an earlier run has sent of them.
func (r *run) prepare(ctx context.Context) (map[int64]bool, error) {
	if len(r.Steps) == 0 {
		return nil, nil
	}
	for _, s := range r.Steps {
		r.steps[s.Sequence] = s
	}
	first, last := r.Steps[0].Sequence, r.Steps[len(r.Steps)-1].Sequence
	if slices.ContainsFunc(r.Steps, func(s PlanStep) bool { return s.Action == Resubmit }) {
		var err error
		if r.Command.resubmission, err = r.resubmission(ctx, "", first); err != nil {
			return nil, err
		}
		r.tail = newTail(last)
	}
	there, err := r.present(ctx, first, last)
	if err != nil {
		return nil, err
	}
	for _, s := range r.Steps {
		if _, lies := there[s.Sequence]; !lies {
			delete(r.steps, s.Sequence)
			r.report(s.outcome().absent())
		}
	}
	return there, nil
}

// present returns which of the messages from one number to another are there, and whether each is deferred.
func (r *run) present(ctx context.Context, first, last int64) (map[int64]bool, error) {
	there := map[int64]bool{}
	for page, err := range r.Pages(ctx, first, last) {
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			if step, ours := r.steps[l.Sequence]; ours {
				there[l.Sequence] = l.deferred()
				if step.MessageID == "" {
					step.MessageID, _ = l.MessageID()
					r.steps[l.Sequence] = step
				}
			}
		}
	}
	return there, nil
}

// groups works group by group until nothing is wanted any more.
func (r *run) groups(ctx context.Context) error {
	size, lastMet := 0, time.Now()
	for ctx.Err() == nil && r.locks.open() > 0 {
		numbers, err := r.locks.next(ctx, r.Pace.Canary[min(size, len(r.Pace.Canary)-1)])
		failures := r.summary.Failed()
		if len(numbers) > 0 {
			r.group(ctx, numbers, r.one)
			lastMet = time.Now()
		}
		if err != nil {
			return err
		}
		if err := r.tail.look(ctx, r.Reviewer); err != nil {
			return err
		}
		if r.summary.Stopped = r.tooMany(); r.summary.Stopped != "" {
			return nil
		}
		size++
		if r.summary.Failed() > failures || r.tail.fresh {
			size = 0
		}
		if len(numbers) == 0 && !r.await(ctx, lastMet) {
			return nil
		}
	}
	return nil
}

func (r *run) tooMany() string {
	failed := r.summary.Failed() + r.tail.returned
	switch {
	case failed < r.Pace.MaxFailures:
		return ""
	case r.tail.returned > 0:
		return fmt.Sprintf("%d of the resubmitted messages came back and %d failed", r.tail.returned, r.summary.Failed())
	}
	return fmt.Sprintf("%d failed", failed)
}

// await deals with wanted messages that the broker does not hand out: they are gone, or somebody holds them. It reports
// whether to go on looking.
func (r *run) await(ctx context.Context, lastMet time.Time) bool {
	missing := r.locks.missing()
	if len(missing) == 0 {
		return false
	}
	there, err := r.present(ctx, missing[0], missing[len(missing)-1])
	patient := time.Since(lastMet) < r.Command.Patience
	if err != nil {
		return ctx.Err() == nil && patient
	}
	waiting := 0
	for _, n := range missing {
		out := r.steps[n].outcome().absent()
		if _, lies := there[n]; lies {
			if patient {
				waiting++
				continue
			}
			out = out.held()
		}
		r.locks.forget(n)
		r.report(out)
	}
	if waiting > 0 {
		r.paused(fmt.Sprintf("waiting for %d dead letters that somebody else holds", waiting))
	}
	return waiting > 0
}

// group deals with the messages of one group side by side. Those of one key follow each other in the order in which they came, so
// that of several versions the first is stored. A message that is not answered for is not reported: ctx has ended.
func (r *run) group(ctx context.Context, numbers []int64, one func(context.Context, int64) Outcome) {
	slots := make(chan struct{}, r.Pace.Concurrency)
	var work sync.WaitGroup
	for _, sameKey := range r.byKey(numbers) {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			for _, n := range sameKey {
				if !r.pacer.wait(ctx) {
					return
				}
				out, err := r.answered(ctx, r.Command, func() Outcome { return one(ctx, n) })
				if err != nil {
					return
				}
				r.report(out)
			}
		})
	}
	work.Wait()
}

// byKey returns the numbers of each key, in order. Messages without a key are by themselves.
func (r *run) byKey(numbers []int64) [][]int64 {
	slices.Sort(numbers)
	var out [][]int64
	place := map[string]int{}
	for _, n := range numbers {
		step := r.steps[n]
		// The id of the document, or the MessageId where no plan says more.
		key := cmp.Or(step.DocumentID, step.MessageID)
		at, known := place[key]
		if !known || key == "" {
			at = len(out)
			place[key], out = at, append(out, nil)
		}
		out[at] = append(out[at], n)
	}
	return out
}

// one deals with a locked message. What the message says is peeked: a delivery may have been changed so that the client library can
// decode it, and what a resubmit sends is what the broker keeps.
func (r *run) one(ctx context.Context, sequence int64) Outcome {
	step := r.steps[sequence]
	l, err := r.peekOne(context.WithoutCancel(ctx), sequence)
	switch {
	case errors.Is(err, ErrAbsent):
		return step.outcome().absent()
	case err != nil:
		return step.outcome().with(Broken, "The dead letter cannot be read: "+err.Error())
	}
	out := r.actLocked(ctx, r.Command.of(step), l, r.locks)
	if out.Result == Resubmitted {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tail.expect(out.MessageID)
	}
	return out
}

func (s PlanStep) outcome() Outcome {
	return Outcome{Sequence: s.Sequence, MessageID: s.MessageID, Action: s.Action}
}

func (r *run) report(out Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.summary.Counts[out.Result]++
	if r.Outcome != nil {
		r.Outcome(out)
	}
	r.progressLocked("")
}

func (r *run) paused(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progressLocked(why)
}

func (r *run) progressLocked(paused string) {
	if r.Progress != nil {
		s := r.summary
		s.Counts, s.Paused = maps.Clone(s.Counts), paused
		r.Progress(s)
	}
}
