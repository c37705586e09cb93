package cosmosstore_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
)

// spoiler changes the headers of every reply.
type spoiler struct {
	policy.Transporter
	spoil func(http.Header)
}

func (s spoiler) Do(r *http.Request) (*http.Response, error) {
	resp, err := s.Transporter.Do(r)
	if err == nil {
		s.spoil(resp.Header)
	}
	return resp, err
}

// TestHeadersWithoutSenseChangeNoJudgement takes away or replaces what the service says in headers, as emulators and gateways
// do, the session token among it.
func TestHeadersWithoutSenseChangeNoJudgement(t *testing.T) {
	const body, other = `{"a":1}`, `{"a":2}`
	each := func(do func(h http.Header, name string)) func(http.Header) {
		return func(h http.Header) {
			for name := range h {
				if strings.HasPrefix(strings.ToLower(name), "x-ms-") {
					do(h, name)
				}
			}
		}
	}
	for name, spoil := range map[string]func(http.Header){
		"none":    each(func(h http.Header, name string) { h.Del(name) }),
		"empty":   each(func(h http.Header, name string) { h.Set(name, "") }),
		"garbage": each(func(h http.Header, name string) { h.Set(name, `garbage; "'<>`) }),
		"numbers": each(func(h http.Header, name string) { h.Set(name, "NaN") }),
		"huge":    each(func(h http.Header, name string) { h.Set(name, strings.Repeat("0:1#9223372036854775807,", 500)) }),
	} {
		for _, parts := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s, %d lines", name, parts), func(t *testing.T) {
				inBubble(t, setup{options: func(o *cosmosstore.Options) { o.Transport = spoiler{o.Transport, spoil} }}, func(e *env) {
					o := e.commit(commit("1", body, lines(parts)...))
					require.True(e.t, o.Created)
					require.Zero(e.t, o.Charge)
					again, odd := commit("1", body, lines(parts)...), commit("1", other, lines(parts)...)
					require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), body))
					require.Equal(e.t, worker.Conflict, judge(odd, e.commit(odd), other))
					_, err := e.store.Find(e.ctx(), "1")
					require.NoError(e.t, err)
					require.NoError(e.t, e.store.Ready(e.ctx()))
				})
			})
		}
	}
}
