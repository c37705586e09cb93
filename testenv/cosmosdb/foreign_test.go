package cosmosdb_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/history"
)

// What the clients of other languages send and Go does not, as raw requests.

// raw is one request, by default a POST to the documents of shop/orders.
type raw struct {
	method, path string
	signed       string // kind and link that the signature covers, "docs dbs/shop/colls/orders" by default
	header       map[string]string
	body         string
}

// answered is a reply with its body as JSON.
type answered struct {
	status int
	header map[string][]string // by names as they are spelled
	text   string
	json   map[string]any
}

// do signs a request with the account key and carries it out.
func (b *bench) do(t *testing.T, r raw) answered {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.path == "" {
		r.path = "/dbs/shop/colls/orders/docs"
	}
	if r.signed == "" {
		r.signed = "docs dbs/shop/colls/orders"
	}
	kind, link, _ := strings.Cut(r.signed, " ")
	q, err := http.NewRequestWithContext(t.Context(), r.method, "http://x.test"+r.path, strings.NewReader(r.body))
	require.NoError(t, err)
	date := time.Now().UTC().Format(http.TimeFormat)
	key, err := base64.StdEncoding.DecodeString(b.account.Key())
	require.NoError(t, err)
	m := hmac.New(sha256.New, key)
	_, _ = io.WriteString(m, strings.ToLower(r.method)+"\n"+kind+"\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	q.Header.Set("x-ms-date", date)
	q.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(m.Sum(nil))))
	for n, v := range r.header {
		q.Header.Set(n, v)
	}
	w := httptest.NewRecorder()
	b.account.ServeHTTP(w, q)
	a := answered{status: w.Code, header: w.Header(), text: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a.json) // some answers are lists or empty
	return a
}

// query asks over all partitions with more headers.
func (b *bench) rawQuery(t *testing.T, text string, header map[string]string) answered {
	t.Helper()
	h := map[string]string{"Content-Type": "application/query+json", "x-ms-documentdb-query": "True", "x-ms-documentdb-query-enablecrosspartition": "True"}
	for n, v := range header {
		h[n] = v
	}
	return b.do(t, raw{header: h, body: fmt.Sprintf(`{"query":%q,"parameters":[]}`, text)})
}

// ids returns the ids of the documents of an answer.
func (a answered) ids() []string {
	list, _ := a.json["Documents"].([]any)
	ids := []string{}
	for _, d := range list {
		id, _ := d.(map[string]any)["id"].(string)
		ids = append(ids, id)
	}
	return ids
}

func seeded(t *testing.T, spec cosmosdb.ContainerSpec, documents ...string) *bench {
	t.Helper()
	b := newBench(t, setup{spec: spec, mayMiss: true})
	for _, d := range documents {
		require.NoError(t, b.account.Seed("shop", "orders", d))
	}
	return b
}

var tenants = cosmosdb.ContainerSpec{PartitionKey: []string{"/tenant", "/n"}}

// The hashes are those that azure-cosmos 4.17.1 for Python computes.
const (
	epkTenant1 = "1B6E36CBA1839DF91310617831CA7FAC" // "tenant-1"
	epkFive    = "19C08621B135968252FB34B4CF66F811" // 5
)

func TestARangeOfEffectivePartitionKeysNarrowsARequest(t *testing.T) {
	b := seeded(t, tenants, `{"id":"a","tenant":"tenant-1","n":5}`, `{"id":"b","tenant":"tenant-1","n":6}`, `{"id":"c","tenant":"tenant-2","n":5}`)
	prefix := map[string]string{"x-ms-read-key-type": "EffectivePartitionKeyRange", "x-ms-start-epk": epkTenant1, "x-ms-end-epk": epkTenant1 + "FF"}
	point := map[string]string{"x-ms-read-key-type": "EffectivePartitionKeyRange", "x-ms-start-epk": strings.ToLower(epkTenant1 + epkFive), "x-ms-end-epk": epkTenant1 + epkFive + "FF"}
	everything := map[string]string{"x-ms-read-key-type": "EffectivePartitionKeyRange", "x-ms-start-epk": "", "x-ms-end-epk": "FF"}
	for name, tt := range map[string]struct {
		header map[string]string
		want   []string
	}{"a prefix of the key": {prefix, []string{"a", "b"}}, "one key": {point, []string{"a"}}, "every key": {everything, []string{"a", "b", "c"}}} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, b.rawQuery(t, "SELECT * FROM c", tt.header).ids())
			feed := map[string]string{"A-IM": "Incremental Feed"}
			for n, v := range tt.header {
				feed[n] = v
			}
			require.Equal(t, tt.want, b.do(t, raw{method: http.MethodGet, header: feed}).ids(), "change feed")
			require.Equal(t, tt.want, b.do(t, raw{method: http.MethodGet, header: tt.header}).ids(), "list")
		})
	}
}

