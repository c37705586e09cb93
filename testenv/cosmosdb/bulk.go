package cosmosdb

import (
	"net/http"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
)

// executeBulk carries out a batch that is not atomic: each operation for itself, in its own logical partition, and the
// others whatever becomes of one. The answer is 200, or 207 where one failed, with a result for each operation, in order.
func (a *Account) executeBulk(q *request, c *container) (reply, []history.Write) {
	ops := q.batch.ops
	switch {
	case len(q.body) > maxItem:
		return refuse(http.StatusRequestEntityTooLarge, 0, "the bulk is larger than 2 MB"), nil
	case q.batch.err != nil:
		return refuse(http.StatusBadRequest, 0, "the bulk is not a JSON array of operations"), nil
	case len(ops) == 0 || len(ops) > maxBatch:
		return refuse(http.StatusBadRequest, 0, "a bulk has 1 to 100 operations"), nil
	}
	results := make([]result, len(ops))
	status := http.StatusOK
	var writes []history.Write
	for i, op := range ops {
		var written []history.Write
		results[i], written = a.executeAlone(c, op)
		writes = append(writes, written...)
		if results[i].status >= 400 {
			status = http.StatusMultiStatus
		}
	}
	return batchReply(status, ops, results, q.wantsMinimal()), writes
}

// executeAlone carries out one operation of a bulk, and returns what it wrote.
func (a *Account) executeAlone(c *container, op operation) (result, []history.Write) {
	key, given, err := parsePartitionKey(op.key)
	switch {
	case err != nil:
		return badRequest("%v", err), nil
	case !given || len(key) != len(c.def.keyPaths):
		return failure(http.StatusBadRequest, substatusKeyMismatch, 1, "the operation needs a partition key with the components of the container"), nil
	}
	t := a.begin(c, key, time.Now())
	r := t.apply(op)
	if r.status >= 400 {
		return r, nil
	}
	t.commit()
	return r, t.writes()
}
