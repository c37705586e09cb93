package cosmosdb

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/orderworker/orderworker/testenv/history"
)

// resource names the kinds of resources that a path can address.
type resource int

const (
	unknownResource resource = iota
	accountResource
	databaseFeed
	databaseResource
	containerFeed
	containerResource
	documentFeed
	documentResource
	rangeFeed
	offerFeed
	offerResource
	partitionDelete
)

// maxBody is how much of a body is read. A request above the service's limit is refused with 413 by its operation.
const maxBody = 8 << 20

// request is one request after its path and body have been read.
type request struct {
	method string
	header http.Header
	path   string   // the escaped path
	parts  []string // the unescaped segments of the path
	scheme string
	host   string
	body   []byte
	// document is the body of a create or an upsert, and batch that of a batch. Each is read once, here.
	document document
	batch    struct {
		ops []operation
		err error
	}
	compute bool // came through the compute gateway

	resource resource
	// op and key name the request in the fault plan and in the history.
	op, key string
	// rid is the _rid by which the path names its last resource, in lower case; "" when the path has names.
	rid string
	// lagged asks for the replica that lacks the last write.
	lagged bool
	// byToken tells that the caller showed a Microsoft Entra ID token instead of a signature.
	byToken bool
}

// newRequest reads a request to its end. It fails when the body does not arrive, and then nothing must happen.
func newRequest(r *http.Request, compute bool) (*request, error) {
	q := &request{method: r.Method, header: r.Header.Clone(), path: r.URL.EscapedPath(), host: r.Host, scheme: "http", compute: compute}
	if r.TLS != nil || r.URL.Scheme == "https" {
		q.scheme = "https"
	}
	if r.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err != nil {
			return nil, err
		}
		q.body = body
	}
	if err := q.route(); err != nil {
		return nil, err
	}
	q.name()
	return q, nil
}

// route finds what the path addresses. It works on the escaped path, so that an id may contain anything.
func (q *request) route() error {
	trimmed := strings.Trim(q.path, "/")
	if trimmed == "" {
		q.resource = accountResource
		return nil
	}
	for _, s := range strings.Split(trimmed, "/") {
		u, err := url.PathUnescape(s)
		if err != nil {
			return errors.New("cosmosdb: the path is not a valid URL path")
		}
		q.parts = append(q.parts, u)
	}
	p := q.parts
	under := func(i int, word string) bool { return len(p) > i && p[i] == word }
	switch {
	case under(0, "offers") && len(p) <= 2:
		q.resource = offerFeed + resource(len(p)-1)
	case !under(0, "dbs"):
	case len(p) <= 2:
		q.resource = databaseFeed + resource(len(p)-1)
	case !under(2, "colls"):
	case len(p) <= 4:
		q.resource = containerFeed + resource(len(p)-3)
	case under(4, "docs") && len(p) <= 6:
		q.resource = documentFeed + resource(len(p)-5)
	case under(4, "pkranges") && len(p) == 5:
		q.resource = rangeFeed
	case under(4, "operations") && under(5, "partitionkeydelete"):
		q.resource = partitionDelete
	}
	return nil
}

// part returns a segment of the path, or nothing.
func (q *request) part(i int) string {
	if i < len(q.parts) {
		return q.parts[i]
	}
	return ""
}

func (q *request) database() string  { return q.part(1) }
func (q *request) container() string { return q.part(3) }

// entity is "database/container", or as much of it as the path has.
func (q *request) entity() string {
	switch {
	case q.resource >= containerResource && q.resource <= rangeFeed, q.resource == partitionDelete:
		return q.database() + "/" + q.container()
	case q.resource == databaseResource || q.resource == containerFeed:
		return q.database()
	default:
		return ""
	}
}

func (q *request) flag(header string) bool { return strings.EqualFold(q.header.Get(header), "true") }

// isData reports whether the request touches documents.
func (q *request) isData() bool {
	return q.resource == documentFeed || q.resource == documentResource
}

func (q *request) isQuery() bool {
	return q.method == http.MethodPost && (q.flag(headerQueryPlan) || q.flag("x-ms-documentdb-query") || q.flag("x-ms-documentdb-isquery") ||
		strings.HasPrefix(q.header.Get("Content-Type"), "application/query+json"))
}

func (q *request) isBatch() bool { return q.flag("x-ms-cosmos-is-batch-request") }

func (q *request) isFeed() bool { return q.header.Get("A-IM") != "" }

func (q *request) wantsMinimal() bool {
	return strings.Contains(strings.ToLower(q.header.Get("Prefer")), "return=minimal")
}

// maxItems is the page size that the client asked for; -1 leaves it to the service, and so does nothing.
func (q *request) maxItems() int {
	n, err := strconv.Atoi(q.header.Get("x-ms-max-item-count"))
	switch {
	case err == nil && n > 0:
		return n
	case err == nil && n == -1:
		return 1000
	}
	return 100
}

// name sets the operation and the key by which the fault plan and the history know the request.
func (q *request) name() {
	switch q.resource {
	case accountResource:
		q.op = history.ReadAccount
	case documentResource:
		q.key = q.part(5)
		q.op = documentOps[q.method]
	case documentFeed:
		q.nameFeed()
	case rangeFeed:
		q.op = history.ReadContainer
	case containerResource:
		q.op = history.ManageContainers
		if q.method == http.MethodGet {
			q.op = history.ReadContainer
		}
	default:
		q.op = history.ManageContainers
	}
	if q.op == "" {
		q.op = history.RefusedByCosmos
	}
}

var documentOps = map[string]string{
	http.MethodGet:    history.ReadDocument,
	http.MethodPut:    history.ReplaceDocument,
	http.MethodPatch:  history.PatchDocument,
	http.MethodDelete: history.DeleteDocument,
}

func (q *request) nameFeed() {
	switch {
	case q.method == http.MethodGet && q.isFeed():
		q.op = history.ReadChangeFeed
	case q.isQuery() || q.method == http.MethodGet:
		q.op = history.QueryDocuments
	case q.method != http.MethodPost:
		q.op = history.RefusedByCosmos
	case q.isBatch():
		q.op = history.ExecuteBatch
		if len(q.body) <= maxItem {
			q.batch.ops, q.batch.err = readBatch(q.body)
			q.key = batchKey(q.batch.ops)
		}
	default:
		q.op = history.CreateDocument
		if q.flag("x-ms-documentdb-is-upsert") {
			q.op = history.UpsertDocument
		}
		q.document = readDocument(q.body)
		q.key = q.document.id()
	}
}
