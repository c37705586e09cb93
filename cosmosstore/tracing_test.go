package cosmosstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

// spans records the spans of a store that have ended, and the failures of them.
type spans struct {
	mu     sync.Mutex
	ended  int
	failed []string
}

func (s *spans) provider() tracing.Provider {
	return tracing.NewProvider(func(string, string) tracing.Tracer {
		return tracing.NewTracer(func(ctx context.Context, name string, _ *tracing.SpanOptions) (context.Context, tracing.Span) {
			return ctx, tracing.NewSpan(tracing.SpanImpl{
				End: func() { s.note(func() { s.ended++ }) },
				SetStatus: func(code tracing.SpanStatus, text string) {
					if code == tracing.SpanStatusError {
						s.note(func() { s.failed = append(s.failed, fmt.Sprintf("%s: %s", name, text)) })
					}
				},
			})
		}, nil)
	}, nil)
}

func (s *spans) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func traced(s *spans) setup {
	return setup{options: func(o *cosmosstore.Options) { o.Tracing = s.provider() }}
}

func TestAnAnswerThatIsExpectedIsNoFailedSpan(t *testing.T) {
	s := &spans{}
	inBubble(t, traced(s), func(e *env) {
		e.commit(commit("1", `{}`))
		e.commit(commit("2", `{}`, lines(2)...))
		e.commit(commit("1", `{}`))
		e.commit(commit("2", `{}`, lines(2)...))
		_, err := e.store.Find(e.ctx(), "", "3")
		require.ErrorIs(e.t, err, worker.ErrNotFound)
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.Empty(e.t, e.store.Check(e.ctx()))
		require.Empty(e.t, s.failed)
		require.Greater(e.t, s.ended, 20)
	})
}

func TestAStatusOfAnEarlierTryIsNotThatOfALostAnswer(t *testing.T) {
	s := &spans{}
	inBubble(t, traced(s), func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Before(fault.Throttle(time.Second)), fault.On(history.CreateDocument).Nth(2).Before(fault.DropReply()))
		require.True(e.t, e.commit(commit("1", `{}`)).Created)
		require.Equal(e.t, []string{"HTTP POST: 429 Too Many Requests", "HTTP POST: no response", "create_item orders: no response"}, s.failed)
	})
}

func TestAFailedSpanHoldsItsStatusAndNoDump(t *testing.T) {
	for name, tt := range map[string]struct {
		action fault.Action
		want   []string
	}{
		"a refusal":                 {fault.Reply(403, 0), []string{"HTTP POST: 403 Forbidden", "create_item orders: 403 Forbidden"}},
		"a conflict behind a 503":   {fault.Reply(503, 0), []string{"HTTP POST: 503 Service Unavailable", "create_item orders: 503 Service Unavailable"}},
		"a connection that breaks":  {fault.DropReply(), []string{"HTTP POST: no response", "create_item orders: no response"}},
		"a status that is no error": {fault.Reply(302, 0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &spans{}
			inBubble(t, traced(s), func(e *env) {
				e.faults.Add(fault.On(history.CreateDocument).Key("secret-id").Before(tt.action))
				_, _ = e.store.Commit(e.ctx(), commit("secret-id", `{}`)) // only its spans count here
				for _, f := range s.failed {
					require.NotContains(e.t, f, "secret-id")
					require.NotContains(e.t, f, "\n")
				}
				require.GreaterOrEqual(e.t, len(s.failed), len(tt.want), s.failed)
				for i, want := range tt.want {
					require.Contains(e.t, s.failed[i], want)
				}
			})
		})
	}
}