func TestEveryKindOfKeyHasItsEffectivePartitionKey(t *testing.T) {
	b := seeded(t, byPK)
	for key, epk := range map[string]string{
		`""`: "32E9366E637A71B4E710384B2F4970A0", `"a"`: "3A5381E1114EB8D3FCC90795045B49B7", `"` + strings.Repeat("ä", 40) + `"`: "27174A7338A2CF171D192B90A38D6C88",
		`5`: epkFive, `-1.5`: "151793206780805FF6E1DCAE6C787B6A", `true`: "0E711127C5B5A8E4726AC6DD306A3E59", `false`: "2FE1BE91E90A3439635E0E9E37361EF2",
		`null`: "378867E4430E67857ACE5C908374FE16", `{}`: "11622DAA78F835834610ABE56EFF5CB5", `"0123456789abcdef0123456789abcdef"`: "1E4F02FF478677A35D1C4DCBF853C1DF",
	} {
		require.NoError(t, b.account.Seed("shop", "orders", fmt.Sprintf(`{"id":"x","pk":%s}`, key)))
		got := b.rawQuery(t, "SELECT * FROM c", map[string]string{"x-ms-start-epk": epk, "x-ms-end-epk": epk + "00"})
		require.Equal(t, []string{"x"}, got.ids(), key)
	}
}

func TestAHeaderThatNarrowsIsNeverIgnored(t *testing.T) {
	epk := map[string]string{"x-ms-start-epk": "00", "x-ms-end-epk": "10"}
	asQuery := map[string]string{"x-ms-documentdb-query": "True", "x-ms-documentdb-query-enablecrosspartition": "True", "Content-Type": "application/query+json"}
	with := func(a map[string]string, name, value string) map[string]string {
		h := map[string]string{name: value}
		for n, v := range a {
			h[n] = v
		}
		return h
	}
	const anyQuery = `{"query":"SELECT * FROM c"}`
	tests := []struct {
		name    string
		version int
		request raw
		status  int
		want    string
	}{
		{"a range of keys at a create", 2, raw{header: with(epk, "x-ms-documentdb-partitionkey", `["a"]`), body: `{"id":"1","pk":"a"}`}, 501, "effective partition keys"},
		{"a range of keys of version 1", 1, raw{header: with(asQuery, "x-ms-start-epk", "05C1"), body: anyQuery}, 501, "version 1"},
		{"a range of ids", 2, raw{header: with(asQuery, "x-ms-start-id", "a"), body: anyQuery}, 501, "x-ms-start-id"},
		{"another read key type", 2, raw{header: with(asQuery, "x-ms-read-key-type", "ResourceId"), body: anyQuery}, 501, "read key type ResourceId"},
		{"a filter by schema", 2, raw{header: with(asQuery, "x-ms-documentdb-filterby-schema-rid", "x"), body: anyQuery}, 501, "filterby-schema-rid"},
		{"a header that nobody knows", 2, raw{header: with(asQuery, "x-ms-cosmos-only-mine", "True"), body: anyQuery}, 501, "x-ms-cosmos-only-mine"},
		{"a trigger", 2, raw{header: with(asQuery, "x-ms-documentdb-pre-trigger-include", "t"), body: anyQuery}, 501, "pre-trigger-include"},
		{"a range that is none", 2, raw{header: with(with(asQuery, "x-ms-start-epk", "20"), "x-ms-end-epk", "10"), body: anyQuery}, 400, "not a range"},
		{"a range that is not hexadecimal", 2, raw{header: with(asQuery, "x-ms-start-epk", "xyz"), body: anyQuery}, 400, "not a range"},
		{"another container of this name", 2, raw{header: with(asQuery, "x-ms-cosmos-intended-collection-rid", "AAAAAAAAAAA="), body: anyQuery}, 400, "deleted and created again"},
		{"If-None-Match on a create", 2, raw{header: map[string]string{"x-ms-documentdb-partitionkey": `["a"]`, "If-None-Match": "*"}, body: `{"id":"1","pk":"a"}`}, 501, "If-None-Match"},
		{"ifNoneMatch of a write in a batch", 2, raw{header: map[string]string{"x-ms-documentdb-partitionkey": `["a"]`, "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"},
			body: `[{"operationType":"Delete","id":"1","ifNoneMatch":"*"}]`}, 501, "ifNoneMatch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := seeded(t, cosmosdb.ContainerSpec{PartitionKey: []string{"/pk"}, KeyVersion: tt.version}, `{"id":"seed","pk":"a"}`)
			got := b.do(t, tt.request)
			require.Equal(t, tt.status, got.status, got.text)
			require.Contains(t, got.text, tt.want)
			require.NotContains(t, got.text, "seed")
			require.Equal(t, 1, b.account.Count("shop", "orders"))
			if tt.status == 501 {
				require.Len(t, b.account.Refusals(), 1)
				require.Equal(t, 1, b.countEvents(history.RefusedByCosmos))
			}
		})
	}
}

