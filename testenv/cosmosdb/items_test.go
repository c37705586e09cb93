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
)

func TestAStaleETagChangesNothing(t *testing.T) {
	b := newBench(t, setup{})
	b.create(t, "a", `{"id":"a","n":1}`)
	pk := azcosmos.NewPartitionKeyString("a")
	first, err := b.read(t.Context(), "a", nil)
	require.NoError(t, err)
	second, err := b.container.ReplaceItem(t.Context(), pk, "a", []byte(`{"id":"a","n":2}`), &azcosmos.ItemOptions{IfMatchEtag: &first.ETag})
	require.NoError(t, err)
	require.NotEqual(t, first.ETag, second.ETag)

	stale := &azcosmos.ItemOptions{IfMatchEtag: &first.ETag}
	patch := azcosmos.PatchOperations{}
	patch.AppendSet("/n", 9)
	for name, attempt := range map[string]func() error{
		"replace": func() error {
			_, err := b.container.ReplaceItem(t.Context(), pk, "a", []byte(`{"id":"a","n":9}`), stale)
			return err
		},
		"upsert": func() error {
			_, err := b.container.UpsertItem(t.Context(), pk, []byte(`{"id":"a","n":9}`), stale)
			return err
		},
		"patch": func() error {
			_, err := b.container.PatchItem(t.Context(), pk, "a", patch, stale)
			return err
		},
		"delete": func() error {
			_, err := b.container.DeleteItem(t.Context(), pk, "a", stale)
			return err
		},
	} {
		requireStatus(t, attempt(), http.StatusPreconditionFailed, 0)
		now, err := b.read(t.Context(), "a", nil)
		require.NoError(t, err, name)
		require.Equal(t, second.ETag, now.ETag, name)
	}
	current := azcore.ETagAny
	_, err = b.container.DeleteItem(t.Context(), pk, "a", &azcosmos.ItemOptions{IfMatchEtag: &current})
	require.NoError(t, err)
	_, err = b.container.DeleteItem(t.Context(), pk, "a", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
}

func TestDocumentsThatAreRefused(t *testing.T) {
	nested := func(n int) string {
		return `{"id":"a","x":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}"
	}
	tests := []struct {
		name, key, document string
		status, substatus   int
	}{
		{"no JSON", "a", `{"id":"a"`, 400, 0},
		{"an array", "a", `["a"]`, 400, 0},
		{"no id", "a", `{"x":1}`, 400, 0},
		{"an empty id", "a", `{"id":""}`, 400, 0},
		{"an id that is a number", "a", `{"id":1}`, 400, 0},
		{"an id of 1024 bytes", strings.Repeat("a", 1024), `{"id":"` + strings.Repeat("a", 1024) + `"}`, 400, 0},
		{"a partition key that is not the document's", "b", `{"id":"a"}`, 400, 1001},
		{"a partition key above 2048 bytes", strings.Repeat("a", 2049), `{"id":"` + strings.Repeat("a", 2049) + `"}`, 400, 0},
		{"129 levels", "a", nested(128), 400, 0},
		{"more than 2 MB", "a", `{"id":"a","x":"` + strings.Repeat("x", 2<<20) + `"}`, 413, 0},
		{"far more than 2 MB", "a", `{"id":"a","x":"` + strings.Repeat("x", 9<<20) + `"}`, 413, 0},
		{"a number that no double holds", "a", `{"id":"a","x":1e999}`, 400, 0},
		{"not UTF-8", "a", "{\"id\":\"a\",\"x\":\"\xff\"}", 400, 0},
		{"a time to live of zero", "a", `{"id":"a","ttl":0}`, 400, 0},
		{"a time to live of null", "a", `{"id":"a","ttl":null}`, 400, 0},
		{"a time to live of half a second", "a", `{"id":"a","ttl":0.5}`, 400, 0},
		{"a time to live above 31 bits", "a", `{"id":"a","ttl":2147483648}`, 400, 0},
	}
	b := newBench(t, setup{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(tt.key), []byte(tt.document), nil)
			requireStatus(t, err, tt.status, tt.substatus)
			require.Zero(t, b.account.Count("shop", "orders"))
		})
	}
	b.create(t, "a", nested(127))
	b.create(t, strings.Repeat("b", 1023), `{"id":"`+strings.Repeat("b", 1023)+`"}`)
	b.create(t, "c", `{"id":"c","x":"`+strings.Repeat("x", 2<<20-20)+`"}`)
	_, err := b.container.ReplaceItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", []byte(`{"id":"other"}`), nil)
	requireStatus(t, err, http.StatusBadRequest, 1001)
}

func TestAPartitionKeyMustFitTheContainer(t *testing.T) {
	b := newBench(t, setup{})
	_, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKey(), []byte(`{"id":"a"}`), nil)
	requireStatus(t, err, http.StatusBadRequest, 0)
	_, err = b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("a").AppendString("b"), []byte(`{"id":"a"}`), nil)
	requireStatus(t, err, http.StatusBadRequest, 1001)
	for _, unspeakable := range []string{"\U0001f600", "a\x01b", "a\x7f"} {
		_, err = b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(unspeakable), fmt.Appendf(nil, `{"id":%q}`, "x"), nil)
		requireStatus(t, err, http.StatusBadRequest, 0)
	}
}

func TestAMissingContainerIsNotAMissingDocument(t *testing.T) {
	b := newBench(t, setup{})
	missing, err := b.client.NewContainer("shop", "nowhere")
	require.NoError(t, err)
	_, err = missing.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"a"}`), nil)
	requireStatus(t, err, http.StatusNotFound, 1003)
	_, err = missing.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "a", nil)
	requireStatus(t, err, http.StatusNotFound, 1003)
	_, err = missing.Read(t.Context(), nil)
	requireStatus(t, err, http.StatusNotFound, 0)
}

