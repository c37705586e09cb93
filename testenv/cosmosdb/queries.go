package cosmosdb

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/query"
)

// maxPage is the size at which a page of results ends, in bytes.
const maxPage = 4 << 20

// ask is a query with its parameters.
type ask struct {
	text   string
	query  *query.Query
	params map[string]any
}

// readAsk reads the body of a query. The error is the refusal.
func (a *Account) readAsk(q *request) (ask, *reply) {
	if q.method == http.MethodGet {
		parsed, _ := query.Parse("SELECT * FROM c")
		return ask{query: parsed}, nil
	}
	no := func(r reply) (ask, *reply) { return ask{}, &r }
	body, err := jsondoc.ParseObject(q.body)
	if err != nil {
		return no(refuse(http.StatusBadRequest, 0, "the body of the query is not valid: "+err.Error()))
	}
	s := ask{params: map[string]any{}}
	s.text, _ = body.Text("query")
	list, _ := body.Get("parameters")
	params, _ := list.([]any)
	for _, p := range params {
		o, ok := p.(*jsondoc.Object)
		if !ok {
			return no(refuse(http.StatusBadRequest, 0, "a parameter of the query is not an object"))
		}
		name, _ := o.Text("name")
		s.params[name], _ = o.Get("value")
	}
	if s.query, err = query.Parse(s.text); err != nil {
		if u, ok := errors.AsType[*query.Unsupported](err); ok {
			return no(a.refuseLocked(q, u.Feature+" in a query"))
		}
		return no(refuse(http.StatusBadRequest, 0, err.Error()))
	}
	return s, nil
}

// queryDocuments answers a query, or lists all documents, page by page. Like the service's gateway it refuses a query over
// several partitions when that needs more than joining their results: order, counts, windows.
func (a *Account) queryDocuments(q *request, c *container, key partitionKey) reply {
	s, refused := a.readAsk(q)
	if refused != nil {
		return *refused
	}
	if q.flag(headerQueryPlan) {
		return reply{status: http.StatusOK, body: jsondoc.Encode(planOf(s)), charge: chargeQuery}
	}
	if len(key) > len(c.def.keyPaths) {
		return refuse(http.StatusBadRequest, substatusKeyMismatch, "the partition key has more components than the container")
	}
	single := len(key) == len(c.def.keyPaths)
	if _, pinned := s.query.Pinned(c.def.keyPaths, s.params); pinned {
		single = true
	}
	if refused := crossPartition(q, s, single); refused != nil {
		return *refused
	}
	within, refused := a.readKeyRange(q, c.def)
	if refused != nil {
		return *refused
	}
	w := a.look(q, c, nil, time.Now())
	if w.lost != nil {
		return *w.lost
	}
	var found []*version
	examined := 0
	for _, v := range a.visible(c, w) {
		if v.key.hasPrefix(key) && c.def.inside(v.key, within) {
			examined++
			if s.query.Matches(v.document(), s.params) {
				found = append(found, v)
			}
		}
	}
	if s.query.Ordered() {
		slices.SortStableFunc(found, func(x, y *version) int { return s.query.Compare(x.document(), y.document()) })
	}
	r := page(q, c, s, found, single)
	r.session = sessionToken(w.lsn)
	r.charge = round2(chargeQuery + chargeQueryPerDoc*float64(examined) + 0.1*kilobytes(len(r.body)))
	return r
}

// crossPartition refuses a query over several partitions that the client did not allow, or that the gateway cannot answer.
func crossPartition(q *request, s ask, single bool) *reply {
	if single || q.method == http.MethodGet || q.header.Get(headerRangeID) != "" {
		return nil
	}
	if !q.flag("x-ms-documentdb-query-enablecrosspartition") {
		r := refuse(http.StatusBadRequest, 0, "cross partition query is required but disabled; set x-ms-documentdb-query-enablecrosspartition or a partition key")
		return &r
	}
	if s.query.Ordered() || s.query.Counts() || s.query.Windowed() {
		r := refuseWith(http.StatusBadRequest, substatusNotServable, "the provided cross partition query can not be directly served by the gateway; "+
			"give a partition key, or leave out ORDER BY, aggregates, TOP, OFFSET and LIMIT", "additionalErrorInfo", jsondoc.String(planOf(s)))
		return &r
	}
	return nil
}

// page cuts one page out of the results. A query over several partitions learns only by asking again that a full page was the last.
func page(q *request, c *container, s ask, found []*version, single bool) reply {
	tag := queryTag(q, s)
	from, ok := position(q.header.Get("x-ms-continuation"), tag)
	if !ok {
		return refuse(http.StatusBadRequest, 0, "the continuation token does not belong to this query")
	}
	var list []any
	next, more, size := from, false, 0
	projected, ends := project(s, found)
	for i, v := range projected {
		if ends[i] <= from {
			continue
		}
		if len(list) >= q.maxItems() || size > maxPage {
			more = true
			break
		}
		list = append(list, v)
		size += len(jsondoc.Encode(v))
		next = ends[i]
	}
	if !single && len(list) >= q.maxItems() {
		more = true
	}
	r := reply{status: http.StatusOK, body: feedBody(c.rid, "Documents", list)}
	if more {
		r = r.with("x-ms-continuation", token(tag, next))
	}
	r = r.with("x-ms-item-count", strconv.Itoa(len(list)))
	return withMetrics(q, r, len(found), len(list))
}

