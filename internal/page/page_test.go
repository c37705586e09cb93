package page_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"html"
	"io"
	"iter"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/internal/page"
)

// visitor is a browser without a screen: it keeps cookies and follows redirects.
type visitor struct {
	t      *testing.T
	w      *world
	client *http.Client
}

// visit lets a browser in, as the address on the terminal does.
func (w *world) visit() *visitor {
	v := w.stranger()
	if path := w.key(); path != "" {
		status, body := v.get(path)
		require.Equal(w.t, http.StatusOK, status, body)
	}
	return v
}

// stranger is a browser that nobody has let in.
func (w *world) stranger() *visitor {
	jar, err := cookiejar.New(nil)
	require.NoError(w.t, err)
	return &visitor{t: w.t, w: w, client: &http.Client{Jar: jar}}
}

func (v *visitor) get(path string) (int, string) {
	v.t.Helper()
	return v.do(http.MethodGet, path, nil, nil)
}

func (v *visitor) do(method, path string, form url.Values, change func(*http.Request)) (int, string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.w.site.URL+path, strings.NewReader(form.Encode()))
	require.NoError(v.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(req)
	}
	resp, err := v.client.Do(req)
	require.NoError(v.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(v.t, err)
	return resp.StatusCode, string(body)
}

var tokenField = regexp.MustCompile(`name="token" value="([0-9a-f]+)"`)

// token is what the forms of a page send.
func (v *visitor) token(path string) string {
	v.t.Helper()
	_, body := v.get(path)
	found := tokenField.FindStringSubmatch(body)
	require.NotNil(v.t, found, "no form at %s:\n%s", path, body)
	return found[1]
}

func TestTheListShowsGroupsAndMessages(t *testing.T) {
	w := start(t, nil)
	w.story()
	status, body := w.visit().get("/")
	require.Equal(t, http.StatusOK, status)
	for _, want := range []string{"never-applied", "already-applied", "conflict", "unreadable", "MaxDeliveryCountExceeded", `href="/messages/1"`, "oldest"} {
		require.Contains(t, body, want)
	}
	_, body = w.visit().get("/?verdict=conflict")
	require.Contains(t, body, `href="/messages/4"`)
	require.NotContains(t, body, `href="/messages/1"`)
	_, body = w.visit().get("/?reason=NotJSON")
	require.Contains(t, body, `href="/messages/5"`)
	require.NotContains(t, body, `href="/messages/4"`)
	require.Equal(t, 5, w.dead())
}

func TestAnEmptyQueueSaysSo(t *testing.T) {
	status, body := start(t, nil).visit().get("/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "There are none")
}

func TestALongListHasPages(t *testing.T) {
	w := start(t, nil)
	for range 120 {
		w.bury("X", message("same", `{"a":1}`, nil))
	}
	v, seen, path := w.visit(), 0, "/"
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	for path != "" {
		_, body := v.get(path)
		seen += strings.Count(body, `href="/messages/`)
		found := next.FindStringSubmatch(body)
		path = ""
		if found != nil {
			path = html.UnescapeString(found[1])
		}
	}
	require.Equal(t, 120, seen)
}

// ownScript is the one script that the page has.
const ownScript = `<script src="/assets/page.js" defer></script>`

func TestWhatMessagesCarryIsTextAndNothingElse(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	for _, path := range []string{"/", "/messages/5", "/?reason=" + url.QueryEscape(hostile), "/history?message-id=" + url.QueryEscape(hostile)} {
		_, body := v.get(path)
		body = strings.Replace(body, ownScript, "", 1)
		for _, never := range []string{"<script", "<img", "<iframe", "<svg"} {
			require.NotContains(t, body, never, path)
		}
		if !strings.Contains(path, "?") { // a field shows what was typed into it
			require.NotContains(t, body, "\x1b", path)
			require.NotContains(t, body, "\u202e", path)
		}
	}
	_, body := v.get("/messages/5")
	require.Contains(t, body, "&lt;script&gt;")
	require.Contains(t, body, `\u202e`)
}

func TestEveryAnswerAllowsTheBrowserAsLittleAsItNeeds(t *testing.T) {
	w := start(t, nil)
	for _, path := range []string{"/", "/assets/style.css", "/nosuch", "/messages/9"} {
		resp, err := http.Get(w.site.URL + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, resp.Header.Get("Content-Security-Policy"), "unsafe")
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "script-src 'self';")
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "DENY", resp.Header.Get("X-Frame-Options"))
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
		for _, c := range resp.Cookies() {
			require.True(t, c.HttpOnly && c.SameSite == http.SameSiteStrictMode)
		}
	}
}

