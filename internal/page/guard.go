package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// guard decides whether a request may be served at all.
type guard struct {
	hosts  []string
	write  bool
	header string
	local  string // the actor when no proxy says so
	secret []byte
	cookie string
	// announce tells how the next browser is let in; nil lets in every browser.
	announce func(path string)
	mu       sync.Mutex
	key      string // guarded by mu; opens entryPath once
}

// refusal says why not.
type refusal struct {
	status int
	text   string
}

func newGuard(o Options) (*guard, error) {
	switch {
	case len(o.Hosts) == 0:
		return nil, errors.New("page: give the host names under which the page may be asked for")
	case o.Write && o.Actor == "" && o.IdentityHeader == "":
		return nil, errors.New("page: say who acts, or name the header in which a proxy does")
	case o.Write && o.IdentityHeader == "" && o.Announce == nil:
		return nil, errors.New("page: without a proxy that signs people in, the address that lets a browser in must be announced")
	}
	g := &guard{write: o.Write, header: o.IdentityHeader, local: o.Actor, secret: make([]byte, 32)}
	for _, h := range o.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	// Ports share cookies, and a second page for another queue must not take the cookie of the first.
	g.cookie = "orderworker-review" + o.Hosts[0][strings.LastIndex(o.Hosts[0], ":")+1:]
	_, _ = rand.Read(g.secret) // never fails
	if o.Write && o.IdentityHeader == "" {
		g.announce = o.Announce
		g.renewKey()
	}
	return g, nil
}

// check is asked of every request.
func (g *guard) check(r *http.Request) *refusal {
	if !slices.Contains(g.hosts, strings.ToLower(r.Host)) {
		return &refusal{http.StatusMisdirectedRequest, "This page is not served under the name in the address bar."}
	}
	if _, ok := g.actor(r); !ok {
		return &refusal{http.StatusUnauthorized, "The proxy in front does not say who you are."}
	}
	// The style and the script say nothing of messages.
	if g.announce != nil && g.session(r) == "" && r.URL.Path != entryPath && !strings.HasPrefix(r.URL.Path, "/assets/") {
		return &refusal{http.StatusForbidden, "This browser was not let in. Open the address that serve has printed last; it works once."}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return nil
	case http.MethodPost:
		return g.checkPost(r)
	}
	return &refusal{http.StatusMethodNotAllowed, "This page takes no such request."}
}

// checkPost lets only a form of this very page through.
func (g *guard) checkPost(r *http.Request) *refusal {
	if !g.write {
		return &refusal{http.StatusForbidden, "This page was started for looking only. Start it with --write to act."}
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return &refusal{http.StatusForbidden, "This came from another site."}
	}
	// A form of this page is short.
	r.Body = http.MaxBytesReader(nil, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		return &refusal{http.StatusBadRequest, "The form cannot be read."}
	}
	session := g.session(r)
	if session == "" || !equal(g.sign("form", session), r.PostForm.Get("token")) {
		return &refusal{http.StatusForbidden, "The form is out of date. Load its page again."}
	}
	return nil
}

// maxActor bounds a name from a header, in characters.
const maxActor = 200

// actor returns who asks, and whether that is known.
func (g *guard) actor(r *http.Request) (string, bool) {
	if g.header == "" {
		return g.local, true
	}
	name := strings.TrimSpace(r.Header.Get(g.header))
	return deadletter.Clip(name, maxActor), name != ""
}

// session returns the session of a browser, empty when it has none of this server.
func (g *guard) session(r *http.Request) string {
	cookie, err := r.Cookie(g.cookie)
	if err != nil {
		return ""
	}
	session, signature, _ := strings.Cut(cookie.Value, ".")
	if !equal(g.sign("session", session), signature) {
		return ""
	}
	return session
}

func (g *guard) begin(w http.ResponseWriter) string {
	session := rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie, Value: session + "." + g.sign("session", session), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.header != "",
	})
	return session
}

// token returns what a form must send back. It belongs to the browser's session, which it begins when anybody may have one.
func (g *guard) token(w http.ResponseWriter, r *http.Request) string {
	session := g.session(r)
	switch {
	case session == "" && g.announce != nil:
		return ""
	case session == "":
		session = g.begin(w)
	}
	return g.sign("form", session)
}

func (g *guard) sign(purpose, session string) string {
	mac := hmac.New(sha256.New, g.secret)
	mac.Write([]byte(purpose + " " + session))
	return hex.EncodeToString(mac.Sum(nil))
}

func equal(want, got string) bool { return subtle.ConstantTimeCompare([]byte(want), []byte(got)) == 1 }

const entryPath = "/enter"

func (g *guard) renewKey() {
	g.key = rand.Text()
	g.announce(entryPath + "?key=" + g.key)
}

// enter lets a browser in that has the address of the terminal, which is used up by that. Prefetching and link previews that
// say so do not use it up.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	g := s.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.announce != nil && g.session(r) == "" {
		if r.Method != http.MethodGet || r.Header.Get("Sec-Purpose") != "" || !equal(g.key, r.URL.Query().Get("key")) {
			s.fail(w, r, http.StatusForbidden, "This address was used already, or is not the one that serve has printed last. Each works once.")
			return
		}
		g.begin(w)
		g.renewKey()
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