func TestRefusalsAreToldAsTheyHappen(t *testing.T) {
	var told []string
	b := newBench(t, setup{spec: byPK, mayMiss: true, options: cosmosdb.Options{OnRefusal: func(what string) { told = append(told, what) }}})
	require.Equal(t, 501, b.rawQuery(t, "SELECT DISTINCT c.x FROM c", nil).status)
	require.Equal(t, b.account.Refusals(), told)
}

func TestResourceIDsHaveTheFormOfTheService(t *testing.T) {
	b := seeded(t, byPK, `{"id":"1","pk":"a"}`)
	got := b.do(t, raw{method: http.MethodGet, path: "/dbs/shop/colls/orders/docs/1", signed: "docs dbs/shop/colls/orders/docs/1", header: map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}})
	require.Equal(t, 200, got.status)
	document, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(got.json["_rid"].(string), "-", "/"))
	require.NoError(t, err)
	require.Len(t, document, 16)
	require.Equal(t, byte(0x80), document[4]&0x80, "a container has the highest bit of its part")
	require.Zero(t, document[15]>>4, "a document has none in the last half")
	owner := got.header["x-ms-content-path"][0]
	container, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(owner, "-", "/"))
	require.NoError(t, err)
	require.Equal(t, document[:8], container)
	require.Equal(t, []string{"dbs/shop/colls/orders"}, got.header["x-ms-alt-content-path"])
	require.Equal(t, []string{"1"}, got.header["lsn"])
	require.NotEmpty(t, got.header["x-ms-request-charge"], "names of headers are in lower case")
	require.NotEmpty(t, got.header["etag"])

	t.Run("and address resources", func(t *testing.T) {
		self := strings.TrimSuffix(got.json["_self"].(string), "/")
		key := map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}
		rid := strings.ToLower(got.json["_rid"].(string))
		again := b.do(t, raw{method: http.MethodGet, path: "/" + self, signed: "docs " + rid, header: key})
		require.Equal(t, 200, again.status, again.text)
		require.Equal(t, got.text, again.text)
		parts := strings.Split(self, "/")
		feed := strings.Join(parts[:4], "/")
		list := b.do(t, raw{method: http.MethodGet, path: "/" + feed + "/docs", signed: "docs " + strings.ToLower(parts[3])})
		require.Equal(t, []string{"1"}, list.ids())
		gone := b.do(t, raw{method: http.MethodDelete, path: "/" + self, signed: "docs " + rid, header: key})
		require.Equal(t, 204, gone.status)
		require.Equal(t, 1, b.history.Count(func(e history.Event) bool { return e.Op == history.DeleteDocument && e.Key == "1" }))
		require.Equal(t, 404, b.do(t, raw{method: http.MethodGet, path: "/" + self, signed: "docs " + rid, header: key}).status)
	})
}

