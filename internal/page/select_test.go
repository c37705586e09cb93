package page_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
)

var rowLink = regexp.MustCompile(`<td class="id"><a href="/messages/(\d+)"`)

// listed are the numbers that a page lists.
func listed(body string) string {
	var out []string
	for _, m := range rowLink.FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return strings.Join(out, " ")
}

func TestMessagesAreSelectedByEverythingTogether(t *testing.T) {
	w := start(t, nil)
	w.story()
	w.tale()
	w.bury("", message("1007", `{"n":1}`, nil))
	v := w.visit()
	for query, want := range map[string]string{
		"":                      "1 2 3 4 7 5 6 8",
		"verdict=never-applied": "2 3 8",
		"verdict=never-applied&reason=MaxDeliveryCountExceeded": "2 3",
		"verdict=conflict&reason=NotUTF8":                       "7",
		"verdict=conflict&reason=NotJSON":                       "",
		"reason=%28none%29":                                     "8",
		"text=basel":                                            "2",
		"text=1003":                                             "2",
		"text=CORR-9&verdict=unreadable":                        "6",
		"text=corr-9&verdict=conflict":                          "",
		"key=1002":                                              "4 7",
		"age=%3C1h":                                             "1 2 3 4 7 5 6 8",
		"age=%3E1h":                                             "",
		"after=0&before=60":                                     "",
	} {
		status, body := v.get("/?" + query)
		require.Equal(t, http.StatusOK, status, query)
		require.Equal(t, want, listed(body), query)
	}
	for _, query := range []string{"age=x", "age=é", "age=%3Csoon", "verdict=x", "from=x", "after=x", "before=x"} {
		status, _ := v.get("/?" + query)
		require.Equal(t, http.StatusBadRequest, status, query)
	}
}

func TestAListIsReadForthAndBack(t *testing.T) {
	w := start(t, nil)
	for range 120 {
		w.bury("X", message("same", `{"a":1}`, nil))
	}
	v := w.visit()
	var pages []string
	path := "/?reason=X"
	step := func(rel string) bool {
		_, body := v.get(path)
		pages = append(pages, strings.Fields(listed(body))[0])
		found := regexp.MustCompile(`rel="` + rel + `" href="([^"]+)"`).FindStringSubmatch(body)
		if found != nil {
			path = html.UnescapeString(found[1])
			require.Contains(t, path, "reason=X")
		}
		return found != nil
	}
	for step("next") {
	}
	for step("prev") {
	}
	require.Equal(t, []string{"1", "51", "101", "101", "51", "1"}, pages)
}

func TestMessagesOfOneKeyAreShownTogether(t *testing.T) {
	w := start(t, nil)
	w.story()
	w.tale()
	v := w.visit()
	_, body := v.get("/")
	require.Equal(t, 1, strings.Count(body, "same key as above"))
	_, body = v.get("/messages/4")
	require.Contains(t, body, `1 other dead-lettered message of the same key: <a href="/messages/7">7</a>`)
	require.Contains(t, body, `href="/?key=1002"`)
	_, body = v.get("/messages/2")
	require.NotContains(t, body, "same key")
}

func TestAPlanOfThePageIsThatOfTheCommand(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	token := v.token("/")
	review := w.review
	for name, tt := range map[string]struct {
		form url.Values
		want deadletter.Planning
	}{
		"by verdict":           {url.Values{"scope": {"all"}}, deadletter.Planning{}},
		"of a verdict":         {url.Values{"scope": {"all"}, "verdict": {"never-applied"}}, deadletter.Planning{Filter: deadletter.Filter{Kinds: []deadletter.Kind{deadletter.NeverApplied}}}},
		"ticked":               {url.Values{"scope": {"ticked"}, "sequence": {"3", "1"}}, deadletter.Planning{Filter: deadletter.Filter{Sequences: []int64{1, 3}}}},
		"discard without":      {url.Values{"scope": {"all"}, "action": {"discard"}}, deadletter.Planning{Action: deadletter.Discard}},
		"discard with":         {url.Values{"scope": {"all"}, "action": {"discard"}, "acknowledged": {"yes"}}, deadletter.Planning{Action: deadletter.Discard, Choice: deadletter.Choice{Acknowledged: true}}},
		"from a later page on": {url.Values{"scope": {"all"}, "from": {"3"}}, deadletter.Planning{}},
	} {
		tt.form.Set("token", token)
		_, body := v.do(http.MethodPost, "/plans", tt.form, nil)
		path := jobPath(t, body)
		v.until(path, "Download the plan")
		_, file := v.get(path + "/plan.jsonl")
		want, _, err := review.Plan(t.Context(), deadletter.PlanHeader{ID: "x"}, tt.want)
		require.NoError(t, err)
		got, err := deadletter.ReadPlan(strings.NewReader(file))
		require.NoError(t, err)
		require.Equal(t, want.Steps, got.Steps, name)
	}
	for name, form := range map[string]url.Values{"none": {}, "no number": {"sequence": {"x"}}} {
		form.Set("token", token)
		form.Set("scope", "ticked")
		status, body := v.do(http.MethodPost, "/plans", form, nil)
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Contains(t, body, "No message is ticked", name)
	}
	require.Equal(t, 5, w.dead())
}

