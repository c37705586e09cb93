package cosmosdb_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/history"
)

var byPK = cosmosdb.ContainerSpec{PartitionKey: []string{"/pk"}}

// batch executes what fill puts into a batch for the partition "p".
func (b *bench) batch(t *testing.T, fill func(*azcosmos.TransactionalBatch)) (azcosmos.TransactionalBatchResponse, error) {
	t.Helper()
	batch := b.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString("p"))
	fill(&batch)
	return b.container.ExecuteTransactionalBatch(t.Context(), batch, nil)
}

// conditional sets the state to PAID where a condition holds.
func conditional(condition string) azcosmos.PatchOperations {
	p := azcosmos.PatchOperations{}
	p.AppendSet("/state", "PAID")
	p.SetCondition(condition)
	return p
}

func TestAChangeAndItsRecordAreOneBatch(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc("order"), nil) })
	require.NoError(t, err)
	pay := func() (azcosmos.TransactionalBatchResponse, error) {
		return b.batch(t, func(x *azcosmos.TransactionalBatch) {
			x.CreateItem(doc("record"), nil)
			x.PatchItem("order", conditional("from c where NOT IS_DEFINED(c.state)"), nil)
		})
	}
	resp, err := pay()
	require.NoError(t, err)
	require.Equal(t, []int{201, 200}, codes(resp))
	sum := resp.OperationResults[0].RequestCharge + resp.OperationResults[1].RequestCharge
	require.InDelta(t, sum, resp.RequestCharge, 0.01)
	again, err := pay()
	require.NoError(t, err)
	require.Equal(t, []int{409, 424}, codes(again), "the record decides before the condition is looked at")
	require.Zero(t, again.OperationResults[1].RequestCharge, "what did not run costs nothing; the culprit has it all")
	require.InDelta(t, 1.24, again.RequestCharge, 0.001)
	order, _ := b.account.Document("shop", "orders", "order")
	require.Contains(t, order.Body, `"state":"PAID"`)
}

func codes(r azcosmos.TransactionalBatchResponse) []int {
	list := []int{}
	for _, o := range r.OperationResults {
		list = append(list, int(o.StatusCode))
	}
	return list
}

func doc(id string) []byte { return fmt.Appendf(nil, `{"id":%q,"pk":"p"}`, id) }

func TestAFailedBatchLeavesNothing(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc("taken"), nil); x.CreateItem(doc("other"), nil) })
	require.NoError(t, err)
	taken, _ := b.account.Document("shop", "orders", "taken")
	stale := azcore.ETag(`"stale"`)
	current := azcore.ETag(taken.ETag)
	unknown := azcosmos.PatchOperations{}
	unknown.AppendReplace("/none", 1)
	tests := []struct {
		name string
		fill func(*azcosmos.TransactionalBatch)
		want []int
	}{
		{"the last create meets a document", func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc("taken"), nil) }, []int{424, 424, 409}},
		{"a document twice", func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc("new1"), nil) }, []int{424, 424, 409}},
		{"a replace of nothing", func(x *azcosmos.TransactionalBatch) { x.ReplaceItem("none", doc("none"), nil) }, []int{424, 424, 404}},
		{"a read of nothing", func(x *azcosmos.TransactionalBatch) { x.ReadItem("none", nil) }, []int{424, 424, 404}},
		{"a stale ETag", func(x *azcosmos.TransactionalBatch) {
			x.ReplaceItem("taken", doc("taken"), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &stale})
		}, []int{424, 424, 412}},
		{"a patch whose condition is not met", func(x *azcosmos.TransactionalBatch) {
			x.PatchItem("taken", conditional("from c where c.state = 'OPEN'"), nil)
		}, []int{424, 424, 412}},
		{"a patch whose condition holds and whose ETag is stale", func(x *azcosmos.TransactionalBatch) {
			x.PatchItem("taken", conditional("from c where c.id = 'taken'"), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &stale})
		}, []int{424, 424, 412}},
		{"a patch whose condition the batch itself breaks", func(x *azcosmos.TransactionalBatch) {
			x.PatchItem("taken", conditional("from c where NOT IS_DEFINED(c.state)"), nil)
			x.PatchItem("taken", conditional("from c where NOT IS_DEFINED(c.state)"), nil)
		}, []int{424, 424, 424, 412}},
		{"an ETag that the batch itself makes stale", func(x *azcosmos.TransactionalBatch) {
			x.ReplaceItem("taken", doc("taken"), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &current})
			x.DeleteItem("taken", &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &current})
		}, []int{424, 424, 424, 412}},
		{"a document of another partition", func(x *azcosmos.TransactionalBatch) { x.CreateItem([]byte(`{"id":"x","pk":"q"}`), nil) }, []int{424, 424, 400}},
		{"a document above 2 MB is too large for the batch too, one that cannot be patched is not", func(x *azcosmos.TransactionalBatch) {
			x.PatchItem("taken", unknown, nil)
		}, []int{424, 424, 400}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := b.account.Documents("shop", "orders")
			resp, err := b.batch(t, func(x *azcosmos.TransactionalBatch) {
				x.CreateItem(doc("new1"), nil)
				x.UpsertItem(doc("other"), nil)
				tt.fill(x)
			})
			require.NoError(t, err)
			require.False(t, resp.Success)
			require.Equal(t, http.StatusMultiStatus, resp.RawResponse.StatusCode)
			require.Equal(t, tt.want, codes(resp))
			require.Positive(t, resp.RequestCharge)
			require.NotEmpty(t, resp.SessionToken)
			require.Equal(t, before, b.account.Documents("shop", "orders"))
		})
	}
}

