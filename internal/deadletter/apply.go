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

	"github.com/orderworker/orderworker/internal/backoff"
)

// Pace says how fast many messages are dealt with, and when to stop.
type Pace struct {
	// Rate is how many messages are begun in a second. Zero is no bound.
	Rate float64
	// Canary are the sizes of the first groups. A group is begun when the one before is done; the size grows only while
	// every message came out as it should, and starts again at the first when one did not. The last size is used for the
	// rest. Defaults to 1, 5, 20, 100.
	Canary []int
	// Concurrency is how many messages of a group are dealt with at a time. Defaults to 8.
	Concurrency int
	// MaxFailures stops everything when so many messages did not come out as they should. Defaults to 10.
	MaxFailures int
	// LockLimit bounds the other messages that are kept locked meanwhile. Defaults to [DefaultLockLimit].
	LockLimit int
	// Patience is how long to wait for messages that somebody else holds, such as an earlier run that was killed. Defaults to
	// the lock duration and five seconds more.
	Patience time.Duration
}

func (p Pace) withDefaults(lock time.Duration) Pace {
	if len(p.Canary) == 0 {
		p.Canary = []int{1, 5, 20, 100}
	}
	if p.Concurrency <= 0 {
		p.Concurrency = 8
	}
	if p.MaxFailures <= 0 {
		p.MaxFailures = 10
	}
	if p.Patience <= 0 {
		p.Patience = lock + 5*time.Second
	}
	return p
}

// Progress says how far an application is.
type Progress struct {
	// Steps are all, and Settled those with an outcome.
	Steps, Settled int
	Counts         map[Result]int
	// Paused says why nothing is begun now, empty when something is.
	Paused string
}

// A Summary says what an application came to.
type Summary struct {
	Steps  int
	Counts map[Result]int
	// Charge is what the store charged for committing, in request units.
	Charge float64
	// Stopped says why it ended before its end, empty when it did not.
	Stopped string
}

// Settled returns how many steps have an outcome.
func (s Summary) Settled() int {
	n := 0
	for _, c := range s.Counts {
		n += c
	}
	return n
}

// Failed returns how many messages did not come out as they should.
func (s Summary) Failed() int {
	return s.Counts[Broken] + s.Counts[Uncertain] + s.Counts[Rejected] + s.Counts[NotSeen]
}

// An Application is a plan, or a few messages, to be dealt with.
type Application struct {
	Command Command
	Steps   []PlanStep
	Pace    Pace
	// Outcome is called for every message when its outcome is known, and Progress with it and at every pause, both from one
	// goroutine at a time. Either may be nil.
	Outcome  func(Outcome)
	Progress func(Progress)
}

// Apply carries out the steps in their order and returns when each has an outcome, or why it stopped. When ctx ends it
// begins nothing more, finishes what it has begun, and gives every lock back. To go on, apply the same plan again: what is
// done is done, and its messages are gone.
func (r *Reviewer) Apply(ctx context.Context, a Application) (Summary, error) {
	run := r.newRun(a)
	if err := run.prepare(ctx); err != nil {
		return run.summary, err
	}
	if len(run.steps) == 0 {
		return run.summary, nil
	}
	run.locks = r.lockRange(ctx, slices.Collect(maps.Keys(run.steps)), run.Pace.LockLimit)
	err := run.stages(ctx)
	if endErr := run.locks.end(ctx); err == nil {
		err = endErr
	}
	if ctx.Err() != nil {
		run.summary.Stopped = "it was interrupted"
		return run.summary, nil
	}
	return run.summary, err
}

func (r *Reviewer) newRun(a Application) *run {
	a.Pace = a.Pace.withDefaults(r.settings.lock())
	return &run{Reviewer: r, Application: a, began: time.Now(), steps: map[int64]PlanStep{}, summary: Summary{Steps: len(a.Steps), Counts: map[Result]int{}}}
}

// run is one application under way. Its fields belong to the goroutine of Apply, except those under mu.
type run struct {
	*Reviewer
	Application
	began    time.Time
	steps    map[int64]PlanStep // those whose message is still there
	file     []*DeadLetter      // the messages of an import, by their place; nil for dead letters
	sent     sentBefore
	seen     *seen
	queueEnd int64
	locks    *lockRange
	tail     tail
	begin    time.Time // when the next message may be begun

	mu      sync.Mutex
	summary Summary // guarded by mu
}

