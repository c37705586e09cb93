package page

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// Options configure a [Server]. The zero value of a field means its default.
type Options struct {
	Reviewer *deadletter.Reviewer
	Ledger   deadletter.Ledger
	// Hosts are the host names, with ports, under which the page may be asked for. A browser that was led here under
	// another name is turned away, whatever address that name points to.
	Hosts []string
	// Write allows actions. Defaults to looking only.
	Write bool
	// Actor is who acts, when no proxy says so.
	Actor string
	// IdentityHeader names the header in which a proxy in front says who is asking, such as X-MS-CLIENT-PRINCIPAL-NAME. A
	// request without it is refused. Set it only when every request passes the proxy and the proxy removes the header from
	// what it receives. Defaults to none.
	IdentityHeader string
	// Announce is called with the path under which the next browser is let in, by New and whenever the one before was used.
	// Anyone who can read it can act. Needed with Write and without IdentityHeader.
	Announce func(path string)
	// Explain turns an error into a sentence for people. Defaults to the text of the error.
	Explain func(error) error
	// Pace is how fast a plan is applied, where the form does not say.
	Pace deadletter.Pace
}

//go:embed templates/*.html assets/*
var files embed.FS

// Server serves the page. Make one with [New].
type Server struct {
	options   Options
	guard     *guard
	templates map[string]*template.Template
	mux       *http.ServeMux
	scan      scanner
	jobs      jobs
	outcomes  outcomes

	// closed is closed by Close, which then waits for work.
	closed chan struct{}
	work   sync.WaitGroup
}

// New returns a server. Close must be called.
func New(o Options) (*Server, error) {
	g, err := newGuard(o)
	if err != nil {
		return nil, err
	}
	if o.Explain == nil {
		o.Explain = func(err error) error { return err }
	}
	s := &Server{options: o, guard: g, templates: map[string]*template.Template{}, mux: http.NewServeMux(), closed: make(chan struct{})}
	s.jobs.turn = make(chan struct{}, 1)
	for _, name := range []string{"list", "message", "outcome", "plan", "job", "history", "error", "counts"} {
		t, err := template.New(name).Funcs(functions()).ParseFS(files, "templates/layout.html", "templates/overview.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		s.templates[name] = t
	}
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	s.mux.HandleFunc("GET /{$}", s.list)
	s.mux.HandleFunc("GET "+entryPath, s.enter)
	s.mux.HandleFunc("GET /overview", s.overview)
	s.mux.HandleFunc("GET /messages.csv", s.csv)
	s.mux.HandleFunc("GET /messages/{sequence}", s.message)
	s.mux.HandleFunc("GET /messages/{sequence}/export", s.export)
	s.mux.HandleFunc("GET /messages/{sequence}/body", s.body)
	s.mux.HandleFunc("POST /messages/{sequence}/{action}", s.act)
	s.mux.HandleFunc("GET /outcomes/{id}", s.outcome)
	s.mux.HandleFunc("POST /plans", s.makePlan)
	s.mux.HandleFunc("GET /jobs/{id}", s.job)
	s.mux.HandleFunc("GET /jobs/{id}/plan.jsonl", s.planFile)
	s.mux.HandleFunc("GET /jobs/{id}/discarded.jsonl", s.discards)
	s.mux.HandleFunc("POST /jobs/{id}/apply", s.applyPlan)
	s.mux.HandleFunc("POST /jobs/{id}/stop", s.stopJob)
	s.mux.HandleFunc("GET /history", s.history)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	s.mux.Handle("GET /assets/", http.FileServerFS(files))
}

// Close stops what is under way, waits for it, and leaves no lock behind.
func (s *Server) Close() {
	close(s.closed)
	s.work.Wait()
}

// background returns a context for work that outlives its request. It ends with Close, or with its cancel function, which
// must be called.
func (s *Server) background() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	s.work.Go(func() {
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// ServeHTTP checks who asks and for what, before anything else looks at the request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if refusal := s.guard.check(r); refusal != nil {
		s.fail(w, r, refusal.status, refusal.text)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// setHeaders allows the browser as little as the page needs: its own style, script and forms.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: a browser would then hide the origin of a form, which the guard looks at.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// frame is what every page has.
type frame struct {
	Title   string
	Queue   string
	Section string
	Write   bool
	Actor   string
	Token   string
	Now     time.Time
	Page    any
}

// render writes a page. Nothing is sent before all of it could be made.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, name string, f frame) {
	f.Queue, f.Write, f.Now = s.options.Reviewer.Settings().Queue, s.options.Write, time.Now()
	f.Actor, _ = s.guard.actor(r)
	f.Token = s.guard.token(w, r)
	var b bytes.Buffer
	if err := s.templates[name].ExecuteTemplate(&b, "layout", f); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the browser may be gone
}

// fail writes a page that says what went wrong.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	titles := map[int]string{http.StatusNotFound: "Not found", http.StatusForbidden: "Not allowed", http.StatusConflict: "Not now"}
	s.render(w, r, status, "error", frame{Title: cmp.Or(titles[status], "It did not work"), Page: deadletter.Visible(text)})
}
