package cosmosstore_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

func TestAnInspectionShowsEveryDocumentOfAKey(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		_, err := e.store.Inspect(e.ctx(), "", "1")
		require.ErrorIs(e.t, err, worker.ErrNotFound)

		c := commit("1", `{"amount":12345678901234567890}`, lines(2)...)
		e.commit(c)
		before := len(e.history.Events())
		i, err := e.store.Inspect(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, c.Attempt, i.Record.Attempt)
		require.Len(e.t, i.Documents, 3)
		order := i.Documents[0]
		require.Equal(e.t, "1", order.ID)
		require.Equal(e.t, "order", order.Type)
		require.JSONEq(e.t, `{"amount":12345678901234567890}`, string(order.Content))
		require.WithinDuration(e.t, time.Now(), order.ModifiedAt, time.Second)
		stored, _ := e.account.Document(database, container, "1")
		require.NotEmpty(e.t, order.ETag)
		require.JSONEq(e.t, stored.Body, string(order.Body))
		require.Equal(e.t, "line-2", i.Documents[2].Name)
		require.Equal(e.t, "1~part.line-2", i.Documents[2].ID)
		require.Equal(e.t, len(e.history.Events())-before, i.Calls)
		require.Positive(e.t, i.Charge)

		e.account.DeleteDocument(database, container, "1~part.line-1")
		i, err = e.store.Inspect(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, []string{"line-1"}, i.Record.MissingParts)
		require.Len(e.t, i.Documents, 2)
	})
}

func TestAnInspectionShowsAnInboxRecordOfItsOwn(t *testing.T) {
	inBubble(t, setup{options: func(o *cosmosstore.Options) { o.InboxRecords = true }}, func(e *env) {
		e.commit(commit("1", `{"a":1}`))
		i, err := e.store.Inspect(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Len(e.t, i.Documents, 2)
		require.Nil(e.t, i.Documents[0].Content)
		require.True(e.t, json.Valid(i.Documents[0].Body))
		require.JSONEq(e.t, `{"a":1}`, string(i.Documents[1].Content))
	})
}

func TestAnInspectionOfAStoreThatIsDownFails(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		e.faults.Add(fault.On(history.ReadDocument).Nth(2).Before(fault.Reply(503, 0)))
		e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(fault.Reply(503, 0)))
		_, err := e.store.Inspect(e.ctx(), "", "1")
		requireAs[*worker.UnavailableError](e.t, err)
	})
}
