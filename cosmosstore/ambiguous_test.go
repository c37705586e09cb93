package cosmosstore_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

// lostAnswers are the ways in which the answer to a write is lost.
var lostAnswers = []struct {
	name   string
	action fault.Action
}{
	{"the connection is cut", fault.DropReply()},
	{"the HTTP/2 stream is reset", fault.Action{Kind: fault.Drop, Condition: cosmosdb.StreamReset}},
	{"the answer never comes", fault.Action{Kind: fault.Silence}},
	{"408", fault.Reply(408, 0)},
	{"410/1007", fault.Reply(410, 1007)},
	{"410/21010", fault.Reply(410, 21010)},
	{"500", fault.Reply(500, 0)},
	{"502", fault.Reply(502, 0)},
	{"503", fault.Reply(503, 0)},
	{"504", fault.Reply(504, 0)},
	{"an answer that no create has", fault.Reply(200, 0)},
	{"not modified", fault.Reply(304, 0)},
	{"a redirect", fault.Reply(302, 0)},
}

func TestAWriteWhoseAnswerIsLostIsRecognisedAsOwn(t *testing.T) {
	const body = `{"orderId":"1042"}`
	for _, shape := range []struct {
		name, op string
		parts    []worker.Document
		setup    setup
		more     int
	}{
		{"create", history.CreateDocument, nil, setup{}, 0},
		{"batch", history.ExecuteBatch, lines(2), setup{}, 0},
		{"inbox record", history.ExecuteBatch, nil, withInboxRecords(time.Hour), 1},
	} {
		for _, tt := range lostAnswers {
			t.Run(shape.name+" when "+tt.name, func(t *testing.T) {
				inBubble(t, shape.setup, func(e *env) {
					e.faults.Add(fault.On(shape.op).After(tt.action))
					c := commit("1042", body, shape.parts...)
					o := e.commit(c)
					require.Equal(e.t, worker.Own, judge(c, o, body))
					require.Equal(e.t, 1+len(shape.parts)+shape.more, e.account.Count(database, container))
					require.Equal(e.t, c.Attempt, e.document("1042")["request"].(map[string]any)["attempt"])
				})
			})
			t.Run(shape.name+" that never arrived when "+tt.name, func(t *testing.T) {
				inBubble(t, shape.setup, func(e *env) {
					e.faults.Add(fault.On(shape.op).Before(tt.action))
					o := e.commit(commit("1042", body, shape.parts...))
					require.True(e.t, o.Created)
					require.Equal(e.t, 1+len(shape.parts)+shape.more, e.account.Count(database, container))
				})
			})
		}
	}
}

func TestALostAnswerCostsOneRepeatedWriteAndNoMore(t *testing.T) {
	for _, tt := range lostAnswers[:2] {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.faults.Add(fault.On(history.CreateDocument).After(tt.action))
				o := e.commit(commit("1042", `{}`))
				require.NotNil(e.t, o.Existing)
				require.Equal(e.t, 3, o.Calls, "the create, its repetition and the read: azcosmos must not replay by itself")
			})
		})
	}
}

func TestAWriteThatStaysAmbiguousIsReportedAsSuch(t *testing.T) {
	for _, tt := range lostAnswers[:10] {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.faults.Add(fault.On(history.CreateDocument).Always().Before(tt.action))
				o, err := e.store.Commit(e.ctx(), commit("1042", `{}`))
				u := requireAs[*worker.UnavailableError](e.t, err)
				require.True(e.t, u.Ambiguous)
				require.Equal(e.t, 6, o.Calls)
				require.NotContains(e.t, err.Error(), "1042", "no id of a message in the text")
			})
		})
	}
}

func TestTheCallersTimeEndsACommitAndIsNamed(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Action{Kind: fault.Silence}))
		begun := time.Now()
		_, err := e.store.Commit(within(e.t, 4*time.Second), commit("1042", `{}`))
		require.Equal(e.t, 4*time.Second, time.Since(begun))
		u := requireAs[*worker.UnavailableError](e.t, err)
		require.True(e.t, u.Ambiguous)
		require.ErrorIs(e.t, err, context.DeadlineExceeded)
	})
}

func TestACallWithoutTimeSendsNothing(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx())
		cancel()
		_, err := e.store.Commit(ctx, commit("1042", `{}`))
		u := requireAs[*worker.UnavailableError](e.t, err)
		require.False(e.t, u.Ambiguous)
		require.ErrorIs(e.t, err, context.Canceled)
		require.Zero(e.t, e.requests(history.CreateDocument))
	})
}

// refusing is a transport that reaches the account until it is told not to.
type refusing struct {
	cosmos interface {
		Do(*http.Request) (*http.Response, error)
	}
	down atomic.Bool
}

func (r *refusing) Do(req *http.Request) (*http.Response, error) {
	if r.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return r.cosmos.Do(req)
}

func TestAConnectionThatIsRefusedIsNotAmbiguous(t *testing.T) {
	wire := &refusing{}
	inBubble(t, setup{options: func(o *cosmosstore.Options) { wire.cosmos = o.Transport; o.Transport = wire }}, func(e *env) {
		e.commit(commit("1", `{}`))
		wire.down.Store(true)
		_, err := e.store.Commit(e.ctx(), commit("1042", `{}`))
		u := requireAs[*worker.UnavailableError](e.t, err)
		require.False(e.t, u.Ambiguous)
		require.ErrorAs(e.t, e.store.Ready(e.ctx()), new(*worker.UnavailableError))
		wire.down.Store(false)
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.True(e.t, e.commit(commit("1042", `{}`)).Created)
	})
}

// requireAs requires an error of type E in the chain and returns it.
func requireAs[E error](t *testing.T, err error) E {
	t.Helper()
	var want E
	require.ErrorAs(t, err, &want)
	return want
}
