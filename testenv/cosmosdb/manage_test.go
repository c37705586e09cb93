package cosmosdb_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/history"
)

// seenHeaders keeps the headers of the last request.
type seenHeaders struct{ last http.Header }

func (s *seenHeaders) Do(r *policy.Request) (*http.Response, error) {
	s.last = r.Raw().Header.Clone()
	return r.Next()
}

func TestSeveralWriteRegionsAreAnnounced(t *testing.T) {
	for _, multi := range []bool{false, true} {
		seen := &seenHeaders{}
		options := once()
		options.PerRetryPolicies = []policy.Policy{seen}
		b := newBench(t, setup{client: options, options: cosmosdb.Options{Regions: []string{"West Europe", "North Europe"}}})
		b.account.SetMultiWrite(multi)
		b.create(t, "a", `{"id":"a"}`)
		require.Equal(t, multi, seen.last.Get("x-ms-cosmos-allow-tentative-writes") == "true")
	}
}

// accountReply keeps what the account says of itself.
type accountReply struct{ body []byte }

func (a *accountReply) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	if err == nil && r.Raw().URL.Path == "/" {
		a.body, err = io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(a.body))
	}
	return resp, err
}

func TestTheAccountDescribesItself(t *testing.T) {
	reply := &accountReply{}
	options := once()
	options.PerRetryPolicies = []policy.Policy{reply}
	b := newBench(t, setup{client: options, options: cosmosdb.Options{Name: "mine"}})
	b.account.SetRegions("Here", "There")
	b.create(t, "a", `{"id":"a"}`)
	var said struct {
		ID                           string
		WritableLocations            []struct{ Name, DatabaseAccountEndpoint string }
		ReadableLocations            []struct{ Name, DatabaseAccountEndpoint string }
		EnableMultipleWriteLocations bool
		UserConsistencyPolicy        struct{ DefaultConsistencyLevel string }
	}
	require.NoError(t, unmarshal(reply.body, &said))
	require.Equal(t, "mine", said.ID)
	require.Len(t, said.WritableLocations, 1)
	require.Len(t, said.ReadableLocations, 2)
	require.Equal(t, "There", said.ReadableLocations[1].Name)
	require.Equal(t, endpoint(t), said.WritableLocations[0].DatabaseAccountEndpoint)
	require.Equal(t, "Session", said.UserConsistencyPolicy.DefaultConsistencyLevel)
}

func TestContainersKeepWhatTheyAreGiven(t *testing.T) {
	b := newBench(t, setup{})
	db, err := b.client.NewDatabase("shop")
	require.NoError(t, err)
	ttl := int32(-1)
	made, err := db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID:                     "more",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
		DefaultTimeToLive:      &ttl,
		UniqueKeyPolicy:        &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}}},
	}, nil)
	require.NoError(t, err)
	more, err := db.NewContainer("more")
	require.NoError(t, err)
	read, err := more.Read(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, made.ContainerProperties, read.ContainerProperties)
	require.Equal(t, 2, read.ContainerProperties.PartitionKeyDefinition.Version)
	require.Equal(t, ttl, *read.ContainerProperties.DefaultTimeToLive)
	require.Equal(t, "/email", read.ContainerProperties.UniqueKeyPolicy.UniqueKeys[0].Paths[0])

	_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{ID: "more", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}, nil)
	requireStatus(t, err, http.StatusConflict, 0)

	changed := read.ContainerProperties
	ten := int32(10)
	changed.DefaultTimeToLive = &ten
	_, err = more.Replace(t.Context(), *changed, nil)
	require.NoError(t, err)
	changed.PartitionKeyDefinition.Paths = []string{"/other"}
	_, err = more.Replace(t.Context(), *changed, nil)
	requireStatus(t, err, http.StatusBadRequest, 0)
}

func TestContainersThatAreRefused(t *testing.T) {
	b := newBench(t, setup{})
	db, err := b.client.NewDatabase("shop")
	require.NoError(t, err)
	ttl, zero := int32(10), int32(0)
	key := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}
	for name, p := range map[string]azcosmos.ContainerProperties{
		"no partition key":        {ID: "x"},
		"a path without slash":    {ID: "x", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"pk"}}},
		"four levels":             {ID: "x", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/a", "/b", "/c", "/d"}}},
		"a third key version":     {ID: "x", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/a"}, Version: 3}},
		"a time to live of zero":  {ID: "x", PartitionKeyDefinition: key, DefaultTimeToLive: &zero},
		"expiry without an index": {ID: "x", PartitionKeyDefinition: key, DefaultTimeToLive: &ttl, IndexingPolicy: &azcosmos.IndexingPolicy{IndexingMode: azcosmos.IndexingModeNone}},
		"no id":                   {PartitionKeyDefinition: key},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := db.CreateContainer(t.Context(), p, nil)
			requireStatus(t, err, http.StatusBadRequest, 0)
		})
	}
	_, err = b.client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "shop"}, nil)
	requireStatus(t, err, http.StatusConflict, 0)
	nowhere, err := b.client.NewDatabase("nowhere")
	require.NoError(t, err)
	_, err = nowhere.CreateContainer(t.Context(), azcosmos.ContainerProperties{ID: "x", PartitionKeyDefinition: key}, nil)
	requireStatus(t, err, http.StatusNotFound, 0)
}