func TestABatchSeesItsOwnWrites(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	resp, err := b.batch(t, func(x *azcosmos.TransactionalBatch) {
		x.CreateItem(doc("a"), nil)
		x.DeleteItem("a", nil)
		x.CreateItem([]byte(`{"id":"a","pk":"p","n":2}`), nil)
		x.ReadItem("a", nil)
	})
	require.NoError(t, err)
	require.True(t, resp.Success)
	require.Equal(t, []int{201, 204, 201, 200}, codes(resp))
	require.Contains(t, string(resp.OperationResults[3].ResourceBody), `"n":2`)
	require.Equal(t, 1, b.account.Count("shop", "orders"))
}

func TestBatchesThatAreRefusedAsAWhole(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) {
		for i := range 101 {
			x.CreateItem(doc(fmt.Sprint(i)), nil)
		}
	})
	requireStatus(t, err, http.StatusBadRequest, 0)
	large := fmt.Appendf(nil, `{"id":"x","pk":"p","x":%q}`, strings.Repeat("x", 1<<20))
	_, err = b.batch(t, func(x *azcosmos.TransactionalBatch) { x.CreateItem(large, nil); x.UpsertItem(large, nil) })
	requireStatus(t, err, http.StatusRequestEntityTooLarge, 0)
	require.Zero(t, b.account.Count("shop", "orders"))

	resp, err := b.batch(t, func(x *azcosmos.TransactionalBatch) {
		for i := range 100 {
			x.CreateItem(doc(fmt.Sprint(i)), nil)
		}
	})
	require.NoError(t, err)
	require.True(t, resp.Success)
	require.Equal(t, 100, b.account.Count("shop", "orders"))
}

func TestConcurrentBatchesNeverMix(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	for round := range 50 {
		root := fmt.Sprintf("root-%d", round)
		var wins sync.Map
		var wg sync.WaitGroup
		for _, who := range []string{"A", "B"} {
			wg.Go(func() {
				batch := b.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString("p"))
				batch.CreateItem(doc(root+"-child-"+who), nil)
				batch.CreateItem(doc(root), nil)
				resp, err := b.container.ExecuteTransactionalBatch(t.Context(), batch, nil)
				if err == nil {
					wins.Store(who, resp.Success)
				}
			})
		}
		wg.Wait()
		a, _ := wins.Load("A")
		other, _ := wins.Load("B")
		require.NotNil(t, a)
		require.NotNil(t, other)
		require.NotEqual(t, a, other, "exactly one batch wins")
		_, childA := b.account.Document("shop", "orders", root+"-child-A")
		_, childB := b.account.Document("shop", "orders", root+"-child-B")
		require.Equal(t, a, childA)
		require.Equal(t, other, childB)
	}
}

func TestABatchIsOneEventOfTheHistory(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	for range 2 {
		_, err := b.batch(t, func(x *azcosmos.TransactionalBatch) {
			x.CreateItem(doc("guard"), nil)
			x.UpsertItem(doc("line"), nil)
		})
		require.NoError(t, err)
	}
	var seen []history.Event
	for _, e := range b.history.Events() {
		if e.Op == history.ExecuteBatch {
			seen = append(seen, e)
		}
	}
	require.Len(t, seen, 2)
	require.True(t, seen[0].Effect)
	require.Equal(t, "guard", seen[0].Key)
	require.Equal(t, `"p"`, seen[0].Partition)
	require.Equal(t, "shop/orders", seen[0].Entity)
	require.Equal(t, []string{"guard", "line"}, seen[0].Documents)
	require.False(t, seen[1].Effect)
	require.Equal(t, http.StatusMultiStatus, seen[1].Status)
	require.Empty(t, seen[1].Documents)
	require.NotEmpty(t, seen[1].Activity)
}
