package page

import (
	"net/http"
	"strconv"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func (s *Server) makePlan(w http.ResponseWriter, r *http.Request) {
	f, kind, ok := selection(r.PostForm)
	if !ok {
		s.fail(w, r, http.StatusBadRequest, "There is no such selection.")
		return
	}
	p := deadletter.Planning{Filter: f}
	if text := r.PostForm.Get("action"); text != "" {
		if p.Action, ok = deadletter.ParseAction(text); !ok {
			s.fail(w, r, http.StatusBadRequest, "There is no such action.")
			return
		}
	}
	actor, _ := s.guard.actor(r)
	id, ok := s.plan(actor, kind, p)
	if !ok {
		s.fail(w, r, http.StatusConflict, "Something else is under way. Wait until it is done.")
		return
	}
	http.Redirect(w, r, "/jobs/"+id, http.StatusSeeOther)
}

// jobPage is a plan at any stage.
type jobPage struct {
	Job     job
	Counts  []countRow
	Percent int
	Busy    bool
}

type countRow struct {
	Result deadletter.Result
	Count  int
}

// resultOrder is the order in which outcomes are counted for people.
func resultOrder() []deadletter.Result {
	return []deadletter.Result{
		deadletter.Applied, deadletter.Duplicate, deadletter.Resubmitted, deadletter.Discarded, deadletter.Absent, deadletter.Skipped,
		deadletter.Refused, deadletter.Rejected, deadletter.Locked, deadletter.Uncertain, deadletter.Broken,
	}
}

func countRows(counts map[deadletter.Result]int) []countRow {
	var out []countRow
	for _, r := range resultOrder() {
		if counts[r] > 0 {
			out = append(out, countRow{r, counts[r]})
		}
	}
	return out
}

func (s *Server) job(w http.ResponseWriter, r *http.Request) {
	j, ok := s.findJob(w, r)
	if !ok {
		return
	}
	p := jobPage{Job: j, Counts: countRows(j.Progress.Counts)}
	fr := frame{Title: "Plan " + j.ID, Section: "letters", Page: p}
	name := "plan"
	switch j.Stage {
	case planning:
		fr.Refresh = 2
	case applying, applied:
		name = "job"
		if j.Stage == applying {
			fr.Refresh = 2
		} else {
			p.Counts = countRows(j.Summary.Counts)
		}
		if j.Progress.Steps > 0 {
			p.Percent = 100 * j.Progress.Settled / j.Progress.Steps
		}
	}
	fr.Page = p
	s.render(w, r, http.StatusOK, name, fr)
}

func (s *Server) findJob(w http.ResponseWriter, r *http.Request) (job, bool) {
	j, ok := s.jobs.get(r.PathValue("id"))
	if !ok {
		s.fail(w, r, http.StatusNotFound, "This plan is not kept any more. The history has what was done.")
	}
	return j, ok
}

// planFile hands out the plan for the apply command.
func (s *Server) planFile(w http.ResponseWriter, r *http.Request) {
	j, ok := s.findJob(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="plan-`+j.ID+`.jsonl"`)
	_, _ = w.Write(j.file) // the browser may be gone
}

// The bounds of the rate that the form takes.
const (
	minRate = 0.1
	maxRate = 1000
)

func (s *Server) applyPlan(w http.ResponseWriter, r *http.Request) {
	j, ok := s.findJob(w, r)
	if !ok {
		return
	}
	// The action of each letter is that of its step.
	o, ok := s.order(w, r, string(deadletter.Reprocess))
	if !ok {
		return
	}
	o.Action, o.Plan, o.Choice.Acknowledged = "", j.Header.ID, j.Header.Acknowledged
	pace := s.options.Pace
	rate, err := strconv.ParseFloat(r.PostForm.Get("rate"), 64)
	if err != nil || !(rate >= minRate && rate <= maxRate) { // nor what is no number
		s.fail(w, r, http.StatusBadRequest, "The rate is a number a second, from 0.1 to "+strconv.Itoa(maxRate)+".")
		return
	}
	pace.Rate = rate
	if r.PostForm.Get("confirm") != "yes" {
		s.fail(w, r, http.StatusBadRequest, "Confirm the number of dead letters: go back and tick the box.")
		return
	}
	if !s.apply(j, o, pace) {
		s.fail(w, r, http.StatusConflict, "Something else is under way, or this plan cannot be applied.")
		return
	}
	http.Redirect(w, r, "/jobs/"+j.ID, http.StatusSeeOther)
}

func (s *Server) stopJob(w http.ResponseWriter, r *http.Request) {
	j, ok := s.findJob(w, r)
	if !ok {
		return
	}
	if j.cancel != nil {
		j.cancel()
	}
	http.Redirect(w, r, "/jobs/"+j.ID, http.StatusSeeOther)
}