// prepare finds out which messages are still there, and what an earlier run has sent of them.
func (r *run) prepare(ctx context.Context) error {
	if len(r.Steps) == 0 {
		return nil
	}
	for _, s := range r.Steps {
		r.steps[s.Sequence] = s
	}
	first, last := r.Steps[0].Sequence, r.Steps[len(r.Steps)-1].Sequence
	if slices.ContainsFunc(r.Steps, func(s PlanStep) bool { return s.Action == Resubmit }) {
		var err error
		if r.sent, r.seen, err = r.loadSent(ctx, ""); err != nil {
			return err
		}
		// Messages that came later say what duplicate detection remembers.
		r.tail, last = newTail(last), 0
		if r.queueEnd, err = r.Reviewer.queueEnd(ctx); err != nil {
			return err
		}
	}
	there, err := r.present(ctx, first, last)
	if err != nil {
		return err
	}
	for _, s := range r.Steps {
		switch unreachable, lies := there[s.Sequence]; {
		case !lies:
			delete(r.steps, s.Sequence)
			r.report(absent(s))
		case unreachable != "":
			delete(r.steps, s.Sequence)
			r.report(absent(s).with(Refused, unreachable))
		}
	}
	return nil
}

// present returns which of the messages of a range are there, and of each why it cannot be locked, or "". It notes what it
// sees for a resubmit.
func (r *run) present(ctx context.Context, first, last int64) (map[int64]string, error) {
	there := map[int64]string{}
	for messages, err := range r.Pages(ctx, first, last) {
		if err != nil {
			return nil, err
		}
		for _, l := range messages {
			if id, _ := l.MessageID(); r.seen != nil {
				r.seen.note(id, l.EnqueuedAt, l.Sequence, time.Now())
			}
			if step, ours := r.steps[l.Sequence]; ours {
				there[l.Sequence] = l.Unreachable()
				if step.MessageID == "" {
					step.MessageID, _ = l.MessageID()
					r.steps[l.Sequence] = step
				}
			}
		}
	}
	return there, nil
}

func absent(s PlanStep) Outcome {
	return Outcome{Sequence: s.Sequence, MessageID: s.MessageID, Action: s.Action, Result: Absent, Detail: "The dead letter is not there any more. The log may say who removed it."}
}

