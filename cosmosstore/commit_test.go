package cosmosstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

func TestANewMessageCostsOneCreateAndADuplicateOneMoreRead(t *testing.T) {
	const body = `{"orderId":"1042","amount":40}`
	inBubble(t, setup{}, func(e *env) {
		first := commit("1042", body)
		o, err := e.store.Commit(e.ctx(), first)
		require.NoError(e.t, err)
		require.True(e.t, o.Created)
		require.Equal(e.t, 1, o.Calls)
		require.Greater(e.t, o.Charge, 4.0)

		again := commit("1042", body)
		o, err = e.store.Commit(e.ctx(), again)
		require.NoError(e.t, err)
		require.Equal(e.t, worker.Duplicate, judge(again, o, `{"amount":4e1,"orderId":"1042"}`))
		require.Equal(e.t, 2, o.Calls)
		require.InDelta(e.t, 2.24, o.Charge, 0.5)

		require.Equal(e.t, 2, e.requests(history.CreateDocument))
		require.Equal(e.t, 1, e.requests(history.ReadDocument))
		require.Equal(e.t, 1, e.requests(history.ReadContainer))
		require.Equal(e.t, 1, e.requests(history.ReadAccount))
	})
}

func TestSeveralDocumentsAreOneBatch(t *testing.T) {
	const body = `{"orderId":"1042"}`
	inBubble(t, setup{}, func(e *env) {
		first := commit("1042", body, lines(3)...)
		o, err := e.store.Commit(e.ctx(), first)
		require.NoError(e.t, err)
		require.True(e.t, o.Created)
		require.Equal(e.t, 1, o.Calls)
		require.Equal(e.t, 4, e.account.Count(database, container))

		again := commit("1042", body, lines(3)...)
		o, err = e.store.Commit(e.ctx(), again)
		require.NoError(e.t, err)
		require.Equal(e.t, worker.Duplicate, judge(again, o, body))
		require.Equal(e.t, []string{"line-1", "line-2", "line-3"}, o.Existing.Parts)
		require.Empty(e.t, o.Existing.MissingParts)
		require.Equal(e.t, 3, o.Calls, "the refused batch, a read of the inbox record, and a batch of reads of the lines")
		require.Equal(e.t, 3, e.requests(history.ExecuteBatch))
		require.Equal(e.t, 1, e.requests(history.ReadDocument))
	})
}
