package page

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// maxSteps bounds a plan that is made here. A longer one is made with the command.
const maxSteps = 100_000

// The bounds of the plans of all people together.
const (
	keptJobs     = 20 // kept with what came of them
	underWayJobs = 8  // made, applied or waiting for their turn at a time
)

// keptNotes is how many outcomes of a plan are shown one by one.
const keptNotes = 100

// A job is a plan: it is made, looked at, applied, and looked at again. Its fields are guarded by the mutex of jobs.
type job struct {
	deadletter.Plan
	Stage   stage
	Actor   string // who applies it
	Seen    int
	Planned deadletter.PlanSummary
	Summary deadletter.Summary
	Notes   []deadletter.Outcome // of messages that were not done
	Err     string
	Why     string
	Rate    float64
	cancel  context.CancelFunc
}

type stage string

const (
	planning stage = "planning"
	planned  stage = "planned"
	waiting  stage = "waiting"
	applying stage = "applying"
	applied  stage = "applied"
	failed   stage = "failed"
)

// UnderWay reports whether the job changes by itself.
func (j job) UnderWay() bool { return j.Stage == planning || j.Stage == waiting || j.Stage == applying }

// jobs holds the plans of all people, and the turn that one action or plan at a time has to lock messages.
type jobs struct {
	turn chan struct{} // has one place

	mu  sync.Mutex
	all []*job // guarded by mu; the oldest first
}

// take waits for the turn, at most for so long; release gives it back. It is false when the turn did not come.
func (j *jobs) take(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case j.turn <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (j *jobs) release() { <-j.turn }

// underWay returns the jobs that are under way, as they are now.
func (j *jobs) underWay() []job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.underWayLocked()
}

func (j *jobs) underWayLocked() []job {
	var out []job
	for _, one := range j.all {
		if one.UnderWay() {
			out = append(out, *one)
		}
	}
	return out
}

// get returns a job as it is now.
func (j *jobs) get(id string) (job, bool) {
	var c job
	found := j.update(id, func(one *job) bool {
		c = *one
		c.Notes = slices.Clone(one.Notes)
		return true
	})
	return c, found
}

// update changes a job, and reports what change says; false when the job is not kept.
func (j *jobs) update(id string, change func(*job) bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.IndexFunc(j.all, func(one *job) bool { return one.ID == id })
	return at >= 0 && change(j.all[at])
}

// add keeps a new job, and forgets the oldest that is done. It is false when too many are under way.
func (j *jobs) add(added *job) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.underWayLocked()) >= underWayJobs {
		return false
	}
	if len(j.all) == keptJobs {
		at := slices.IndexFunc(j.all, func(one *job) bool { return !one.UnderWay() })
		j.all = slices.Delete(j.all, at, at+1)
	}
	j.all = append(j.all, added)
	return true
}

// plan starts to make a plan in the background. It is false when too many are under way.
func (s *Server) plan(actor string, p deadletter.Planning) (string, bool) {
	ctx, cancel := s.background()
	h := deadletter.PlanHeader{ID: rand.Text()[:12], CreatedAt: time.Now().UTC(), CreatedBy: actor}
	j := &job{Plan: deadletter.Plan{PlanHeader: h}, Stage: planning, cancel: cancel}
	if !s.jobs.add(j) {
		cancel()
		return "", false
	}
	p.Most = maxSteps
	p.Progress = func(seen int) { s.jobs.update(h.ID, func(j *job) bool { j.Seen = seen; return true }) }
	s.work.Go(func() {
		defer cancel()
		plan, summary, err := s.options.Reviewer.Plan(ctx, h, p)
		s.jobs.update(h.ID, func(j *job) bool {
			j.Plan, j.Planned, j.Stage = plan, summary, planned
			if err != nil {
				j.Stage, j.Err = failed, s.explain(err)
			}
			return true
		})
	})
	return h.ID, true
}

// apply starts to apply a plan in the background, when its turn comes. It is false for a plan that cannot be applied now.
func (s *Server) apply(id string, c deadletter.Command, pace deadletter.Pace) bool {
	ctx, cancel := s.background()
	var plan deadletter.Plan
	started := s.jobs.update(id, func(j *job) bool {
		if j.Stage != planned && j.Stage != applied {
			return false
		}
		j.Stage, j.Actor, j.Why, j.Rate, j.cancel, j.Notes, j.Err = waiting, c.Actor, c.Why, pace.Rate, cancel, nil, ""
		j.Summary, plan = deadletter.Summary{Steps: len(j.Steps)}, j.Plan
		return true
	})
	if !started {
		cancel()
		return false
	}
	s.work.Go(func() {
		defer cancel()
		summary, err := s.applyPlanned(ctx, plan, c, pace)
		s.jobs.update(id, func(j *job) bool {
			j.Stage, j.Summary = applied, summary
			if err != nil {
				j.Err = s.explain(err)
			}
			return true
		})
		s.scan.invalidate()
	})
	return true
}

// aDay is longer than anybody waits for a turn.
const aDay = 24 * time.Hour

func (s *Server) applyPlanned(ctx context.Context, plan deadletter.Plan, c deadletter.Command, pace deadletter.Pace) (deadletter.Summary, error) {
	a, err := s.options.Reviewer.Application(plan, c)
	if err != nil {
		return deadletter.Summary{}, err
	}
	if !s.jobs.take(ctx, aDay) {
		return deadletter.Summary{Steps: len(a.Steps), Stopped: "it was interrupted before its turn came"}, nil
	}
	defer s.jobs.release()
	a.Pace = pace
	a.Progress = func(p deadletter.Summary) { s.jobs.update(plan.ID, func(j *job) bool { j.Summary = p; return true }) }
	a.Outcome = func(out deadletter.Outcome) { s.jobs.update(plan.ID, func(j *job) bool { j.note(out); return true }) }
	s.jobs.update(plan.ID, func(j *job) bool { j.Stage = applying; return true })
	return s.options.Reviewer.Apply(ctx, a)
}

// note keeps the outcome of a message that was not done.
func (j *job) note(out deadletter.Outcome) {
	if !out.Result.Removed() && out.Result != deadletter.Absent && len(j.Notes) < keptNotes {
		j.Notes = append(j.Notes, out)
	}
}
