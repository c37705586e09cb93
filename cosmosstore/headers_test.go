package cosmosstore_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
)

// headerChanger changes the headers of every reply.
type headerChanger struct {
	policy.Transporter
	spoil func(http.Header)
}

func (s headerChanger) Do(r *http.Request) (*http.Response, error) {
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
				inBubble(t, setup{options: func(o *cosmosstore.Options) { o.Transport = headerChanger{o.Transport, spoil} }}, func(e *env) {
					o := e.commit(commit("1", body, lines(parts)...))
					require.True(e.t, o.Created)
					require.Zero(e.t, o.Charge)
					again, odd := commit("1", body, lines(parts)...), commit("1", other, lines(parts)...)
					require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), body))
					require.Equal(e.t, worker.Conflict, judge(odd, e.commit(odd), other))
					_, err := e.store.Find(e.ctx(), "", "1")
					require.NoError(e.t, err)
					require.NoError(e.t, e.store.Ready(e.ctx()))
				})
			})
		}
	}
}

// endless answers a request with a body that has no end once it is told to.
type endless struct {
	policy.Transporter
	begun *atomic.Bool
	read  *atomic.Int64
}

func (e endless) Do(r *http.Request) (*http.Response, error) {
	if !e.begun.Load() {
		return e.Transporter.Do(r)
	}
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(zeros{e.read}), Request: r}, nil
}

type zeros struct{ read *atomic.Int64 }

func (z zeros) Read(p []byte) (int, error) {
	z.read.Add(int64(len(p)))
	clear(p)
	return len(p), nil
}

func TestAReplyWithoutEndIsCutOff(t *testing.T) {
	var begun atomic.Bool
	var read atomic.Int64
	inBubble(t, setup{options: func(o *cosmosstore.Options) { o.Transport = endless{o.Transport, &begun, &read} }}, func(e *env) {
		require.True(e.t, e.commit(commit("1", `{"a":1}`)).Created)
		begun.Store(true)
		_, err := e.store.Commit(e.ctx(), commit("2", `{"a":1}`))
		var unavailable *worker.UnavailableError
		require.ErrorAs(e.t, err, &unavailable)
		require.True(e.t, unavailable.Ambiguous, "it may have been the account after all")
		require.Less(e.t, read.Load(), int64(100<<20))
		require.Error(e.t, e.store.Ready(e.ctx()))
	})
}