func TestIdsThatTheRoutingGatewayCannotAddress(t *testing.T) {
	tests := []struct {
		id     string
		status int // of a point read after the create
	}{
		{"plain", 200}, {"in the middle", 200}, {" leading", 200}, {"a?b", 200}, {",=.:~+-@()^${}[]!_&'\"<>|", 200}, {"鱀", 200},
		{strings.Repeat("a", 255), 200},
		{"a/b", 401}, {`a\b`, 401}, {"a#b", 401}, {"trailing ", 401}, {"a%20b", 401}, {"%e9", 401},
		{"a\tb", 400}, {"a\r\n", 400}, {strings.Repeat("a", 261), 400}, {strings.Repeat("鱀", 100), 400},
		{"100%", 200}, {".", 401}, {"..", 401},
	}
	b := newBench(t, setup{spec: cosmosdb.ContainerSpec{PartitionKey: []string{"/pk"}}})
	pk := azcosmos.NewPartitionKeyString("p")
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%.20q answers %d", tt.id, tt.status), func(t *testing.T) {
			_, err := b.container.CreateItem(t.Context(), pk, fmt.Appendf(nil, `{"id":%s,"pk":"p"}`, quote(tt.id)), nil)
			require.NoError(t, err)
			_, stored := b.account.Document("shop", "orders", tt.id)
			require.True(t, stored)
			resp, err := b.container.ReadItem(t.Context(), pk, tt.id, nil)
			if tt.status == http.StatusOK {
				require.NoError(t, err)
				require.Contains(t, string(resp.Value), `{"id":`+quote(tt.id)+`,`)
				return
			}
			require.Error(t, err)
			re, ok := errorsAs(err)
			require.True(t, ok)
			require.Equal(t, tt.status, re.StatusCode)
		})
	}
	_, stored := b.account.Document("shop", "orders", "..")
	require.True(t, stored, "a delete of .. must not reach the container")
	_, err := b.container.DeleteItem(t.Context(), pk, "..", nil)
	requireStatus(t, err, http.StatusUnauthorized, 0)
}

