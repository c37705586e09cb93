package page

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// makePlan plans for the messages that were ticked, or for all that are selected, as the plan command does.
func (s *Server) makePlan(w http.ResponseWriter, r *http.Request) {
	_, f, ok := s.selected(w, r, r.PostForm)
	if !ok {
		return
	}
	f.FirstSequence = 0
	if r.PostForm.Get("scope") == "ticked" {
		for _, text := range r.PostForm["sequence"] {
			n, err := strconv.ParseInt(text, 10, 64)
			ok = ok && err == nil
			f.Sequences = append(f.Sequences, n)
		}
		if !ok || len(f.Sequences) == 0 {
			s.fail(w, r, http.StatusBadRequest, "No message is ticked. Go back and tick those that are meant, or choose all that are found.")
			return
		}
		f = deadletter.Filter{Sequences: f.Sequences, FirstSequence: slices.Min(f.Sequences), LastSequence: slices.Max(f.Sequences)}
	}
	p := deadletter.Planning{Filter: f, Choice: choice(r)}
	if text := r.PostForm.Get("action"); text != "" {
		if p.Action, ok = deadletter.ParseAction(text); !ok {
			s.fail(w, r, http.StatusBadRequest, "There is no such action.")
			return
		}
	}
	actor, _ := s.guard.actor(r)
	id, ok := s.plan(actor, p)
	if !ok {
		s.fail(w, r, http.StatusConflict, "Too many plans are under way. Wait until one of them is done.")
		return
	}
	http.Redirect(w, r, "/jobs/"+id, http.StatusSeeOther)
}

func (s *Server) job(w http.ResponseWriter, r *http.Request) {
	j, ok := s.findJob(w, r)
	if !ok {
		return
	}
	name := "plan"
	if j.Stage == waiting || j.Stage == applying || j.Stage == applied {
		name = "job"
	}
	s.render(w, r, http.StatusOK, name, frame{Title: "Plan " + j.ID, Section: "messages", Page: j})
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
	attach(w, "application/x-ndjson", "plan-"+j.ID+".jsonl")
	_ = j.Plan.Write(w) // the browser may be gone
}

// Discards reports whether the plan discards anything.
func (j job) Discards() bool {
	return slices.ContainsFunc(j.Steps, func(s deadletter.PlanStep) bool { return s.Action == deadletter.Discard })
}

// discards hands out the messages that a plan discards, as far as they are still there.
func (s *Server) discards(w http.ResponseWriter, r *http.Request) {
	j, ok := s.findJob(w, r)
	if !ok || len(j.Steps) == 0 {
		return
	}
	wanted := map[int64]bool{}
	for _, step := range j.Steps {
		wanted[step.Sequence] = step.Action == deadletter.Discard
	}
	attach(w, "application/x-ndjson", "discarded-"+j.ID+".jsonl")
	for messages, err := range s.options.Reviewer.Pages(r.Context(), j.Steps[0].Sequence, j.Steps[len(j.Steps)-1].Sequence) {
		for _, l := range messages {
			var line []byte
			if wanted[l.Sequence] && err == nil {
				line, err = deadletter.ExportLine(l)
				_, _ = w.Write(append(line, '\n'))
			}
		}
		if err != nil {
			_, _ = fmt.Fprintln(w, "The download broke off here: "+s.explain(err)) // which import refuses
			return
		}
	}
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
	// The action of each message is that of its step.
	c, ok := s.command(w, r, string(deadletter.Reprocess))
	if !ok {
		return
	}
	pace := s.options.Pace
	rate, err := strconv.ParseFloat(r.PostForm.Get("rate"), 64)
	if err != nil || !(rate >= minRate && rate <= maxRate) { // nor what is no number
		s.fail(w, r, http.StatusBadRequest, "The rate is a number a second, from 0.1 to "+strconv.Itoa(maxRate)+".")
		return
	}
	pace.Rate = rate
	if r.PostForm.Get("confirm") != "yes" {
		s.fail(w, r, http.StatusBadRequest, "Confirm the number of messages: go back and tick the box.")
		return
	}
	if !s.apply(j.ID, c, pace) {
		s.fail(w, r, http.StatusConflict, "This plan is under way already, or cannot be applied.")
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
