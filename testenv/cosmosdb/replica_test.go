package cosmosdb_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// withToken asks for a session token.
func withToken(token string) *azcosmos.ItemOptions {
	return &azcosmos.ItemOptions{SessionToken: &token}
}

func TestAReadAfterAConflictMayMissTheDocument(t *testing.T) {
	b := newBench(t, setup{})
	b.account.SetLag(cosmosdb.Lag{Frozen: true})
	b.create(t, "a", `{"id":"a"}`)
	re := requireStatus(t, b.tryCreate(t.Context(), "a"), http.StatusConflict, 0)
	_, err := b.read(t.Context(), "a", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
	_, err = b.read(t.Context(), "a", withToken(re.RawResponse.Header.Get("x-ms-session-token")))
	require.NoError(t, err)

	b.account.SetLag(cosmosdb.Lag{Frozen: true})
	_, err = b.read(t.Context(), "a", nil)
	require.NoError(t, err, "freezing again begins here")
	_, err = b.container.DeleteItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", nil)
	require.NoError(t, err)
	_, err = b.read(t.Context(), "a", nil)
	require.NoError(t, err, "a deleted document is still there")
	b.account.SetLag(cosmosdb.Lag{})
	_, err = b.read(t.Context(), "a", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
}

func TestAReplicaIsBehindByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		b.account.SetLag(cosmosdb.Lag{By: 200 * time.Millisecond})
		pk := azcosmos.NewPartitionKeyString("a")
		b.create(t, "a", `{"id":"a","n":1}`)
		time.Sleep(time.Second)
		_, err := b.container.ReplaceItem(t.Context(), pk, "a", []byte(`{"id":"a","n":2}`), nil)
		require.NoError(t, err)
		resp, err := b.read(t.Context(), "a", nil)
		require.NoError(t, err)
		require.Contains(t, string(resp.Value), `"n":1`)
		require.Equal(t, "0:-1#1", *resp.SessionToken)
		time.Sleep(200 * time.Millisecond)
		resp, err = b.read(t.Context(), "a", nil)
		require.NoError(t, err)
		require.Contains(t, string(resp.Value), `"n":2`)
		require.Equal(t, "0:-1#2", *resp.SessionToken)
	})
}

func TestATokenThatTheReplicaHasNotReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{client: once()})
		b.create(t, "a", `{"id":"a"}`)
		time.Sleep(time.Second)
		b.account.SetLag(cosmosdb.Lag{By: time.Second, Tokens: true})
		b.create(t, "b", `{"id":"b"}`)
		_, err := b.read(t.Context(), "b", withToken("0:-1#2"))
		re := requireStatus(t, err, http.StatusNotFound, 1002)
		require.Equal(t, "0:-1#1", re.RawResponse.Header.Get("x-ms-session-token"), "the replica tells how far it is")
		time.Sleep(time.Second)
		_, err = b.read(t.Context(), "b", withToken("0:-1#2"))
		require.NoError(t, err)
		_, err = b.read(t.Context(), "b", withToken("0:-1#99"))
		requireStatus(t, err, http.StatusNotFound, 1002)
		_, err = b.read(t.Context(), "b", withToken("nonsense"))
		requireStatus(t, err, http.StatusBadRequest, 0)
	})
}

func TestALaggingReadByPlanSeesTheVersionBefore(t *testing.T) {
	b := newBench(t, setup{})
	lag := func() { b.faults.Add(fault.On(history.ReadDocument).Before(fault.Action{Kind: fault.Lag})) }
	b.create(t, "a", `{"id":"a","n":1}`)
	b.create(t, "z", `{"id":"z"}`)
	lag()
	_, err := b.read(t.Context(), "a", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
	_, err = b.read(t.Context(), "a", nil)
	require.NoError(t, err)

	_, err = b.container.UpsertItem(t.Context(), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"a","n":2}`), nil)
	require.NoError(t, err)
	lag()
	resp, err := b.read(t.Context(), "a", nil)
	require.NoError(t, err)
	require.Contains(t, string(resp.Value), `"n":1`)
	// The client asks again by itself after a 404/1002.
	b.faults.Add(fault.On(history.ReadDocument).Times(2).Before(fault.Action{Kind: fault.Lag}))
	_, err = b.read(t.Context(), "a", withToken("0:-1#3"))
	requireStatus(t, err, http.StatusNotFound, 1002)
}

func TestABatchIsServedByThePrimary(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	b.account.SetLag(cosmosdb.Lag{Frozen: true, Tokens: true})
	_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc("a"), nil); x.CreateItem(doc("b"), nil) })
	require.NoError(t, err)
	resp, err := b.batch(t, func(x *azcosmos.TransactionalBatch) { x.ReadItem("a", nil) })
	require.NoError(t, err)
	require.True(t, resp.Success)
	require.Equal(t, 2, b.account.Count("shop", "orders"), "inspection sees the primary")
}

func TestAReplicaNeverShowsHalfABatch(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc("a"), nil); x.CreateItem(doc("b"), nil) })
	require.NoError(t, err)
	for _, want := range []int{0, 2} {
		if want == 0 {
			b.faults.Add(fault.On(history.QueryDocuments).Before(fault.Action{Kind: fault.Lag}))
		}
		require.Len(t, b.query(t, "select * from c", azcosmos.NewPartitionKeyString("p"), nil), want)
	}
}

func TestMoreVersionsThanAReplicaKeeps(t *testing.T) {
	b := newBench(t, setup{})
	b.create(t, "a", `{"id":"a","n":0}`)
	b.account.SetLag(cosmosdb.Lag{Frozen: true})
	pk := azcosmos.NewPartitionKeyString("a")
	for range 100 {
		_, err := b.container.UpsertItem(t.Context(), pk, []byte(`{"id":"a","n":1}`), nil)
		require.NoError(t, err)
	}
	_, err := b.read(t.Context(), "a", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
}