func TestAnActionIsDoneRecordedAndNotRepeatedByLoadingAgain(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	form := url.Values{"token": {v.token("/messages/2")}, "verdict": {"never-applied"}, "why": {"ticket 7"}}
	status, body := v.do(http.MethodPost, "/messages/2/reprocess", form, nil)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "Done. The message is removed from the dead letters.")
	require.Equal(t, 4, w.dead())
	require.Equal(t, 1, w.mem.Creations("1003"))
	require.Equal(t, "2 reprocess intended by ann for ticket 7\n2 reprocess done by ann for ticket 7", w.ledger.said())
	_, body = v.get("/history")
	require.Contains(t, body, "ticket 7")
	_, body = v.get("/messages/2")
	require.Contains(t, body, "There is no dead-lettered message 2")
}

func TestAnActionThatMakesNoSenseIsRefused(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	token := v.token("/messages/1")
	for name, tt := range map[string]struct {
		path   string
		form   url.Values
		status int
		says   string
	}{
		"no reason":                     {"/messages/1/discard", url.Values{"verdict": {"already-applied"}, "why": {" "}}, 400, "Say why"},
		"no such action":                {"/messages/1/explode", url.Values{"why": {"x"}}, 404, "no such action"},
		"a message that is gone":        {"/messages/99/discard", url.Values{"why": {"x"}}, 200, "not among the dead letters any more"},
		"a verdict that has changed":    {"/messages/1/discard", url.Values{"verdict": {"never-applied"}, "why": {"x"}}, 200, "The message is where it was"},
		"a conflict is not reprocessed": {"/messages/4/reprocess", url.Values{"verdict": {"conflict"}, "why": {"x"}}, 200, "come straight back"},
		"a warning that was not read":   {"/messages/2/discard", url.Values{"verdict": {"never-applied"}, "why": {"x"}}, 200, "lost for good"},
		"a time to live that is none":   {"/messages/2/resubmit", url.Values{"verdict": {"never-applied"}, "why": {"x"}, "ttl": {"soon"}}, 400, "24h"},
	} {
		tt.form.Set("token", token)
		status, body := v.do(http.MethodPost, tt.path, tt.form, nil)
		require.Equal(t, tt.status, status, name)
		require.Contains(t, body, tt.says, name)
	}
	require.Equal(t, 5, w.dead())
}

func TestOnlyAFormOfThisPageCanAct(t *testing.T) {
	w := start(t, nil)
	w.story()
	for name, change := range map[string]func(v *visitor, form url.Values) func(*http.Request){
		"no token": func(_ *visitor, form url.Values) func(*http.Request) { form.Del("token"); return nil },
		"the token of another browser": func(_ *visitor, form url.Values) func(*http.Request) {
			form.Set("token", w.visit().token("/messages/1"))
			return nil
		},
		"no cookie": func(v *visitor, _ url.Values) func(*http.Request) { v.client.Jar = nil; return nil },
		"another origin": func(*visitor, url.Values) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("Origin", "http://evil.test") }
		},
		"no origin at all": func(*visitor, url.Values) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("Origin", "null") }
		},
		"another site": func(*visitor, url.Values) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
		},
		"another name for this address": func(*visitor, url.Values) func(*http.Request) {
			return func(r *http.Request) { r.Host = "rebound.test" }
		},
	} {
		v := w.visit()
		form := url.Values{"token": {v.token("/messages/1")}, "verdict": {"already-applied"}, "why": {"x"}}
		status, _ := v.do(http.MethodPost, "/messages/1/discard", form, change(v, form))
		require.GreaterOrEqual(t, status, 400, name)
	}
	require.Equal(t, 5, w.dead())
	require.Empty(t, w.ledger.entries)
}