func TestIndexingNothingMakesCreatesCheaper(t *testing.T) {
	charge := func(s cosmosdb.ContainerSpec) float32 {
		b := newBench(t, setup{spec: s})
		resp, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"a","b":1,"c":[1,2,3],"d":{"e":"f"}}`), nil)
		require.NoError(t, err)
		return resp.RequestCharge
	}
	require.InDelta(t, 5, charge(cosmosdb.ContainerSpec{IndexNothing: true}), 0.01)
	require.Greater(t, charge(cosmosdb.ContainerSpec{}), float32(6))
}

func TestSeedsAndInspection(t *testing.T) {
	b := newBench(t, setup{})
	require.NoError(t, b.account.CreateDatabase("other"))
	require.ErrorContains(t, b.account.CreateDatabase("other"), "already exists")
	require.ErrorContains(t, b.account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "orders"}), "already exists")
	require.ErrorContains(t, b.account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "bad", PartitionKey: []string{"x"}}), "slash")
	require.ErrorContains(t, b.account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "bad", Members: map[string]string{"x": "{"}}), "x")
	require.NoError(t, b.account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "extra", Members: map[string]string{"defaultTtl": "5"}}))

	require.NoError(t, b.account.Seed("shop", "orders", `{"id":"a","n":1}`))
	require.NoError(t, b.account.Seed("shop", "orders", `{"id":"a","n":2}`))
	require.ErrorContains(t, b.account.Seed("shop", "orders", `{"n":2}`), "400")
	require.ErrorContains(t, b.account.Seed("shop", "nowhere", `{"id":"a"}`), "does not exist")
	seeded := b.history.Events()
	require.Len(t, seeded, 2)
	require.Equal(t, []string{history.CreateDocument, history.UpsertDocument}, []string{seeded[0].Op, seeded[1].Op})
	require.Contains(t, string(seeded[1].Writes[0].Body), `"n":2`)
	d, ok := b.account.Document("shop", "orders", "a")
	require.True(t, ok)
	require.Contains(t, d.Body, `"n":2`)
	require.Equal(t, 1, b.account.Count("shop", "orders"))
	require.Equal(t, 1, b.account.DeleteDocument("shop", "orders", "a"))
	require.Zero(t, b.account.DeleteDocument("shop", "orders", "a"))
	require.Zero(t, b.account.Count("shop", "nowhere"))
	require.Equal(t, 1, b.countEvents("cosmosdb.delete"))
}

func TestDatabasesComeAndGo(t *testing.T) {
	b := newBench(t, setup{})
	tp := azcosmos.NewManualThroughputProperties(500)
	_, err := b.client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "temp"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &tp})
	require.NoError(t, err)
	temp, err := b.client.NewDatabase("temp")
	require.NoError(t, err)
	read, err := temp.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	got, _ := read.ThroughputProperties.ManualThroughput()
	require.EqualValues(t, 500, got)
	_, err = temp.ReplaceThroughput(t.Context(), azcosmos.NewAutoscaleThroughputProperties(4000), nil)
	require.NoError(t, err)
	read, err = temp.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	most, _ := read.ThroughputProperties.AutoscaleMaxThroughput()
	require.EqualValues(t, 4000, most)

	ids := []string{}
	for p := b.client.NewQueryDatabasesPager("SELECT * FROM root r", nil); p.More(); {
		page, err := p.NextPage(t.Context())
		require.NoError(t, err)
		for _, d := range page.Databases {
			ids = append(ids, d.ID)
		}
	}
	require.Equal(t, []string{"shop", "temp"}, ids)
	stale := azcore.ETag(`"stale"`)
	_, err = temp.Delete(t.Context(), &azcosmos.DeleteDatabaseOptions{IfMatchEtag: &stale})
	requireStatus(t, err, http.StatusPreconditionFailed, 0)
	_, err = temp.Delete(t.Context(), nil)
	require.NoError(t, err)
	_, err = temp.Read(t.Context(), nil)
	requireStatus(t, err, http.StatusNotFound, 0)

	low := azcosmos.NewManualThroughputProperties(10)
	_, err = b.client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "low"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &low})
	requireStatus(t, err, http.StatusBadRequest, 0)
}

func TestAContainerThatIsMadeAgainIsEmpty(t *testing.T) {
	b := newBench(t, setup{})
	b.create(t, "a", `{"id":"a"}`)
	before, err := b.container.Read(t.Context(), nil)
	require.NoError(t, err)
	_, err = b.container.Delete(t.Context(), nil)
	require.NoError(t, err)
	_, err = b.read(t.Context(), "a", nil)
	requireStatus(t, err, http.StatusNotFound, 1003)
	require.NoError(t, b.account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "orders"}))
	_, err = b.read(t.Context(), "a", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
	after, err := b.container.Read(t.Context(), nil)
	require.NoError(t, err)
	require.NotEqual(t, before.ContainerProperties.ResourceID, after.ContainerProperties.ResourceID)
}

func TestTheFirstKeyVersionLooksAtTheBeginningOnly(t *testing.T) {
	long := strings.Repeat("k", 101)
	for version, want := range map[int]int{1: http.StatusConflict, 2: 0} {
		b := newBench(t, setup{spec: cosmosdb.ContainerSpec{PartitionKey: []string{"/pk"}, KeyVersion: version, UniqueKeys: [][]string{{"/email"}}}})
		require.NoError(t, b.account.Seed("shop", "orders", `{"id":"1","pk":"`+long+`A","email":"x"}`))
		_, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(long+"B"), []byte(`{"id":"1","pk":"`+long+`B","email":"x"}`), nil)
		if want == 0 {
			require.NoError(t, err)
		} else {
			requireStatus(t, err, want, 0)
		}
	}
}