// project returns the results and, for each, the position after which it stands: that of its document in order of
// creation where the results come in that order, else its place in the list.
func project(s ask, found []*version) (results []any, ends []int64) {
	inOrder := !s.query.Ordered() && !s.query.Windowed() && !s.query.Counts()
	for _, v := range found {
		if p, ok := s.query.Project(v.document(), s.params); ok {
			results = append(results, p)
			ends = append(ends, v.seq)
		}
	}
	if s.query.Windowed() {
		results = results[min(s.query.Skip, len(results)):]
		if s.query.Limit >= 0 {
			results = results[:min(s.query.Limit, len(results))]
		}
	}
	if s.query.Counts() {
		results = []any{s.query.Counted(len(results))}
	}
	if !inOrder {
		ends = ends[:0]
		for i := range results {
			ends = append(ends, int64(i+1))
		}
	}
	return results, ends
}

// queryTag identifies a query, so that a continuation token is not used for another.
func queryTag(q *request, s ask) string {
	h := fnv.New64a()
	h.Write([]byte(q.path + "\x00" + s.text + "\x00" + q.header.Get(keyHeader)))
	return strconv.FormatUint(h.Sum64(), 16)
}

func token(tag string, at int64) string {
	return base64.StdEncoding.EncodeToString([]byte(tag + "." + strconv.FormatInt(at, 10)))
}

// position reads a continuation token; no token is the beginning.
func position(continuation, tag string) (int64, bool) {
	if continuation == "" {
		return 0, true
	}
	plain, err := base64.StdEncoding.DecodeString(continuation)
	if err != nil {
		return 0, false
	}
	got, number, _ := strings.Cut(string(plain), ".")
	at, err := strconv.ParseInt(number, 10, 64)
	return at, err == nil && got == tag && at >= 0
}

func withMetrics(q *request, r reply, retrieved, returned int) reply {
	if q.flag("x-ms-documentdb-populatequerymetrics") {
		r = r.with("x-ms-documentdb-query-metrics", fmt.Sprintf("totalExecutionTimeInMs=0.10;queryCompileTimeInMs=0.01;"+
			"queryLogicalPlanBuildTimeInMs=0.01;queryPhysicalPlanBuildTimeInMs=0.01;queryOptimizationTimeInMs=0.01;VMExecutionTimeInMs=0.05;"+
			"indexLookupTimeInMs=0.01;instructionCount=%d;documentLoadTimeInMs=0.01;systemFunctionExecuteTimeInMs=0.00;"+
			"userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount=%d;retrievedDocumentSize=%d;outputDocumentCount=%d;"+
			"outputDocumentSize=%d;writeOutputTimeInMs=0.01;indexUtilizationRatio=1.00", 10*retrieved, retrieved, len(r.body), returned, len(r.body)))
	}
	if q.flag("x-ms-cosmos-populateindexmetrics") {
		r = r.with("x-ms-cosmos-index-utilization", base64.StdEncoding.EncodeToString([]byte(
			`{"UtilizedSingleIndexes":[],"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[],"PotentialCompositeIndexes":[]}`)))
	}
	return r
}

// queryManagement answers queries over databases, containers and offers, and lists of them, in one page.
func (a *Account) queryManagement(q *request) reply {
	s, refused := a.readAsk(q)
	if refused != nil {
		return *refused
	}
	all, member, rid, missing := a.manageable(q)
	if missing != nil {
		return *missing
	}
	var list []any
	for _, props := range all {
		if !s.query.Matches(props, s.params) {
			continue
		}
		if v, ok := s.query.Project(props, s.params); ok {
			list = append(list, v)
		}
	}
	return withMetrics(q, reply{status: http.StatusOK, body: feedBody(rid, member, list)}, len(list), len(list))
}

// manageable lists what a management query looks at.
func (a *Account) manageable(q *request) (all []*jsondoc.Object, member, rid string, missing *reply) {
	switch q.resource {
	case databaseFeed:
		for _, d := range a.databases {
			all = append(all, d.props)
		}
		return all, "Databases", "", nil
	case offerFeed:
		for _, o := range a.offers() {
			all = append(all, o.props)
		}
		return all, "Offers", "", nil
	}
	d := a.findDatabase(q.database())
	if d == nil {
		r := refuse(http.StatusNotFound, 0, fmt.Sprintf("the database %q does not exist", q.database()))
		return nil, "", "", &r
	}
	for _, c := range d.containers {
		all = append(all, c.props)
	}
	return all, "DocumentCollections", d.rid, nil
}