func TestAnotherHostNameIsTurnedAwayBeforeAnythingIsShown(t *testing.T) {
	w := start(t, nil)
	w.story()
	status, body := w.visit().do(http.MethodGet, "/messages/2", nil, func(r *http.Request) { r.Host = "rebound.test" })
	require.Equal(t, http.StatusMisdirectedRequest, status)
	require.NotContains(t, body, "Grace")
}

func TestLookingOnly(t *testing.T) {
	w := start(t, func(o *page.Options) { o.Write = false })
	w.story()
	v := w.visit()
	for _, path := range []string{"/", "/messages/1", "/messages/2"} {
		_, body := v.get(path)
		require.NotContains(t, body, `method="post"`, path)
	}
	status, _ := v.do(http.MethodPost, "/messages/1/discard", url.Values{"why": {"x"}}, nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, 5, w.dead())
}

func TestTheProxyInFrontSaysWhoActs(t *testing.T) {
	w := start(t, func(o *page.Options) { o.IdentityHeader, o.Actor = "X-MS-CLIENT-PRINCIPAL-NAME", "" })
	w.story()
	v := w.visit()
	status, body := v.get("/messages/2")
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, body, "Grace")
	grace := func(r *http.Request) { r.Header.Set("X-MS-CLIENT-PRINCIPAL-NAME", "grace@example.org") }
	_, body = v.do(http.MethodGet, "/messages/2", nil, grace)
	require.Contains(t, body, "Acting as grace@example.org")
	found := tokenField.FindStringSubmatch(body)
	// The cookie is for secure connections alone, which this test has none of.
	secret := w.visit()
	resp, err := secret.client.Do(requestOf(t, w.site.URL+"/messages/2", grace))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.True(t, resp.Cookies()[0].Secure)
	require.NotNil(t, found)
	_, body = v.do(http.MethodGet, "/messages/2", nil, func(r *http.Request) { r.Header.Set("X-MS-CLIENT-PRINCIPAL-NAME", "a"+strings.Repeat("é", 300)) })
	require.Contains(t, body, "Acting as a"+strings.Repeat("é", 198)+"…", "a name is cut at a character")
}

func TestAnIdentityHeaderThatNobodyAskedForIsNobody(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	form := url.Values{"token": {v.token("/messages/1")}, "verdict": {"already-applied"}, "why": {"x"}}
	v.do(http.MethodPost, "/messages/1/discard", form, func(r *http.Request) { r.Header.Set("X-MS-CLIENT-PRINCIPAL-NAME", "mallory") })
	require.Contains(t, w.ledger.said(), "by ann for x")
	require.NotContains(t, w.ledger.said(), "mallory")
}

func requestOf(t *testing.T, address string, change func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	change(r)
	return r
}

func TestTheTableForASpreadsheetHoldsNoFormulas(t *testing.T) {
	w := start(t, nil)
	w.bury("=cmd()", message(`=HYPERLINK("http://evil")`, `{}`, nil), message("+1", `{}`, nil), message("plain", `{}`, nil))
	_, body := w.visit().get("/messages.csv")
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 4)
	require.Equal(t, []string{`'=HYPERLINK("http://evil")`, "'+1", "plain"}, []string{rows[1][1], rows[2][1], rows[3][1]})
	require.Equal(t, "'=cmd()", rows[1][3])
}