// stages works group by group until nothing is wanted any more.
func (r *run) stages(ctx context.Context) error {
	stage, lastMet := 0, time.Now()
	for ctx.Err() == nil && r.locks.open() > 0 {
		messages, err := r.locks.next(ctx, r.Pace.Canary[min(stage, len(r.Pace.Canary)-1)])
		failures := r.summary.Failed()
		if len(messages) > 0 {
			r.group(ctx, messages)
			lastMet = time.Now()
		}
		if err != nil {
			return err
		}
		if err := r.tail.look(ctx, r.Reviewer); err != nil {
			return err
		}
		if stop := r.tooMany(); stop != "" {
			r.summary.Stopped = stop
			return nil
		}
		stage++
		if r.summary.Failed() > failures || r.tail.news() {
			stage = 0
		}
		if len(messages) == 0 && !r.await(ctx, lastMet) {
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
	if err != nil {
		return ctx.Err() == nil && time.Since(lastMet) < r.Pace.Patience
	}
	patient := time.Since(lastMet) < r.Pace.Patience
	waiting := 0
	for _, n := range missing {
		out := absent(r.steps[n])
		switch _, lies := there[n]; {
		case lies && patient:
			waiting++
			continue
		case lies:
			out = out.with(Locked, "Somebody else holds the dead letter: another review, or a run that was killed. Try again when its lock has ended.")
		}
		r.locks.forget(n)
		r.report(out)
	}
	if waiting > 0 {
		r.progress(fmt.Sprintf("waiting for %d dead letters that somebody else holds", waiting))
	}
	return waiting > 0
}

// group deals with the messages of one group, and tries those again for which the store was down.
func (r *run) group(ctx context.Context, messages []int64) {
	for try := 0; ; try++ {
		down, wait := r.once(ctx, messages)
		if len(down) == 0 {
			return
		}
		wait = max(wait, storeBackoff().Wait(try))
		if r.Command.Plan == "" && r.file == nil && time.Since(r.began)+wait > r.Pace.Patience {
			r.giveUp(down)
			return
		}
		r.progress(fmt.Sprintf("the store cannot be used now; trying again in %s", wait.Round(time.Second)))
		if !backoff.Sleep(ctx, wait) {
			return
		}
		messages = down
	}
}

// giveUp ends the wait for the store: a person waits for a few messages, and a plan can wait for ever.
func (r *run) giveUp(down []int64) {
	for _, n := range down {
		out := absent(r.steps[n])
		r.report(out.with(StoreDown, fmt.Sprintf("The store could not be used for %s. Try again when it can.", r.Pace.Patience)))
	}
}

// storeBackoff returns the backoff while the store cannot be used.
func storeBackoff() backoff.Policy {
	return backoff.Policy{Base: time.Second, Max: 30 * time.Second, Floor: 250 * time.Millisecond}
}

// once deals with each message once. It returns those for which the store was down, and how long it asked to wait. Messages
// of one key follow each other in the order in which they came, so that the first of several versions is
// stored.
func (r *run) once(ctx context.Context, messages []int64) (down []int64, wait time.Duration) {
	slots := make(chan struct{}, r.Pace.Concurrency)
	before := queues{}
	var work sync.WaitGroup
	slices.Sort(messages)
	for _, n := range messages {
		slots <- struct{}{}
		if !r.paced(ctx) {
			<-slots
			break
		}
		// Whom it waits for was begun before, and so has a slot or is done.
		turn := before.join(r.keyOf(r.steps[n]))
		work.Go(func() {
			defer func() { <-slots }()
			out := Outcome{Result: StoreDown}
			if turn.wait() {
				out = r.one(ctx, n)
			}
			// The next one of the key is reported after it, too.
			defer func() { turn.leave(out.Result != StoreDown) }()
			if out.Result == StoreDown {
				r.mu.Lock()
				defer r.mu.Unlock()
				down, wait = append(down, n), max(wait, out.RetryAfter)
				return
			}
			r.report(out)
		})
	}
	work.Wait()
	return down, wait
}

// keyOf is what messages of one key have in common: the id of the document, or the MessageId where no plan says more.
func (r *run) keyOf(s PlanStep) string { return cmp.Or(s.DocumentID, s.MessageID) }

// paced waits for the turn of the next message, and reports whether there is one.
func (r *run) paced(ctx context.Context) bool {
	if r.Pace.Rate > 0 {
		now := time.Now()
		if r.begin.Before(now) {
			r.begin = now
		}
		timer := time.NewTimer(r.begin.Sub(now))
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		r.begin = r.begin.Add(time.Duration(float64(time.Second) / r.Pace.Rate))
	}
	return ctx.Err() == nil
}

// oneTime bounds the work on one message once it is begun.
const oneTime = 2 * time.Minute

// one deals with a locked message to its end, also when the caller gives up meanwhile. What the message says is peeked: a delivery
// may have been changed so that the client library can decode it, and what a resubmit sends is what the broker keeps.
func (r *run) one(ctx context.Context, sequence int64) Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneTime)
	defer cancel()
	o, step := r.Command, r.steps[sequence]
	o.Action, o.sent, o.seen, o.queueEnd = step.Action, r.sent, r.seen, r.queueEnd
	if o.Plan != "" {
		o.Step = &step
	}
	if r.file != nil {
		return r.fromFile(ctx, o, r.file[sequence])
	}
	l, err := r.peekOne(ctx, sequence)
	switch {
	case errors.Is(err, ErrAbsent):
		return absent(step)
	case err != nil:
		return absent(step).with(Broken, "The dead letter cannot be read: "+err.Error())
	}
	out := r.act(ctx, o, l, func(ctx context.Context) error { return r.locks.complete(ctx, sequence) })
	if out.Result == Resubmitted {
		r.mu.Lock()
		r.tail.expect(out.MessageID)
		r.mu.Unlock()
	}
	return out
}

func (r *run) report(out Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.summary.Counts[out.Result]++
	r.summary.Charge += out.Charge
	if r.Outcome != nil {
		r.Outcome(out)
	}
	r.progressLocked("")
}

func (r *run) progress(paused string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progressLocked(paused)
}

func (r *run) progressLocked(paused string) {
	if r.Progress == nil {
		return
	}
	r.Progress(Progress{Steps: r.summary.Steps, Settled: r.summary.Settled(), Counts: maps.Clone(r.summary.Counts), Paused: paused})
}