func TestALongIdIsAnsweredWithAPage(t *testing.T) {
	b := newBench(t, setup{})
	_, err := b.read(t.Context(), strings.Repeat("a", 300), nil)
	re, ok := errorsAs(err)
	require.True(t, ok)
	require.Equal(t, http.StatusBadRequest, re.StatusCode)
	require.Contains(t, re.RawResponse.Header.Get("Content-Type"), "text/html")
}

func TestUniqueKeysHoldInALogicalPartition(t *testing.T) {
	b := newBench(t, setup{spec: cosmosdb.ContainerSpec{PartitionKey: []string{"/pk"}, UniqueKeys: [][]string{{"/email", "/kind"}}}})
	put := func(pk, document string) error {
		_, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(pk), []byte(document), nil)
		return err
	}
	require.NoError(t, put("p", `{"id":"1","pk":"p","email":"x","kind":1}`))
	requireStatus(t, put("p", `{"id":"2","pk":"p","email":"x","kind":1}`), http.StatusConflict, 0)
	require.NoError(t, put("p", `{"id":"2","pk":"p","email":"x","kind":2}`))
	require.NoError(t, put("q", `{"id":"1","pk":"q","email":"x","kind":1}`))
	require.NoError(t, put("p", `{"id":"3","pk":"p"}`))
	requireStatus(t, put("p", `{"id":"4","pk":"p","email":null}`), http.StatusConflict, 0)

	pk := azcosmos.NewPartitionKeyString("p")
	_, err := b.container.ReplaceItem(t.Context(), pk, "2", []byte(`{"id":"2","pk":"p","email":"x","kind":1}`), nil)
	requireStatus(t, err, http.StatusConflict, 0)
	_, err = b.container.ReplaceItem(t.Context(), pk, "1", []byte(`{"id":"1","pk":"p","email":"x","kind":1,"more":true}`), nil)
	require.NoError(t, err)

	// A 409 by a unique key belongs to another id: the read finds nothing.
	_, err = b.container.ReadItem(t.Context(), pk, "4", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
}

