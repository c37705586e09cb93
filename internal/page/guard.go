package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// guard decides whether a request may be served at all.
type guard struct {
	hosts  []string
	write  bool
	header string
	local  string // the actor when no proxy says so
	secret []byte
}

// refusal says why not.
type refusal struct {
	status int
	text   string
}

func newGuard(o Options) (guard, error) {
	if len(o.Hosts) == 0 {
		return guard{}, errors.New("page: give the host names under which the page may be asked for")
	}
	if o.Write && o.Actor == "" && o.IdentityHeader == "" {
		return guard{}, errors.New("page: say who acts, or name the header in which a proxy does")
	}
	g := guard{write: o.Write, header: o.IdentityHeader, local: o.Actor, secret: make([]byte, 32)}
	for _, h := range o.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	_, _ = rand.Read(g.secret) // never fails
	return g, nil
}

// check is asked of every request.
func (g guard) check(r *http.Request) *refusal {
	if !slices.Contains(g.hosts, strings.ToLower(r.Host)) {
		return &refusal{http.StatusMisdirectedRequest, "This page is not served under the name in the address bar."}
	}
	if _, ok := g.actor(r); !ok {
		return &refusal{http.StatusUnauthorized, "The proxy in front does not say who you are."}
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
func (g guard) checkPost(r *http.Request) *refusal {
	if !g.write {
		return &refusal{http.StatusForbidden, "This page was started for looking only. Start it with --write to act."}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return &refusal{http.StatusForbidden, "This came from another site."}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return &refusal{http.StatusForbidden, "This came from another site."}
		}
	}
	// A form of this page is short.
	r.Body = http.MaxBytesReader(nil, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		return &refusal{http.StatusBadRequest, "The form cannot be read."}
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil || subtle.ConstantTimeCompare([]byte(g.sign(cookie.Value)), []byte(r.PostForm.Get("token"))) != 1 {
		return &refusal{http.StatusForbidden, "The form is out of date. Load its page again."}
	}
	return nil
}

// maxActor bounds a name from a header, in characters.
const maxActor = 200

// actor returns who asks, and whether that is known.
func (g guard) actor(r *http.Request) (string, bool) {
	if g.header == "" {
		return g.local, true
	}
	name := strings.TrimSpace(r.Header.Get(g.header))
	return deadletter.Clip(name, maxActor), name != ""
}

const cookieName = "orderworker-review"

// token returns what a form must send back. It belongs to the browser's session, which it starts when there is none.
func (g guard) token(w http.ResponseWriter, r *http.Request) string {
	if cookie, err := r.Cookie(cookieName); err == nil && len(cookie.Value) == len(rand.Text()) {
		return g.sign(cookie.Value)
	}
	session := rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.header != "",
	})
	return g.sign(session)
}

func (g guard) sign(session string) string {
	mac := hmac.New(sha256.New, g.secret)
	mac.Write([]byte(session))
	return hex.EncodeToString(mac.Sum(nil))
}
