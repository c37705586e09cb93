package cosmosdb_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
)

// query returns all results of a query as texts.
func (b *bench) query(t *testing.T, text string, pk azcosmos.PartitionKey, options *azcosmos.QueryOptions) []string {
	t.Helper()
	list := []string{}
	for p := b.container.NewQueryItemsPager(text, pk, options); p.More(); {
		page, err := p.NextPage(t.Context())
		require.NoError(t, err)
		require.Positive(t, page.RequestCharge)
		for _, item := range page.Items {
			list = append(list, string(item))
		}
	}
	return list
}

func (b *bench) queryError(t *testing.T, text string, pk azcosmos.PartitionKey) error {
	t.Helper()
	_, err := b.container.NewQueryItemsPager(text, pk, nil).NextPage(t.Context())
	return err
}

func newQueryBench(t *testing.T) *bench {
	b := newBench(t, setup{spec: byPK})
	for i := range 9 {
		for _, pk := range []string{"p", "q"} {
			require.NoError(t, b.account.Seed("shop", "orders", fmt.Sprintf(`{"id":"%s%d","pk":%q,"n":%d}`, pk, i, pk, 9-i)))
		}
	}
	return b
}

func TestQueriesPageThroughOnePartition(t *testing.T) {
	b := newQueryBench(t)
	p := azcosmos.NewPartitionKeyString("p")
	require.Equal(t, []string{`"p0"`, `"p1"`, `"p2"`, `"p3"`, `"p4"`, `"p5"`, `"p6"`, `"p7"`, `"p8"`},
		b.query(t, "SELECT VALUE c.id FROM c", p, &azcosmos.QueryOptions{PageSizeHint: 4}))
	require.Equal(t, []string{`"p8"`, `"p7"`, `"p6"`},
		b.query(t, "SELECT VALUE c.id FROM c WHERE c.n < 4 ORDER BY c.n", p, &azcosmos.QueryOptions{PageSizeHint: 2}))
	require.Equal(t, []string{`{"id":"p1"}`, `{"id":"p2"}`},
		b.query(t, "SELECT c.id FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 2", p, &azcosmos.QueryOptions{PageSizeHint: 1}))
	require.Equal(t, []string{`9`}, b.query(t, "SELECT VALUE COUNT(1) FROM c", p, nil))
}