func TestOneOfManyConcurrentCreatesWins(t *testing.T) {
	b := newBench(t, setup{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	statuses := map[int]int{}
	for i := range 50 {
		wg.Go(func() {
			_, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("a"), fmt.Appendf(nil, `{"id":"a","n":%d}`, i), nil)
			status := http.StatusCreated
			if re, ok := errorsAs(err); ok {
				status = re.StatusCode
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	wg.Wait()
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: 49}, statuses)
	require.Equal(t, 1, b.account.Count("shop", "orders"))
}

func TestAPatchAppliesAllStepsOrNone(t *testing.T) {
	b := newBench(t, setup{})
	b.create(t, "a", `{"id":"a","n":1,"list":[1,2],"o":{"x":1},"state":"open"}`)
	pk := azcosmos.NewPartitionKeyString("a")
	content := &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}

	p := azcosmos.PatchOperations{}
	p.AppendIncrement("/n", 2)
	p.AppendAdd("/list/1", 9)
	p.AppendAdd("/list/-", 3)
	p.AppendSet("/o/y", "new")
	p.AppendRemove("/o/x")
	p.AppendReplace("/state", "closed")
	p.SetCondition("from c where c.state = 'open' and c.n < 2")
	resp, err := b.container.PatchItem(t.Context(), pk, "a", p, content)
	require.NoError(t, err)
	require.Contains(t, string(resp.Value), `{"id":"a","n":3,"list":[1,9,2,3],"o":{"y":"new"},"state":"closed"`)

	_, err = b.container.PatchItem(t.Context(), pk, "a", p, nil)
	requireStatus(t, err, http.StatusPreconditionFailed, 0)
	_, err = b.container.PatchItem(t.Context(), pk, "b", p, nil)
	requireStatus(t, err, http.StatusNotFound, 0)

	broken := map[string]func(*azcosmos.PatchOperations){
		"no operation":                       func(*azcosmos.PatchOperations) {},
		"a missing parent":                   func(p *azcosmos.PatchOperations) { p.AppendSet("/no/where", 1) },
		"a replaced member that is missing":  func(p *azcosmos.PatchOperations) { p.AppendReplace("/none", 1) },
		"a removed member that is missing":   func(p *azcosmos.PatchOperations) { p.AppendRemove("/none") },
		"an increment of a text":             func(p *azcosmos.PatchOperations) { p.AppendIncrement("/state", 1) },
		"an element outside the list":        func(p *azcosmos.PatchOperations) { p.AppendReplace("/list/7", 1) },
		"an element that is no number":       func(p *azcosmos.PatchOperations) { p.AppendSet("/list/x", 1) },
		"the id":                             func(p *azcosmos.PatchOperations) { p.AppendSet("/id", "b") },
		"a system property":                  func(p *azcosmos.PatchOperations) { p.AppendSet("/_ts", 1) },
		"a null value, which azcosmos drops": func(p *azcosmos.PatchOperations) { p.AppendSet("/n", nil) },
		"a condition that is no query":       func(p *azcosmos.PatchOperations) { p.AppendSet("/n", 1); p.SetCondition("where") },
		"eleven operations": func(p *azcosmos.PatchOperations) {
			for range 11 {
				p.AppendIncrement("/n", 1)
			}
		},
	}
	before, _ := b.account.Document("shop", "orders", "a")
	for name, fill := range broken {
		t.Run(name, func(t *testing.T) {
			p := azcosmos.PatchOperations{}
			p.AppendSet("/touched", true)
			if name == "no operation" || name == "eleven operations" {
				p = azcosmos.PatchOperations{}
			}
			fill(&p)
			_, err := b.container.PatchItem(t.Context(), pk, "a", p, nil)
			requireStatus(t, err, http.StatusBadRequest, 0)
			after, _ := b.account.Document("shop", "orders", "a")
			require.Equal(t, before, after)
		})
	}
}

func TestUpsertCreatesOrReplaces(t *testing.T) {
	b := newBench(t, setup{})
	pk := azcosmos.NewPartitionKeyString("a")
	resp, err := b.container.UpsertItem(t.Context(), pk, []byte(`{"id":"a","n":1}`), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, resp.RawResponse.StatusCode)
	first, _ := b.account.Document("shop", "orders", "a")
	resp, err = b.container.UpsertItem(t.Context(), pk, []byte(`{"id":"a","n":2}`), &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.RawResponse.StatusCode)
	require.Contains(t, string(resp.Value), `"n":2`)
	require.NotEqual(t, first.ETag, string(resp.ETag))
	require.Equal(t, 1, b.account.Count("shop", "orders"))
}

func TestSystemPropertiesAreTheServices(t *testing.T) {
	b := newBench(t, setup{})
	b.create(t, "a", `{"id":"a","_etag":"mine","_ts":1,"_rid":"mine"}`)
	d, ok := b.account.Document("shop", "orders", "a")
	require.True(t, ok)
	require.NotContains(t, d.Body, "mine")
	require.NotContains(t, d.Body, `"_ts":1,`)
	require.Equal(t, `"a"`, d.Partition)
}

func TestAConsistencyLevelCanOnlyBeRelaxed(t *testing.T) {
	b := newBench(t, setup{})
	b.create(t, "a", `{"id":"a"}`)
	_, err := b.read(t.Context(), "a", &azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelEventual.ToPtr()})
	require.NoError(t, err)
	_, err = b.read(t.Context(), "a", &azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelStrong.ToPtr()})
	requireStatus(t, err, http.StatusBadRequest, 0)
}

func TestWhatIsNotImplementedIsRefusedLoudly(t *testing.T) {
	b := newBench(t, setup{mayMiss: true})
	_, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"a"}`),
		&azcosmos.ItemOptions{PreTriggers: []string{"validate"}})
	requireStatus(t, err, http.StatusNotImplemented, 0)
	require.Zero(t, b.account.Count("shop", "orders"))
	require.Len(t, b.account.Refusals(), 1)
	require.Contains(t, b.account.Refusals()[0], "x-ms-documentdb-pre-trigger-include")
	require.Equal(t, 1, b.countEvents("cosmosdb.refused"))
}