// replace is a PUT of a document of the partition "a".
func (b *bench) replace(t *testing.T, id, body string) answered {
	t.Helper()
	return b.do(t, raw{method: http.MethodPut, path: "/dbs/shop/colls/orders/docs/" + id, signed: "docs dbs/shop/colls/orders/docs/" + id,
		header: map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}, body: body})
}

func TestAReplaceWithAnotherIDIsARename(t *testing.T) {
	spec := byPK
	spec.UniqueKeys = [][]string{{"/u"}}
	b := seeded(t, spec, `{"id":"old","pk":"a","u":1}`, `{"id":"taken","pk":"a","u":2}`)
	before, _ := b.account.Document("shop", "orders", "old")
	require.Equal(t, 409, b.replace(t, "old", `{"id":"taken","pk":"a","u":3}`).status)
	require.Equal(t, 409, b.replace(t, "old", `{"id":"new","pk":"a","u":2}`).status, "a unique key")
	after, _ := b.account.Document("shop", "orders", "old")
	require.Equal(t, before, after, "a refused rename changes nothing")
	got := b.replace(t, "old", `{"id":"new","pk":"a","u":1}`)
	require.Equal(t, 200, got.status, got.text)
	require.Equal(t, 404, b.replace(t, "old", `{"id":"old","pk":"a"}`).status)
	_, found := b.account.Document("shop", "orders", "new")
	require.True(t, found)
	require.Equal(t, 2, b.account.Count("shop", "orders"))
}

