package page

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// outcomePage says what came of an action.
type outcomePage struct {
	Outcome deadletter.Outcome
	Why     string
	// Next is the next letter, and zero when there is none.
	Next int64
}

// keptOutcomes is how many outcomes can be shown again.
const keptOutcomes = 200

// outcomes keeps the newest outcomes, so that loading their page again does nothing again. The zero value is ready.
type outcomes struct {
	mu    sync.Mutex
	pages map[string]outcomePage // guarded by mu
	order []string               // guarded by mu; the oldest first
}

func (o *outcomes) keep(p outcomePage) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pages == nil {
		o.pages = map[string]outcomePage{}
	}
	id := rand.Text()
	o.pages[id] = p
	o.order = append(o.order, id)
	if len(o.order) > keptOutcomes {
		delete(o.pages, o.order[0])
		o.order = o.order[1:]
	}
	return id
}

func (o *outcomes) get(id string) (outcomePage, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.pages[id]
	return p, ok
}

func (s *Server) outcome(w http.ResponseWriter, r *http.Request) {
	p, ok := s.outcomes.get(r.PathValue("id"))
	if !ok {
		s.fail(w, r, http.StatusNotFound, "This outcome is not kept any more. The history has it.")
		return
	}
	s.render(w, r, http.StatusOK, "outcome", frame{Title: "Outcome", Section: "letters", Page: p})
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
