package cosmosdb_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
)

// FuzzRequest sends whatever comes to mind, as a caller with a token so that no signature is in the way. Nothing may
// panic, every answer has the service's headers, and the container stays readable.
func FuzzRequest(f *testing.F) {
	const docs = "/dbs/shop/colls/orders/docs"
	f.Add("POST", docs, "x-ms-documentdb-partitionkey: [\"a\"]", `{"id":"a"}`)
	f.Add("POST", docs, "x-ms-documentdb-partitionkey: [\"s\"]\nx-ms-documentdb-is-upsert: true\nIf-Match: \"x\"", `{"id":"s","ttl":5}`)
	f.Add("GET", docs+"/s", "x-ms-documentdb-partitionkey: [\"s\"]\nx-ms-session-token: 0:-1#1", "")
	f.Add("PUT", docs+"/s", "x-ms-documentdb-partitionkey: [\"s\"]", `{"id":"s"}`)
	f.Add("PATCH", docs+"/s", "x-ms-documentdb-partitionkey: [\"s\"]", `{"condition":"from c where c.id='s'","operations":[{"op":"add","path":"/l/-","value":1},{"op":"incr","path":"/n","value":1},{"op":"remove","path":"/l/0"}]}`)
	f.Add("DELETE", docs+"/s", "x-ms-documentdb-partitionkey: [{}]", "")
	f.Add("POST", docs, "x-ms-documentdb-partitionkey: [\"s\"]\nx-ms-cosmos-is-batch-request: True\nx-ms-cosmos-batch-atomic: True", `[{"operationType":"Read","id":"s"},{"operationType":"Create","resourceBody":{"id":"s"}}]`)
	f.Add("POST", docs, "x-ms-documentdb-query: True\nx-ms-max-item-count: 1\nx-ms-documentdb-query-enablecrosspartition: true", `{"query":"SELECT * FROM c WHERE c.id=@a","parameters":[{"name":"@a","value":"s"}]}`)
	f.Add("GET", docs, "A-IM: Incremental Feed\nIf-None-Match: \"1\"\nIf-Modified-Since: Mon, 02 Jan 2006 15:04:05 UTC", "")
	f.Add("GET", "/dbs/shop/colls/orders/pkranges", "If-None-Match: \"1\"", "")
	f.Add("POST", "/offers", "x-ms-documentdb-query: True", `{"query":"SELECT * FROM c"}`)
	f.Add("GET", "/offers/x/", "", "")
	f.Add("GET", "/", "", "")
	f.Add("GET", "/dbs/%2e%2e/colls//docs/%zz", "", "")
	f.Fuzz(func(t *testing.T, method, path, headers, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://x.test", strings.NewReader(body))
		if err != nil {
			return
		}
		if r.URL, err = r.URL.Parse(path); err != nil {
			return
		}
		for line := range strings.Lines(headers) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
		r.Header.Set("Authorization", "type=aad&ver=1.0&sig=x")
		account, err := cosmosdb.New(cosmosdb.Options{AcceptTokens: true})
		require.NoError(t, err)
		require.NoError(t, account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "orders", DefaultTTL: -1}))
		require.NoError(t, account.Seed("shop", "orders", `{"id":"s","l":[1],"n":1}`))
		w := httptest.NewRecorder()
		account.ServeHTTP(w, r)
		require.GreaterOrEqual(t, w.Code, 200)
		spelled := map[string][]string(w.Header()) // in lower case, as the service writes it
		require.NotEmpty(t, spelled["x-ms-request-charge"])
		require.NotEmpty(t, spelled["x-ms-activity-id"])
		for _, d := range account.Documents("shop", "orders") {
			require.NotEmpty(t, d.ETag)
		}
	})
}
