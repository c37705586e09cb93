package page_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/page"
)

func TestOnlyABrowserThatWasLetInSeesOrDoesAnything(t *testing.T) {
	w := start(t, nil)
	w.story()
	first := w.key()
	mallory := w.stranger()
	for _, path := range []string{"/", "/overview", "/messages/2", "/messages/2/body", "/messages/2/export", "/messages.csv", "/history", "/jobs/x", "/outcomes/x", "/nosuch", "/enter", "/enter?key=", "/enter?key=guess"} {
		status, body := mallory.get(path)
		require.Equal(t, http.StatusForbidden, status, path)
		require.NotContains(t, body, "Grace", path)
		require.NotContains(t, body, "1003", path)
	}
	status, _ := mallory.do(http.MethodPost, "/messages/1/discard", url.Values{"verdict": {"already-applied"}, "why": {"x"}}, nil)
	require.Equal(t, http.StatusForbidden, status)
	site, err := url.Parse(w.site.URL)
	require.NoError(t, err)
	require.Empty(t, mallory.client.Jar.Cookies(site), "a refusal begins no session")
	require.Equal(t, 5, w.dead())

	for name, tt := range map[string]struct {
		method string
		change func(*http.Request)
	}{
		"a look ahead of the browser": {http.MethodGet, func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch") }},
		"a look at the headers":       {http.MethodHead, nil},
	} {
		status, _ := w.stranger().do(tt.method, first, nil, tt.change)
		require.Equal(t, http.StatusForbidden, status, name)
		require.Equal(t, first, w.key(), "the address is still good after %s", name)
	}
	ann := w.visit()
	status, body := ann.get("/messages/2")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "Grace")
	status, _ = ann.get(first)
	require.Equal(t, http.StatusOK, status, "who is in may open the address again")

	status, _ = mallory.get(first)
	require.Equal(t, http.StatusForbidden, status, "the address works once")
	require.NotEqual(t, first, w.key())
	status, _ = w.visit().get("/")
	require.Equal(t, http.StatusOK, status, "the next address lets the next browser in")
}

func TestAnInventedSessionIsNone(t *testing.T) {
	w := start(t, nil)
	v := w.visit()
	site, err := url.Parse(w.site.URL)
	require.NoError(t, err)
	good := v.client.Jar.Cookies(site)[0]
	for _, value := range []string{"", ".", "AAAAAAAAAAAAAAAAAAAAAAAAAA", good.Value[:26], good.Value[:26] + ".", "B" + good.Value[1:], good.Value + "0"} {
		if value == good.Value {
			continue
		}
		status, _ := w.stranger().do(http.MethodGet, "/", nil, func(r *http.Request) { r.Header.Set("Cookie", good.Name+"="+value) })
		require.Equal(t, http.StatusForbidden, status, value)
	}
}

func TestTheCookieIsForThisPageAlone(t *testing.T) {
	w := start(t, nil)
	v := w.stranger()
	v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := v.client.Get(w.site.URL + w.key())
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, resp.Cookies(), 1)
	c := resp.Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Contains(t, c.Name, w.site.URL[len("http://127.0.0.1:"):], "another page on another port has another cookie")
}

func TestLookingNeedsNoAddress(t *testing.T) {
	w := start(t, func(o *page.Options) { o.Write = false })
	require.Empty(t, w.key())
	status, _ := w.stranger().get("/")
	require.Equal(t, http.StatusOK, status)
}
