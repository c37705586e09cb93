package cosmosstore_test

import (
	"encoding/json"
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
)

func entry(n int, state string, at time.Time) cosmosstore.JournalEntry {
	return cosmosstore.JournalEntry{
		ID: fmt.Sprintf("A%d-%s", n, state), At: at.UTC(),
		Content: json.RawMessage(fmt.Sprintf(`{"state":%q,"plan":"p%d","sequence":%d,"messageId":"m%d"}`, state, n%2, n, n)),
	}
}

func all(t *testing.T, entries iter.Seq2[cosmosstore.JournalEntry, error]) []cosmosstore.JournalEntry {
	t.Helper()
	var out []cosmosstore.JournalEntry
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
				l := e.store.Journal()
				from := time.Now()
				var want []cosmosstore.JournalEntry
				for n := 1; n <= 5; n++ {
					next := entry(n, "done", time.Now())
					require.NoError(t, l.Append(e.ctx(), next))
					want = append([]cosmosstore.JournalEntry{next}, want...)
					time.Sleep(16 * time.Hour)
				}
				require.Equal(t, want, all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from})))
				require.Equal(t, want[:2], all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from, Most: 2})))
				require.Equal(t, want[2:3], all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from, Equal: map[string]any{"sequence": 3}})))
				require.Equal(t, want[2:3], all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from, Equal: map[string]any{"messageId": "m3", "plan": "p1", "state": "done"}})))
				require.Equal(t, want[:1], all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: want[0].At})))
				require.Equal(t, want[1:], all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from, To: want[0].At})))
				require.Empty(t, all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from, Equal: map[string]any{"state": "sent"}})))
			})
		})
	}
}

func TestTheNewestRecordsAreFoundWithoutReadingTheWholeDay(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		l := e.store.Journal()
		from := time.Now()
		for n := range 120 {
			require.NoError(t, l.Append(e.ctx(), entry(n, "done", time.Now())))
			time.Sleep(100 * time.Millisecond)
		}
		before := e.requests(history.QueryDocuments)
		var numbers []string
		for _, j := range all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from, Most: 15})) {
			numbers = append(numbers, j.ID)
		}
		require.Len(t, numbers, 15)
		require.Equal(t, "A119-done", numbers[0], "entries of one second are in order, too")
		require.Equal(t, "A105-done", numbers[14])
		require.LessOrEqual(t, e.requests(history.QueryDocuments)-before, 3, "the next day, and at most two answers of this one")
		require.Len(t, all(t, l.Entries(e.ctx(), cosmosstore.JournalQuery{From: from})), 120)
	})
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
				want := entry(1, "intended", time.Now())
				require.NoError(t, e.store.Journal().Append(e.ctx(), want))
				require.NoError(t, e.store.Journal().Append(e.ctx(), want), "an entry that is there already is the same entry")
				require.Equal(t, []cosmosstore.JournalEntry{want}, all(t, e.store.Journal().Entries(e.ctx(), cosmosstore.JournalQuery{From: want.At})))
			})
		})
	}
}

func TestARecordThatCannotBeWrittenIsAnError(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(503, 0)))
		err := e.store.Journal().Append(e.ctx(), entry(1, "intended", time.Now()))
		var down *worker.UnavailableError
		require.ErrorAs(t, err, &down)
		e.faults.Clear()
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(403, 0)))
		err = e.store.Journal().Append(e.ctx(), entry(1, "intended", time.Now()))
		var wrong *worker.MisconfiguredError
		require.ErrorAs(t, err, &wrong)
	})
}

func TestALogThatCannotBeReadIsAnErrorAndNotAnEmptyLog(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.QueryDocuments).Always().Before(fault.Reply(403, 0)))
		var got error
		for _, err := range e.store.Journal().Entries(e.ctx(), cosmosstore.JournalQuery{From: time.Now()}) {
			got = err
		}
		var wrong *worker.MisconfiguredError
		require.ErrorAs(t, got, &wrong)
	})
}

func TestRecordsAndOrdersNeverMeet(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		want := entry(1, "done", time.Now())
		require.NoError(t, e.store.Journal().Append(e.ctx(), want))
		_, err := e.store.Find(e.ctx(), "", "~action."+want.ID)
		require.ErrorIs(t, err, worker.ErrNotFound, "a record lies in a partition of its own")
		require.True(t, e.commit(commit("m1", `{"a":1}`)).Created)
		require.Equal(t, []cosmosstore.JournalEntry{want}, all(t, e.store.Journal().Entries(e.ctx(), cosmosstore.JournalQuery{From: want.At})))
	})
}
