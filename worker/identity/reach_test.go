package identity_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/worker/identity"
)

// TestTheClientReachesTheDocumentOfEveryKey lets the unmodified client create, read, replace, batch and delete the
// documents of keys that were made to break it, against an account that checks signatures and refuses what the service's
// routing gateway refuses.
func TestTheClientReachesTheDocumentOfEveryKey(t *testing.T) {
	container, account := newContainer(t)
	keys := oddKeys()
	for _, k := range keys {
		id := k.DocumentID()
		pk := azcosmos.NewPartitionKeyString(id)
		_, err := container.CreateItem(t.Context(), pk, document(t, id, k, 1), nil)
		require.NoError(t, err, "create %s", k)
		_, err = container.CreateItem(t.Context(), pk, document(t, identity.PartDocumentID(id, "line/1"), k, 1), nil)
		require.NoError(t, err, "create a part of %s", k)
	}
	require.Equal(t, 2*len(keys), account.Count("shop", "orders"), "each key has documents of its own")
	for _, k := range keys {
		id := k.DocumentID()
		pk := azcosmos.NewPartitionKeyString(id)
		require.Equal(t, k.String(), read(t, container, id, id).Key)
		require.Equal(t, k.String(), read(t, container, id, identity.PartDocumentID(id, "line/1")).Key)
		_, err := container.ReplaceItem(t.Context(), pk, id, document(t, id, k, 2), nil)
		require.NoError(t, err, "replace %s", k)
		batch := container.NewTransactionalBatch(pk)
		batch.ReadItem(id, nil)
		batch.ReplaceItem(id, document(t, id, k, 3), nil)
		result, err := container.ExecuteTransactionalBatch(t.Context(), batch, nil)
		require.NoError(t, err, "batch %s", k)
		require.True(t, result.Success, "batch %s", k)
		require.Equal(t, 3, read(t, container, id, id).Turn)
	}
	for i, k := range keys {
		id := k.DocumentID()
		_, err := container.DeleteItem(t.Context(), azcosmos.NewPartitionKeyString(id), id, nil)
		require.NoError(t, err, "delete %s", k)
		require.Equal(t, 2*len(keys)-i-1, account.Count("shop", "orders"), "only its own document went with %s", k)
	}
	require.Empty(t, account.Refusals())
}

type stored struct {
	ID   string `json:"id"`
	PK   string `json:"orderId"`
	Key  string `json:"key"`
	Turn int    `json:"turn"`
}

func document(t *testing.T, id string, k identity.Key, turn int) []byte {
	t.Helper()
	text, err := json.Marshal(stored{ID: id, PK: k.DocumentID(), Key: k.String(), Turn: turn})
	require.NoError(t, err)
	return text
}

func read(t *testing.T, c *azcosmos.ContainerClient, pk, id string) stored {
	t.Helper()
	item, err := c.ReadItem(t.Context(), azcosmos.NewPartitionKeyString(pk), id, nil)
	require.NoError(t, err, "read %q", id)
	var s stored
	require.NoError(t, json.Unmarshal(item.Value, &s))
	require.Equal(t, id, s.ID)
	return s
}

func newContainer(t *testing.T) (*azcosmos.ContainerClient, *cosmosdb.Account) {
	t.Helper()
	account, err := cosmosdb.New(cosmosdb.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	require.NoError(t, account.CreateDatabase("shop"))
	require.NoError(t, account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "orders", PartitionKey: []string{"/orderId"}}))
	credential, err := azcosmos.NewKeyCredential(account.Key())
	require.NoError(t, err)
	// The client caches by host name, so the test has one of its own.
	client, err := azcosmos.NewClientWithKey("http://identity.test:8081", credential,
		&azcosmos.ClientOptions{ClientOptions: policy.ClientOptions{Transport: account.Transport()}})
	require.NoError(t, err)
	container, err := client.NewContainer("shop", "orders")
	require.NoError(t, err)
	return container, account
}

func oddKeys() []identity.Key {
	seen := map[identity.Key]bool{}
	var keys []identity.Key
	add := func(k identity.Key) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	for _, text := range []string{
		"1042", ".", "..", "...", "PO/2024/0017", "order#1?x=2", "order", "order#1", "12345", "12345 ", " 12345", "12345\t", "12345\r\n", "12345\u00a0",
		"user@example.test", "Ard Accès", "a`b", "請求-1", "😀", "e\u0301", "é", `a\b`, `victim","x":"y`, `\u0041`, "%2F", "~2F", "a%20b", "\x00", "\x7f", "\xff",
		"~ulong.42", "~for.a.b", "../../colls/orders", "docs", strings.Repeat("A", 128), strings.Repeat("/", 128), strings.Repeat("請", 128),
		strings.Repeat("A", 200), strings.Repeat("A", 201), "+", "a+b", "a b", "&=$@:", "",
	} {
		add(identity.Text(text))
	}
	add(identity.Key{Kind: identity.Ulong, Value: "42"})
	add(identity.Key{Kind: identity.Binary, Value: "00ff10"})
	add(identity.Key{Kind: identity.CloudEvent, Source: "/shop", Value: "e1"})
	add(identity.Key{Consumer: "bill.ing/é", Kind: identity.String, Value: "1"})
	for c := range 128 {
		add(identity.Text(fmt.Sprintf("%c", c)))
		add(identity.Text(fmt.Sprintf("a%cb", c)))
	}
	random := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		add(randomKey(random))
	}
	return keys
}