func TestQueriesOverPartitionsAreJoinedOrRefused(t *testing.T) {
	b := newQueryBench(t)
	all := azcosmos.NewPartitionKey()
	require.Len(t, b.query(t, "SELECT * FROM c", all, &azcosmos.QueryOptions{PageSizeHint: 6}), 18)
	require.Len(t, b.query(t, "SELECT * FROM c WHERE c.pk = 'q' ORDER BY c.n", all, nil), 9)
	for _, text := range []string{"SELECT * FROM c ORDER BY c.n", "SELECT VALUE COUNT(1) FROM c", "SELECT TOP 1 * FROM c", "SELECT * FROM c OFFSET 1 LIMIT 1"} {
		require.ErrorContains(t, b.queryError(t, text, all), "cross partition query can not be directly served by the gateway")
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	b := newBench(t, setup{spec: byPK, mayMiss: true})
	p := azcosmos.NewPartitionKeyString("p")
	requireStatus(t, b.queryError(t, "SELEKT * FROM c", p), http.StatusBadRequest, 0)
	requireStatus(t, b.queryError(t, "SELECT * FROM c JOIN d IN c.lines", p), http.StatusNotImplemented, 0)
	require.Len(t, b.account.Refusals(), 1)
	requireStatus(t, b.queryError(t, "SELECT * FROM c", p.AppendString("too many")), http.StatusBadRequest, 1001)
	token := "bm9uc2Vuc2U="
	_, err := b.container.NewQueryItemsPager("SELECT * FROM c", p, &azcosmos.QueryOptions{ContinuationToken: &token}).NextPage(t.Context())
	requireStatus(t, err, http.StatusBadRequest, 0)
}

func TestAPageSurvivesChangesBetweenPages(t *testing.T) {
	b := newQueryBench(t)
	p := azcosmos.NewPartitionKeyString("p")
	pager := b.container.NewQueryItemsPager("SELECT VALUE c.id FROM c", p, &azcosmos.QueryOptions{PageSizeHint: 3})
	first, err := pager.NextPage(t.Context())
	require.NoError(t, err)
	require.Len(t, first.Items, 3)
	require.Equal(t, 1, b.account.DeleteDocument("shop", "orders", "p0"))
	second, err := pager.NextPage(t.Context())
	require.NoError(t, err)
	require.Equal(t, `"p3"`, string(second.Items[0]))
}

func TestReadManyFindsWhatIsThere(t *testing.T) {
	b := newBench(t, setup{spec: cosmosdb.ContainerSpec{PartitionKey: []string{"/a", "/b"}}})
	require.NoError(t, b.account.Seed("shop", "orders", `{"id":"1","a":"x","b":1}`))
	require.NoError(t, b.account.Seed("shop", "orders", `{"id":"1","a":"x","b":true}`))
	key := azcosmos.NewPartitionKeyString("x")
	resp, err := b.container.ReadManyItems(t.Context(), []azcosmos.ItemIdentity{
		{ID: "1", PartitionKey: key.AppendNumber(1)}, {ID: "1", PartitionKey: key.AppendBool(true)}, {ID: "2", PartitionKey: key.AppendNumber(1)},
	}, nil)
	require.NoError(t, err)
	require.Len(t, resp.Items, 2)
}

func TestTheChangeFeedShowsLatestVersionsInOrder(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	ranges, err := b.container.ReadFeedRanges(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, ranges, 1)
	options := &azcosmos.ChangeFeedOptions{FeedRange: &ranges[0], MaxItemCount: 2}
	feed := func() (ids []string, status int) {
		resp, err := b.container.ReadChangeFeed(t.Context(), options)
		require.NoError(t, err)
		options.Continuation = &resp.ContinuationToken
		for _, item := range resp.Items {
			ids = append(ids, idOf(t, item))
		}
		return ids, resp.RawResponse.StatusCode
	}
	ids, status := feed()
	require.Empty(t, ids)
	require.Equal(t, http.StatusNotModified, status)

	for _, id := range []string{"a", "b", "c"} {
		_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) { x.UpsertItem(doc(id), nil) })
		require.NoError(t, err)
	}
	_, err = b.batch(t, func(x *azcosmos.TransactionalBatch) {
		for _, id := range []string{"a", "d", "e"} {
			x.UpsertItem(doc(id), nil)
		}
	})
	require.NoError(t, err)
	require.Equal(t, 1, b.account.DeleteDocument("shop", "orders", "c"))

	ids, _ = feed()
	require.Equal(t, []string{"b", "a", "d", "e"}, ids, "a batch is not torn apart, a deleted document is not shown")
	ids, status = feed()
	require.Empty(t, ids)
	require.Equal(t, http.StatusNotModified, status)
}

func idOf(t *testing.T, item []byte) string {
	t.Helper()
	var d struct{ ID string }
	require.NoError(t, unmarshal(item, &d))
	return d.ID
}

func TestTheChangeFeedBeginsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{spec: byPK})
		put := func(id string) {
			_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc(id), nil) })
			require.NoError(t, err)
		}
		put("before")
		time.Sleep(time.Minute)
		since := time.Now()
		put("after")
		resp, err := b.container.ReadChangeFeed(t.Context(), &azcosmos.ChangeFeedOptions{StartFrom: &since, FeedRange: &azcosmos.FeedRange{MaxExclusive: "FF"}})
		require.NoError(t, err)
		require.Len(t, resp.Items, 1)
		require.Equal(t, "after", idOf(t, resp.Items[0]))
		tomorrow := since.Add(24 * time.Hour)
		resp, err = b.container.ReadChangeFeed(t.Context(), &azcosmos.ChangeFeedOptions{StartFrom: &tomorrow, FeedRange: &azcosmos.FeedRange{MaxExclusive: "FF"}})
		require.NoError(t, err)
		require.Equal(t, http.StatusNotModified, resp.RawResponse.StatusCode)
	})
}
