package page

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// actPatience is how long a person waits for other work that locks dead-lettered messages, and for a lock that another
// program holds.
const actPatience = 8 * time.Second

// actTime bounds one action. It is finished, also when the browser goes away.
const actTime = time.Minute

func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	n, ok := s.sequence(w, r)
	if !ok {
		return
	}
	c, ok := s.command(w, r, r.PathValue("action"))
	if !ok {
		return
	}
	c.Expect = deadletter.Kind(r.PostForm.Get("verdict"))
	ctx, cancel := s.background()
	defer cancel()
	ctx, cancelTime := context.WithTimeout(ctx, actTime)
	defer cancelTime()
	if !s.jobs.take(ctx, actPatience) {
		s.fail(w, r, http.StatusConflict, "A plan is being applied, and it locks the messages that this needs. Nothing was done. Do it again when the plan is done.")
		return
	}
	defer s.jobs.release()
	c.Patience = actPatience
	got, err := s.options.Reviewer.Act(ctx, c, n)
	s.scan.invalidate()
	if err != nil && got.Result == "" {
		s.fail(w, r, http.StatusBadGateway, "It was not done: "+s.explain(err))
		return
	}
	http.Redirect(w, r, "/outcomes/"+s.outcomes.keep(outcomePage{Outcome: got, Next: s.next(ctx, n), Why: c.Why}), http.StatusSeeOther)
}

// explain is what an error means for people.
func (s *Server) explain(err error) string {
	if errors.Is(err, context.Canceled) {
		return "it was interrupted"
	}
	return s.options.Explain(err).Error()
}

// choice reads the two boxes that a form may have.
func choice(r *http.Request) deadletter.Choice {
	return deadletter.Choice{Acknowledged: r.PostForm.Get("acknowledged") == "yes", UnknownProgram: r.PostForm.Get("unknown") == "yes"}
}

// command reads the part that the forms of all actions have.
func (s *Server) command(w http.ResponseWriter, r *http.Request, action string) (deadletter.Command, bool) {
	a, known := deadletter.ParseAction(action)
	c := deadletter.Command{Action: a, Why: deadletter.Clip(r.PostForm.Get("why"), deadletter.MaxWhy), Choice: choice(r)}
	c.Actor, _ = s.guard.actor(r)
	switch {
	case !known:
		s.fail(w, r, http.StatusNotFound, "There is no such action.")
		return c, false
	case strings.TrimSpace(c.Why) == "":
		s.fail(w, r, http.StatusBadRequest, "Say why this is done: go back and fill in the reason.")
		return c, false
	}
	var err error
	if c.Choice.NewTTL, err = deadletter.ParseTTL(r.PostForm.Get("ttl")); err != nil {
		s.fail(w, r, http.StatusBadRequest, "A time to live is written like 24h or P1D.")
		return c, false
	}
	return c, true
}
