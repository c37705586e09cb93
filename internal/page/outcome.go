package page

import (
	"crypto/rand"
	"net/http"
	"slices"
	"sync"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// outcomePage says what came of an action.
type outcomePage struct {
	ID      string
	Outcome deadletter.Outcome
	Why     string
	// Next is the next message, and zero when there is none.
	Next int64
}

// keptOutcomes is how many outcomes can be shown again.
const keptOutcomes = 200

// outcomes keeps the newest outcomes, so that loading their page again does nothing again. The zero value is ready.
type outcomes struct {
	mu    sync.Mutex
	pages []outcomePage // guarded by mu; the oldest first
}

func (o *outcomes) keep(p outcomePage) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.ID = rand.Text()
	o.pages = append(o.pages[max(0, len(o.pages)-keptOutcomes+1):], p)
	return p.ID
}

func (s *Server) outcome(w http.ResponseWriter, r *http.Request) {
	s.outcomes.mu.Lock()
	pages := slices.Clone(s.outcomes.pages)
	s.outcomes.mu.Unlock()
	at := slices.IndexFunc(pages, func(p outcomePage) bool { return p.ID == r.PathValue("id") })
	if at < 0 {
		s.fail(w, r, http.StatusNotFound, "This outcome is not kept any more. The history has it.")
		return
	}
	s.render(w, r, http.StatusOK, "outcome", frame{Title: "Outcome", Section: "messages", Page: pages[at]})
}
