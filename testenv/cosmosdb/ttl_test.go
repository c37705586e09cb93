package cosmosdb_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/history"
)

func TestAnExpiredDocumentIsGoneAndCanBeCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{spec: cosmosdb.ContainerSpec{DefaultTTL: 3600}})
		b.create(t, "a", `{"id":"a"}`)
		b.create(t, "short", `{"id":"short","ttl":10}`)
		b.create(t, "ever", `{"id":"ever","ttl":-1}`)
		first, err := b.read(t.Context(), "a", nil)
		require.NoError(t, err)

		time.Sleep(10 * time.Second)
		_, err = b.read(t.Context(), "short", nil)
		requireStatus(t, err, http.StatusNotFound, 0)
		time.Sleep(3589 * time.Second)
		_, err = b.read(t.Context(), "a", nil)
		require.NoError(t, err)
		time.Sleep(time.Second)

		pk := azcosmos.NewPartitionKeyString("a")
		// An expired document is missing for a conditional write as well: 404, not 412 and not 200.
		_, err = b.container.ReplaceItem(t.Context(), pk, "a", []byte(`{"id":"a"}`), &azcosmos.ItemOptions{IfMatchEtag: &first.ETag})
		requireStatus(t, err, http.StatusNotFound, 0)
		_, err = b.container.DeleteItem(t.Context(), pk, "a", nil)
		requireStatus(t, err, http.StatusNotFound, 0)
		b.create(t, "a", `{"id":"a","again":true}`)
		require.Equal(t, 2, b.account.Count("shop", "orders"))
		require.Equal(t, 2, b.countEvents(history.ExpireDocument))
		require.NoError(t, history.Check(b.history.Events(), history.Expect{}))
	})
}

func TestEveryWriteRestartsTheTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{spec: cosmosdb.ContainerSpec{DefaultTTL: -1}})
		b.create(t, "a", `{"id":"a","ttl":100,"n":1}`)
		b.create(t, "b", `{"id":"b"}`)
		p := azcosmos.PatchOperations{}
		p.AppendIncrement("/n", 1)
		for range 3 {
			time.Sleep(99 * time.Second)
			_, err := b.container.PatchItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", p, nil)
			require.NoError(t, err)
		}
		time.Sleep(100 * time.Second)
		_, err := b.read(t.Context(), "a", nil)
		requireStatus(t, err, http.StatusNotFound, 0)
		time.Sleep(10000 * time.Hour)
		require.Equal(t, 1, b.account.Count("shop", "orders"))
	})
}

func TestATimeToLiveIsInertWhereTheContainerHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		b.create(t, "a", `{"id":"a","ttl":1}`)
		time.Sleep(time.Hour)
		_, err := b.read(t.Context(), "a", nil)
		require.NoError(t, err)
	})
}

func TestAnExpiredDocumentMayBlockUntilItIsPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{options: cosmosdb.Options{ExpiredBlocksCreate: true}, spec: cosmosdb.ContainerSpec{DefaultTTL: 10}})
		b.create(t, "a", `{"id":"a"}`)
		time.Sleep(10 * time.Second)
		pk := azcosmos.NewPartitionKeyString("a")
		_, err := b.container.CreateItem(t.Context(), pk, []byte(`{"id":"a"}`), nil)
		requireStatus(t, err, http.StatusConflict, 0)
		_, err = b.read(t.Context(), "a", nil)
		requireStatus(t, err, http.StatusNotFound, 0)
		require.Equal(t, 1, b.account.Purge())
		require.Zero(t, b.account.Purge())
		b.create(t, "a", `{"id":"a"}`)
	})
}