func TestAMessageCanBeExported(t *testing.T) {
	w := start(t, nil)
	w.story()
	status, body := w.visit().get("/messages/2/export")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"message_id":"1003"`)
	require.Contains(t, body, `"try":{"int":3}`)
}

func TestAPlanIsMadeAppliedAndCounted(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	token := v.token("/")
	_, body := v.do(http.MethodPost, "/plans", url.Values{"token": {token}}, nil)
	path := jobPath(t, body)
	body = v.until(path, "Apply it")
	require.Contains(t, body, "left out: a person must decide")
	require.Equal(t, 5, w.dead(), "a plan changes nothing")
	_, file := v.get(path + "/plan.jsonl")
	require.Contains(t, file, `"action":"reprocess"`)
	for _, rate := range []string{"NaN", "0", "-1", "1e-300", "+Inf", ""} {
		status, body := v.do(http.MethodPost, path+"/apply", url.Values{"token": {token}, "why": {"ticket 8"}, "confirm": {"yes"}, "rate": {rate}}, nil)
		require.Equal(t, http.StatusBadRequest, status, rate)
		require.Contains(t, body, "from 0.1 to 1000", rate)
	}
	apply := url.Values{"token": {token}, "why": {"ticket 8"}, "rate": {"100"}}
	status, _ := v.do(http.MethodPost, path+"/apply", apply, nil)
	require.Equal(t, http.StatusBadRequest, status, "it must be confirmed")
	apply.Set("confirm", "yes")
	status, _ = v.do(http.MethodPost, path+"/apply", apply, nil)
	require.Equal(t, http.StatusOK, status)
	body = v.until(path, ": done")
	require.Contains(t, body, "applied now")
	require.Equal(t, 2, w.dead(), "the conflict and the unreadable one stay")
	require.Equal(t, 1, w.mem.Creations("1003"))
	require.Contains(t, w.ledger.said(), "for ticket 8")
	_, body = v.get("/")
	require.NotContains(t, body, `href="/?verdict=never-applied"`, "the counts are new")
}

func jobPath(t *testing.T, body string) string {
	t.Helper()
	found := regexp.MustCompile(`Plan ([A-Z0-9]{12})`).FindStringSubmatch(body)
	require.NotNil(t, found, body)
	return "/jobs/" + found[1]
}

// until loads a page again until it says something, as its script does.
func (v *visitor) until(path, text string) string {
	v.t.Helper()
	for {
		_, body := v.get(path)
		if strings.Contains(body, text) {
			return body
		}
		require.NoError(v.t, v.t.Context().Err())
		require.Contains(v.t, body, `data-live="`+path, "it would never come")
	}
}

func TestWhatIsNotThereIsSaidToBe(t *testing.T) {
	v := start(t, nil).visit()
	for path, status := range map[string]int{
		"/messages/1": 404, "/messages/x": 404, "/messages/1/export": 404, "/outcomes/x": 404, "/jobs/x": 404, "/?verdict=x": 400, "/?from=x": 400, "/history?sequence=x": 400, "/nosuch": 404,
	} {
		got, _ := v.get(path)
		require.Equal(t, status, got, path)
	}
}

func TestOptionsThatWouldBeUnsafeAreRefused(t *testing.T) {
	_, err := page.New(page.Options{})
	require.Error(t, err)
	_, err = page.New(page.Options{Hosts: []string{"a"}, Write: true})
	require.Error(t, err)
}

func TestACompressedBodyIsShownAsTheWorkerReadsIt(t *testing.T) {
	w := start(t, nil)
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	_, err := z.Write([]byte(`{"amount":40}`))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	m, encoding := message("z1", compressed.String(), nil), "gzip"
	m.Properties.ContentEncoding = &encoding
	w.bury("Timeout", m, message("b1", "\xff\xfe", nil))
	_, body := w.visit().get("/messages/1")
	require.Contains(t, body, "as the worker reads it")
	require.Contains(t, body, "&#34;amount&#34;: 40")
	require.NotContains(t, body, "as a dump")
	_, body = w.visit().get("/messages/2")
	require.Contains(t, body, "as a dump")
}

// unread is a ledger that cannot be read.
type unread struct{ deadletter.Ledger }

func (unread) Entries(context.Context, deadletter.Query) iter.Seq2[deadletter.Entry, error] {
	return func(yield func(deadletter.Entry, error) bool) {
		yield(deadletter.Entry{}, errors.New("the store is away"))
	}
}

func TestAHistoryThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	w := start(t, func(o *page.Options) { o.Ledger = unread{o.Ledger} })
	_, body := w.visit().get("/history")
	require.Contains(t, body, "The history cannot be read: the store is away")
	require.NotContains(t, body, "Nothing was done")
}
