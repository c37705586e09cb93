package cosmosdb

import (
	"net/http"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
)

const keyHeader = "x-ms-documentdb-partitionkey"

// serveDocuments handles everything below a container's docs. Does: create, upsert, read, replace, patch, delete, batch,
// query, change feed, listing. Does not: triggers, stored procedures, attachments, If-Modified-Since on a document.
func (a *Account) serveDocuments(q *request) (reply, []history.Write) {
	c := a.findContainer(q.database(), q.container())
	if c == nil {
		return refuse(http.StatusNotFound, substatusOwnerMissing, "the container "+q.entity()+" does not exist; create it first"), nil
	}
	if r := a.checkConsistency(q); r != nil {
		return *r, nil
	}
	if id := q.header.Get(headerRangeID); id != "" && id != rangeID {
		return refuse(http.StatusGone, substatusRangeGone, "the partition key range does not exist"), nil
	}
	key, given, err := parsePartitionKey(q.header.Get(keyHeader))
	if err != nil {
		return refuse(http.StatusBadRequest, 0, err.Error()), nil
	}
	switch q.op {
	case history.QueryDocuments:
		return a.queryDocuments(q, c, key), nil
	case history.ReadChangeFeed:
		return a.readChangeFeed(q, c, key), nil
	case history.RefusedByCosmos:
		return refuse(http.StatusMethodNotAllowed, 0, q.method+" is not allowed here"), nil
	}
	if q.op == history.ExecuteBatch && !given && !q.flag("x-ms-cosmos-batch-atomic") {
		return a.executeBulk(q, c)
	}
	if r := a.checkConditionsLocked(q); r != nil {
		return *r, nil
	}
	if !given {
		return refuse(http.StatusBadRequest, 0, "the operation needs a partition key"), nil
	}
	if len(key) != len(c.def.keyPaths) {
		return refuse(http.StatusBadRequest, substatusKeyMismatch, "the partition key has another number of components than the container"), nil
	}
	return a.serveDocument(q, c, key)
}

// checkConditionsLocked refuses a condition of which it is not known what the service does with it.
func (a *Account) checkConditionsLocked(q *request) *reply {
	read := q.op == history.ReadDocument
	var r reply
	switch {
	case q.header.Get("If-Modified-Since") != "":
		r = a.refuseLocked(q, "If-Modified-Since on a document")
	case !read && q.header.Get("If-None-Match") != "":
		r = a.refuseLocked(q, "If-None-Match on a write")
	case read && q.header.Get("If-Match") != "":
		r = a.refuseLocked(q, "If-Match on a read")
	default:
		return nil
	}
	return &r
}

// serveDocument handles the operations on one logical partition. It returns what was written.
func (a *Account) serveDocument(q *request, c *container, key partitionKey) (reply, []history.Write) {
	now := time.Now()
	if q.op == history.ReadDocument {
		return a.readDocument(q, c, key, now), nil
	}
	t := a.begin(c, key, now)
	if q.op == history.ExecuteBatch {
		r := a.executeBatch(q, t)
		return r, t.writes()
	}
	op := operation{id: q.part(5), ifMatch: q.header.Get("If-Match"), body: q.body, doc: q.document}
	switch q.op {
	case history.CreateDocument:
		op.kind = "Create"
	case history.UpsertDocument:
		op.kind = "Upsert"
	case history.ReplaceDocument:
		op.kind, op.doc = "Replace", readDocument(q.body)
	case history.PatchDocument:
		op.kind = "Patch"
	case history.DeleteDocument:
		op.kind = "Delete"
	}
	res := t.apply(op)
	if res.status >= 400 {
		r := refuse(res.status, res.substatus, res.message)
		r.charge = res.charge
		return r, nil
	}
	t.commit()
	r := reply{status: res.status, etag: res.etag, charge: res.charge, body: res.body}
	if q.wantsMinimal() {
		r.body = nil
	}
	return r, t.writes()
}

// writes returns what a committed transaction wrote, in its order.
func (t *transaction) writes() []history.Write {
	var list []history.Write
	for _, v := range t.pending {
		list = append(list, history.Write{ID: v.id, Created: !v.deleted && v.isNew(), Body: v.raw})
	}
	return list
}

// isNew reports whether the version is the first of its document, and not a replacement.
func (v *version) isNew() bool { return v.previous == nil || v.previous.seq != v.seq }