func TestPatchesAsOtherClientsSendThem(t *testing.T) {
	const document = `{"id":"1","pk":"a","n":1,"from":{"x":7},"list":[1,2,3]}`
	tests := []struct {
		name, patch string
		status      int
		want        string // in the document afterwards
	}{
		{"operations alone", `[{"op":"incr","path":"/n","value":2}]`, 200, `"n":3`},
		{"move to a new member", `[{"op":"move","from":"/from/x","path":"/to"}]`, 200, `"to":7}`},
		{"move over a member", `{"operations":[{"op":"move","from":"/from","path":"/n"}]}`, 200, `"n":{"x":7},"list"`},
		{"move within a list", `[{"op":"move","from":"/list/0","path":"/list/2"}]`, 200, `"list":[2,3,1]`},
		{"move out of nothing", `[{"op":"move","from":"/none","path":"/to"}]`, 400, `"n":1,"from":{"x":7}`},
		{"move into itself", `[{"op":"move","from":"/from","path":"/from/x"}]`, 400, `"from":{"x":7}`},
		{"move of the id", `[{"op":"move","from":"/id","path":"/x"}]`, 400, `"id":"1"`},
		{"move to a missing parent leaves everything", `[{"op":"incr","path":"/n","value":2},{"op":"move","from":"/from","path":"/no/where"}]`, 400, `"n":1,"from":{"x":7}`},
		{"a condition that holds", `{"condition":"from c where c.n = 1","operations":[{"op":"set","path":"/n","value":5}]}`, 200, `"n":5`},
		{"a condition that does not hold", `{"condition":"from c where c.n > 1","operations":[{"op":"set","path":"/n","value":5}]}`, 412, `"n":1`},
		{"a condition on what is not there", `{"condition":"from c where NOT IS_DEFINED(c.state)","operations":[{"op":"set","path":"/state","value":"PAID"}]}`, 200, `"state":"PAID"`},
		{"a condition that is no query", `{"condition":"c.n = 1","operations":[{"op":"set","path":"/n","value":5}]}`, 400, `"n":1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := seeded(t, byPK, document)
			got := b.do(t, raw{method: http.MethodPatch, path: "/dbs/shop/colls/orders/docs/1", signed: "docs dbs/shop/colls/orders/docs/1",
				header: map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}, body: tt.patch})
			require.Equal(t, tt.status, got.status, got.text)
			d, _ := b.account.Document("shop", "orders", "1")
			require.Contains(t, d.Body, tt.want)
		})
	}
}

func TestWhatTheServiceAddsToAContainer(t *testing.T) {
	b := newBench(t, setup{})
	got := b.do(t, raw{path: "/dbs/shop/colls", signed: "colls dbs/shop", body: `{"id":"plain","partitionKey":{"paths":["/pk"]}}`})
	require.Equal(t, 201, got.status, got.text)
	require.Equal(t, "Hash", got.json["partitionKey"].(map[string]any)["kind"])
	require.Equal(t, "consistent", got.json["indexingPolicy"].(map[string]any)["indexingMode"])
	require.Equal(t, "/_ts", got.json["conflictResolutionPolicy"].(map[string]any)["conflictResolutionPath"])
	list := b.do(t, raw{method: http.MethodGet, path: "/dbs/shop/colls", signed: "colls dbs/shop"})
	require.Len(t, list.json["DocumentCollections"], 2)
	require.Len(t, b.do(t, raw{method: http.MethodGet, path: "/dbs", signed: "dbs "}).json["Databases"], 1)
}

func TestThroughputIsChecked(t *testing.T) {
	b := newBench(t, setup{})
	for settings, want := range map[string]int{`{"maxThroughput":4000}`: 201, `{"maxThroughput":1500}`: 400, `{"maxThroughput":0}`: 400, `{}`: 400, `x`: 400} {
		id := fmt.Sprintf("auto-%x", settings)
		got := b.do(t, raw{path: "/dbs/shop/colls", signed: "colls dbs/shop", body: `{"id":"` + id + `","partitionKey":{"paths":["/pk"]}}`,
			header: map[string]string{"x-ms-cosmos-offer-autopilot-settings": settings}})
		require.Equal(t, want, got.status, settings)
	}
}

func TestBulkCarriesOutEachOperationForItself(t *testing.T) {
	b := seeded(t, byPK, `{"id":"taken","pk":"a"}`)
	got := b.do(t, raw{
		header: map[string]string{"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False", "x-ms-cosmos-batch-continue-on-error": "True", "x-ms-documentdb-partitionkeyrangeid": "0"},
		body: `[{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a"}},{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"taken","pk":"a"}},` +
			`{"operationType":"Create","partitionKey":"[\"b\"]","resourceBody":{"id":"2","pk":"b"}},{"operationType":"Read","id":"2"}]`,
	})
	require.Equal(t, 207, got.status, got.text)
	var results []map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.text), &results))
	codes := []any{}
	for _, r := range results {
		codes = append(codes, r["statusCode"])
	}
	require.Equal(t, []any{201.0, 409.0, 201.0, 400.0}, codes)
	require.Equal(t, 3, b.account.Count("shop", "orders"))
	require.Equal(t, 1, b.history.Count(func(e history.Event) bool { return e.Op == history.ExecuteBatch && e.Effect && len(e.Documents) == 2 }))
}

func TestDeletingAPartitionIsRefusedHoweverItIsSigned(t *testing.T) {
	b := seeded(t, byPK, `{"id":"1","pk":"a"}`)
	for client, kind := range map[string]string{"Python": "partitionkey", "JavaScript": "colls"} {
		got := b.do(t, raw{path: "/dbs/shop/colls/orders/operations/partitionkeydelete", signed: kind + " dbs/shop/colls/orders", header: map[string]string{"x-ms-documentdb-partitionkey": `["a"]`}})
		require.Equal(t, 501, got.status, client)
	}
	require.Equal(t, 1, b.account.Count("shop", "orders"))
}

