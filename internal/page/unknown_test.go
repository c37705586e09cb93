package page_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
)

func TestAMessageThatNamesNoProgramIsAcceptedByABox(t *testing.T) {
	w := start(t, nil)
	w.bury("HandlerError", message("7001", `{"a":1}`, map[string]any{worker.PropertyReason: "HandlerError"}), message("7002", `{"a":1}`, map[string]any{worker.PropertyReason: "HandlerError"}))
	v := w.visit()
	_, body := v.get("/messages/1")
	require.Contains(t, body, `name="unknown" value="yes" required`)
	form := url.Values{"token": {v.token("/messages/1")}, "why": {"ticket 7"}, "verdict": {"never-applied"}}
	_, body = v.do(http.MethodPost, "/messages/1/reprocess", form, nil)
	require.Contains(t, body, "refused")
	require.Equal(t, 2, w.dead())
	form.Set("unknown", "yes")
	_, body = v.do(http.MethodPost, "/messages/1/reprocess", form, nil)
	require.Contains(t, body, "applied now")
	require.Equal(t, 1, w.dead())

	_, body = v.get("/")
	require.Contains(t, body, `name="unknown"`)
	for accepted, want := range map[string]string{"": "nobody knows to which program it belongs", "yes": "Messages that name no program were accepted"} {
		_, body = v.do(http.MethodPost, "/plans", url.Values{"token": {v.token("/")}, "scope": {"all"}, "unknown": {accepted}}, nil)
		v.until(jobPath(t, body), want)
	}
	w.bury("HandlerError", message("7003", `{"a":1}`, map[string]any{worker.PropertyProgram: "orderworker"}))
	_, body = v.get("/?key=7003")
	require.NotContains(t, body, `name="unknown"`, "nobody is asked without need")
}

func TestWhatIsDiscardedIsOfferedForDownloadBefore(t *testing.T) {
	w := start(t, nil)
	w.story()
	v := w.visit()
	_, body := v.get("/messages/5")
	require.Contains(t, body, `<a href="/messages/5/export">Download it first</a>`)
	_, body = v.do(http.MethodPost, "/plans", url.Values{"token": {v.token("/")}, "scope": {"all"}}, nil)
	path := jobPath(t, body)
	v.until(path, "Download what it discards")
	_, body = v.get(path + "/discarded.jsonl")
	lines := strings.Split(strings.TrimSpace(body), "\n")
	require.Len(t, lines, 1, "the others are reprocessed or left")
	l, err := deadletter.ImportLine([]byte(lines[0]))
	require.NoError(t, err)
	id, _ := l.MessageID()
	require.Equal(t, "1001", id)
	_, body = v.do(http.MethodPost, "/plans", url.Values{"token": {v.token("/")}, "scope": {"ticked"}, "sequence": {"2"}}, nil)
	path = jobPath(t, body)
	require.NotContains(t, v.until(path, "Apply it"), "Download what it discards")
}
