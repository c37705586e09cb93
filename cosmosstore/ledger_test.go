package cosmosstore_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/deadletter"
)

func action(n int, state deadletter.State, at time.Time) deadletter.Entry {
	return deadletter.Entry{
		ID: fmt.Sprintf("A%d-%s", n, state), ActionID: fmt.Sprintf("A%d", n), State: state, At: at.UTC(), Actor: "ann", Why: "ticket 7",
		Plan: fmt.Sprintf("p%d", n%2), Queue: "orders", Sequence: int64(n), MessageID: fmt.Sprintf("m%d", n),
		Verdict: deadletter.NeverApplied, Action: deadletter.Reprocess, ArrivedHash: "ab", Result: "applied",
	}
}

func all(t *testing.T, entries iter.Seq2[deadletter.Entry, error]) []deadletter.Entry {
	t.Helper()
	var out []deadletter.Entry
	for e, err := range entries {
		require.NoError(t, err)
		out = append(out, e)
	}
	return out
}

func TestRecordsOfActionsComeBackNewestFirst(t *testing.T) {
	for name, path := range map[string]string{"beside the orders": "/pk", "by id alone": "/id", "on a nested key": "/tenant/id"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{container: func(c *cosmosdb.ContainerSpec) { c.PartitionKey = []string{path} }}, func(e *env) {
				l := e.store.Ledger()
				from := time.Now()
				var want []deadletter.Entry
				for n := 1; n <= 5; n++ {
					entry := action(n, deadletter.Done, time.Now())
					require.NoError(t, l.Append(e.ctx(), entry))
					want = append([]deadletter.Entry{entry}, want...)
					time.Sleep(16 * time.Hour)
				}
				require.Equal(t, want, all(t, l.Entries(e.ctx(), deadletter.Query{From: from})))
				require.Equal(t, want[:2], all(t, l.Entries(e.ctx(), deadletter.Query{From: from, Most: 2})))
				require.Equal(t, want[2:3], all(t, l.Entries(e.ctx(), deadletter.Query{From: from, Sequence: 3})))
				require.Equal(t, want[2:3], all(t, l.Entries(e.ctx(), deadletter.Query{From: from, MessageID: "m3", Plan: "p1", State: deadletter.Done})))
				require.Equal(t, want[:1], all(t, l.Entries(e.ctx(), deadletter.Query{From: want[0].At})))
				require.Equal(t, want[1:], all(t, l.Entries(e.ctx(), deadletter.Query{From: from, To: want[0].At})))
				require.Empty(t, all(t, l.Entries(e.ctx(), deadletter.Query{From: from, State: deadletter.Sent})))
			})
		})
	}
}

func TestARecordIsWrittenOnceWhateverBecomesOfItsAnswer(t *testing.T) {
	for name, rule := range map[string]*fault.Rule{
		"the answer is lost":  fault.On(history.CreateDocument).After(fault.DropReply()),
		"the request is lost": fault.On(history.CreateDocument).Before(fault.DropReply()),
		"the store is busy":   fault.On(history.CreateDocument).Times(2).Before(fault.Reply(449, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.faults.Add(rule)
				entry := action(1, deadletter.Intended, time.Now())
				require.NoError(t, e.store.Ledger().Append(e.ctx(), entry))
				require.NoError(t, e.store.Ledger().Append(e.ctx(), entry), "an entry that is there already is the same entry")
				require.Equal(t, []deadletter.Entry{entry}, all(t, e.store.Ledger().Entries(e.ctx(), deadletter.Query{From: entry.At})))
			})
		})
	}
}

func TestARecordThatCannotBeWrittenIsAnError(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(503, 0)))
		err := e.store.Ledger().Append(e.ctx(), action(1, deadletter.Intended, time.Now()))
		var down *worker.UnavailableError
		require.ErrorAs(t, err, &down)
		e.faults.Clear()
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(403, 0)))
		err = e.store.Ledger().Append(e.ctx(), action(1, deadletter.Intended, time.Now()))
		var wrong *worker.MisconfiguredError
		require.ErrorAs(t, err, &wrong)
	})
}

func TestALogThatCannotBeReadIsAnErrorAndNotAnEmptyLog(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.QueryDocuments).Always().Before(fault.Reply(403, 0)))
		var got error
		for _, err := range e.store.Ledger().Entries(e.ctx(), deadletter.Query{From: time.Now()}) {
			got = err
		}
		var wrong *worker.MisconfiguredError
		require.ErrorAs(t, got, &wrong)
	})
}

func TestRecordsAndOrdersNeverMeet(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		entry := action(1, deadletter.Done, time.Now())
		require.NoError(t, e.store.Ledger().Append(e.ctx(), entry))
		_, err := e.store.Find(e.ctx(), "~action."+entry.ID)
		require.ErrorIs(t, err, worker.ErrNotFound, "a record lies in a partition of its own")
		require.True(t, e.commit(commit("m1", `{"a":1}`)).Created)
		require.Equal(t, []deadletter.Entry{entry}, all(t, e.store.Ledger().Entries(e.ctx(), deadletter.Query{From: entry.At})))
	})
}

var _ deadletter.Ledger = (*cosmosstore.Ledger)(nil)