func TestSeveralPeoplePlanAtATimeAndApplyOneAfterTheOther(t *testing.T) {
	w := start(t, nil)
	w.story()
	ann, bob := w.visit(), w.visit()
	var paths []string
	for v, form := range map[*visitor]url.Values{ann: {"scope": {"ticked"}, "sequence": {"2"}}, bob: {"scope": {"ticked"}, "sequence": {"1", "3"}}} {
		form.Set("token", v.token("/"))
		_, body := v.do(http.MethodPost, "/plans", form, nil)
		paths = append(paths, jobPath(t, body))
	}
	for i, path := range paths {
		v := []*visitor{ann, bob}[i]
		v.until(path, "Apply it")
		status, body := v.do(http.MethodPost, path+"/apply", url.Values{"token": {v.token("/")}, "why": {fmt.Sprint("ticket ", i)}, "confirm": {"yes"}, "rate": {"100"}}, nil)
		require.Equal(t, http.StatusOK, status, body)
	}
	for _, path := range paths {
		ann.until(path, ": done")
	}
	require.Equal(t, 2, w.dead())
	require.Contains(t, w.ledger.said(), "for ticket 0")
	require.Contains(t, w.ledger.said(), "for ticket 1")
}

func TestABodyIsDownloadedAsItWasSent(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	status, body := v.get("/messages/2/body")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, `{"orderId":"1003","customer":{"name":"Grace","city":"Basel"},"amount":12.5}`, body)
	resp, err := v.client.Get(w.site.URL + "/messages/5/body")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "application/octet-stream", resp.Header.Get("Content-Type"), "what a message carries is never a page")
	require.Contains(t, resp.Header.Get("Content-Disposition"), "attachment")
}

func TestAMessageIsShownWithWhatItSaysOfItself(t *testing.T) {
	w := start(t, nil)
	w.story()
	w.tale()
	_, body := w.visit().get("/messages/6")
	for _, want := range []string{"Invoice", "corr-9", "application/json", "desk-7", "1h0m0s"} {
		require.Contains(t, body, "<dd>"+want+"</dd>")
	}
	require.Contains(t, body, "<dd class=\"mono\">1006</dd>")
	require.Contains(t, body, "Nothing is stored under its key", "it names a key, so it does not say that there is none")
	require.NotContains(t, body, "no key")
}

func TestWhatWouldAlwaysBeRefusedIsNotOffered(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	_, body := v.get("/messages/4")
	require.NotContains(t, body, `action="/messages/4/reprocess"`)
	require.Contains(t, body, "Not possible: reprocess.</strong> Reprocessing cannot help")
	_, body = v.get("/?verdict=conflict")
	require.Contains(t, body, `<option value="discard">`)
	require.NotContains(t, body, `<option value="reprocess">`)
}

func TestTheOverviewTellsThatMoreCame(t *testing.T) {
	w := start(t, nil)
	w.story()
	_, body := w.visit().get("/overview?seen=3&verdict=conflict")
	require.Contains(t, body, `There were 3 when this list was loaded. <a href="/?verdict=conflict">`)
	require.NotContains(t, body, "<table", "it is only the overview")
}
