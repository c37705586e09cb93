package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// maxSteps bounds a plan that is made here. A longer one is made with the command.
const maxSteps = 100_000

// keptJobs is how many plans are kept with what came of them.
const keptJobs = 5

// keptNotes is how many outcomes of a plan are shown one by one.
const keptNotes = 100

// A job is a plan: it is made, looked at, applied, and looked at again.
type job struct {
	ID      string
	Header  deadletter.PlanHeader
	Verdict deadletter.Kind
	Reason  string
	Action  deadletter.Action

	// The fields below are guarded by the mutex of jobs.
	Stage    stage
	Seen     int
	Plan     deadletter.PlanSummary
	Progress deadletter.Progress
	Summary  deadletter.Summary
	Notes    []deadletter.Outcome // of letters that were not done
	Err      string
	Why      string
	Rate     float64
	Began    time.Time
	file     []byte
	cancel   context.CancelFunc
}

type stage string

const (
	planning stage = "planning"
	planned  stage = "planned"
	applying stage = "applying"
	applied  stage = "applied"
	failed   stage = "failed"
)

// jobs holds the jobs and the turn that one action or job has at a time. The zero value is ready.
type jobs struct {
	mu      sync.Mutex
	busy    bool            // guarded by mu
	current *job            // guarded by mu; the job whose turn it is, nil for an action
	all     map[string]*job // guarded by mu
	order   []string        // guarded by mu; the oldest first
}

// take takes the turn. It is false while something else is under way.
func (j *jobs) take() (release func(), ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.busy {
		return nil, false
	}
	j.busy = true
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.busy, j.current = false, nil
	}, true
}

// running returns the job that is under way, as it is now, or nil.
func (j *jobs) running() *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current == nil {
		return nil
	}
	c := *j.current
	return &c
}

// get returns a job as it is now.
func (j *jobs) get(id string) (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if found := j.all[id]; found != nil {
		c := *found
		c.Notes = append([]deadletter.Outcome(nil), found.Notes...)
		return c, true
	}
	return job{}, false
}

// update changes a job.
func (j *jobs) update(id string, change func(*job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if found := j.all[id]; found != nil {
		change(found)
	}
}

// begin makes a job the one whose turn it is, and keeps it.
func (j *jobs) begin(added *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all == nil {
		j.all = map[string]*job{}
	}
	j.current = added
	if j.all[added.ID] != nil {
		return
	}
	j.all[added.ID] = added
	j.order = append(j.order, added.ID)
	if len(j.order) > keptJobs {
		delete(j.all, j.order[0])
		j.order = j.order[1:]
	}
}

// plan starts to make a plan in the background. It is false while something else is under way.
func (s *Server) plan(actor string, verdict deadletter.Kind, p deadletter.Planning) (string, bool) {
	release, ok := s.jobs.take()
	if !ok {
		return "", false
	}
	ctx, cancel := s.background()
	j := &job{ID: rand.Text()[:12], Verdict: verdict, Action: p.Action, Stage: planning, Began: time.Now(), cancel: cancel}
	if len(p.Filter.Reasons) > 0 {
		j.Reason = p.Filter.Reasons[0]
	}
	j.Header = deadletter.PlanHeader{
		ID: j.ID, Queue: s.options.Reviewer.Settings().Queue, CreatedAt: time.Now().UTC(), CreatedBy: actor, Acknowledged: p.Choice.Acknowledged,
	}
	s.jobs.begin(j)
	p.Progress = func(seen int) { s.jobs.update(j.ID, func(j *job) { j.Seen = seen }) }
	s.work.Go(func() {
		defer release()
		defer cancel()
		summary, file, err := s.makeFile(ctx, j.Header, p)
		s.jobs.update(j.ID, func(j *job) {
			j.Plan, j.file, j.Stage = summary, file, planned
			if err != nil {
				j.Stage, j.Err = failed, s.explain(err)
			}
		})
	})
	return j.ID, true
}

// makeFile makes the plan as a file, which is smaller than its steps and can be handed out.
func (s *Server) makeFile(ctx context.Context, h deadletter.PlanHeader, p deadletter.Planning) (deadletter.PlanSummary, []byte, error) {
	var file bytes.Buffer
	p.Most = maxSteps
	summary, err := s.options.Reviewer.Plan(ctx, h, p, &file)
	return summary, file.Bytes(), err
}

// apply starts to apply a plan in the background. It is false while something else is under way.
func (s *Server) apply(j job, o deadletter.Command, pace deadletter.Pace) bool {
	release, ok := s.jobs.take()
	if !ok {
		return false
	}
	ctx, cancel := s.background()
	started := false
	s.jobs.update(j.ID, func(j *job) {
		if started = j.Stage == planned || j.Stage == applied; started {
			j.Stage, j.Why, j.Rate, j.Began, j.cancel, j.Notes, j.Err = applying, o.Why, pace.Rate, time.Now(), cancel, nil, ""
			j.Progress = deadletter.Progress{Steps: j.Plan.Steps}
			s.jobs.current = j
		}
	})
	if !started {
		cancel()
		release()
		return false
	}
	s.work.Go(func() {
		defer release()
		defer cancel()
		var summary deadletter.Summary
		_, steps, err := deadletter.ReadPlan(bytes.NewReader(j.file))
		if err == nil {
			summary, err = s.options.Reviewer.Apply(ctx, deadletter.Application{
				Command: o, Steps: steps, Pace: pace,
				Progress: func(p deadletter.Progress) { s.jobs.update(j.ID, func(j *job) { j.Progress = p }) },
				Outcome:  func(out deadletter.Outcome) { s.jobs.update(j.ID, func(j *job) { j.note(out) }) },
			})
		}
		s.jobs.update(j.ID, func(j *job) {
			j.Stage, j.Summary = applied, summary
			if err != nil {
				j.Err = s.explain(err)
			}
		})
		s.scan.invalidate()
	})
	return true
}

// note keeps the outcome of a letter that was not done.
func (j *job) note(out deadletter.Outcome) {
	if !out.Result.Removed() && out.Result != deadletter.Absent && len(j.Notes) < keptNotes {
		j.Notes = append(j.Notes, out)
	}
}