func TestQueryPlans(t *testing.T) {
	b := seeded(t, byPK)
	plan := func(text string) answered {
		return b.rawQuery(t, text, map[string]string{"x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-supported-query-features": "OrderBy, Top"})
	}
	tests := []struct {
		query     string
		want      map[string]any
		rewritten string
	}{
		{"SELECT * FROM c", map[string]any{"top": nil, "orderBy": []any{}, "hasSelectValue": false}, ""},
		{"SELECT TOP 3 * FROM c WHERE c.x = 1", map[string]any{"top": 3.0}, ""},
		{"SELECT * FROM c WHERE c.x = 1 OR c.y = 2 ORDER BY c.n DESC", map[string]any{"orderBy": []any{"Descending"}, "orderByExpressions": []any{"c.n"}},
			`SELECT c._rid, [{"item": c.n}] AS orderByItems, c AS payload FROM c WHERE ((c.x = 1 OR c.y = 2) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c.n DESC`},
		{"SELECT VALUE r.id FROM root r ORDER BY r.n", map[string]any{"hasSelectValue": true},
			`SELECT r._rid, [{"item": r.n}] AS orderByItems, r.id AS payload FROM r WHERE ({documentdb-formattableorderbyquery-filter}) ORDER BY r.n`},
		{"SELECT c.id, LOWER(c.s) AS low FROM c ORDER BY c.n", nil,
			`SELECT c._rid, [{"item": c.n}] AS orderByItems, {"id": c.id, "low": LOWER(c.s)} AS payload FROM c WHERE ({documentdb-formattableorderbyquery-filter}) ORDER BY c.n`},
		{"SELECT VALUE c.n FROM c WHERE c.x = 1 OFFSET 2 LIMIT 3", map[string]any{"offset": 2.0, "limit": 3.0}, "SELECT VALUE c.n FROM c WHERE c.x = 1 OFFSET 0 LIMIT 5"},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.x = 1", map[string]any{"aggregates": []any{"Count"}}, `SELECT VALUE [{"item": COUNT(1)}] FROM c WHERE c.x = 1`},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			got := plan(tt.query)
			require.Equal(t, 200, got.status, got.text)
			info := got.json["queryInfo"].(map[string]any)
			require.Equal(t, tt.rewritten, info["rewrittenQuery"])
			for name, want := range tt.want {
				require.Equal(t, want, info[name], name)
			}
			require.Equal(t, []any{map[string]any{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}}, got.json["queryRanges"])
			direct := b.rawQuery(t, tt.query, nil)
			if tt.rewritten == "" && info["top"] == nil {
				require.Equal(t, 200, direct.status)
				return
			}
			require.Equal(t, 400, direct.status)
			require.Equal(t, []string{"1004"}, direct.header["x-ms-substatus"])
			var told any
			require.NoError(t, json.Unmarshal([]byte(direct.json["additionalErrorInfo"].(string)), &told))
			require.Equal(t, any(got.json), told, "a query that the gateway cannot answer comes back with its plan")
			one := b.rawQuery(t, strings.ReplaceAll(tt.rewritten+strings.Repeat(tt.query, b2i(tt.rewritten == "")), "{documentdb-formattableorderbyquery-filter}", "true"),
				map[string]string{"x-ms-documentdb-partitionkeyrangeid": "0"})
			require.Equal(t, 200, one.status, one.text)
		})
	}
	for _, text := range []string{"SELECT DISTINCT c.x FROM c", "SELECT c.x, COUNT(1) FROM c GROUP BY c.x", "SELECT VALUE SUM(c.x) FROM c", "SELECT * FROM c JOIN l IN c.lines", "SELECT 1"} {
		require.Equal(t, 501, plan(text).status, text)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestTheChangeFeedTellsTheLogSequenceNumber(t *testing.T) {
	b := seeded(t, byPK, `{"id":"1","pk":"a"}`, `{"id":"2","pk":"a"}`)
	got := b.do(t, raw{method: http.MethodGet, header: map[string]string{"A-IM": "Incremental Feed"}})
	require.Equal(t, []string{"1", "2"}, got.ids())
	require.Equal(t, 2.0, got.json["Documents"].([]any)[1].(map[string]any)["_lsn"])
	d, _ := b.account.Document("shop", "orders", "1")
	require.NotContains(t, d.Body, "_lsn")
}
