package cosmosdb

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
	"github.com/orderworker/orderworker/testenv/history"
)

// maxBatch is how many operations a batch may have.
const maxBatch = 100

// readBatch reads the operations of a batch, with the documents that they bring.
func readBatch(body []byte) ([]operation, error) {
	var raw []struct {
		OperationType string          `json:"operationType"`
		ID            string          `json:"id"`
		IfMatch       string          `json:"ifMatch"`
		IfNoneMatch   string          `json:"ifNoneMatch"`
		PartitionKey  string          `json:"partitionKey"`
		ResourceBody  json.RawMessage `json:"resourceBody"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, err
	}
	ops := make([]operation, len(raw))
	for i, r := range raw {
		ops[i] = operation{
			kind: r.OperationType, id: r.ID, ifMatch: r.IfMatch, ifNoneMatch: r.IfNoneMatch, body: r.ResourceBody, key: r.PartitionKey,
		}
		if ops[i].bringsDocument() {
			ops[i].doc = readDocument(r.ResourceBody)
		}
	}
	return ops, nil
}

// batchKey is the id of the first create of a batch, or else of its first operation: the guard by which fault plans know
// the batch.
func batchKey(ops []operation) string {
	if len(ops) == 0 {
		return ""
	}
	for _, op := range ops {
		if op.kind == "Create" {
			return op.doc.id()
		}
	}
	if ops[0].id != "" {
		return ops[0].id
	}
	return ops[0].doc.id()
}

// readsAlone reports whether a request is a batch of nothing but reads, which changes nothing.
func readsAlone(q *request) bool {
	return q.op == history.ExecuteBatch && q.batch.err == nil &&
		!slices.ContainsFunc(q.batch.ops, func(op operation) bool { return op.kind != "Read" })
}

// executeBatch carries out a batch: all operations happen, with status 200, or none, with status 207, the culprit's own
// status and 424 for the others. Both come with a result for each operation, in order. Batches that are not atomic are
// refused.
func (a *Account) executeBatch(q *request, t *transaction) reply {
	if !q.flag("x-ms-cosmos-batch-atomic") || q.flag("x-ms-cosmos-batch-continue-on-error") {
		return a.refuseLocked(q, "a batch that is not atomic")
	}
	if slices.ContainsFunc(q.batch.ops, operation.unknownCondition) {
		return a.refuseLocked(q, "ifNoneMatch of a write, or ifMatch of a read, in a batch")
	}
	if len(q.body) > maxItem {
		return refuse(http.StatusRequestEntityTooLarge, 0, "the batch is larger than 2 MB")
	}
	ops := q.batch.ops
	if q.batch.err != nil {
		return refuse(http.StatusBadRequest, 0, "the batch is not a JSON array of operations")
	}
	if len(ops) == 0 || len(ops) > maxBatch {
		return refuse(http.StatusBadRequest, 0, "a batch has 1 to 100 operations")
	}
	results := make([]result, len(ops))
	failed := -1
	for i, op := range ops {
		if results[i] = t.apply(op); results[i].status >= 400 {
			failed = i
			break
		}
	}
	if failed >= 0 {
		t.pending = nil
		return batchReply(http.StatusMultiStatus, ops, failDependents(results, failed), true)
	}
	t.commit()
	return batchReply(http.StatusOK, ops, results, q.wantsMinimal())
}

// unknownCondition reports whether the operation has a condition of which it is not known what the service does with it.
func (op operation) unknownCondition() bool {
	return op.ifNoneMatch != "" && op.kind != "Read" || op.ifMatch != "" && op.kind == "Read"
}

// failDependents turns every result but the culprit's into 424, with no charge: the culprit has it all.
func failDependents(results []result, culprit int) []result {
	charge := 0.0
	for _, r := range results {
		charge += r.charge
	}
	out := make([]result, len(results))
	for i := range out {
		out[i] = result{status: http.StatusFailedDependency}
	}
	out[culprit] = results[culprit]
	out[culprit].charge = round2(charge)
	return out
}

func batchReply(status int, ops []operation, results []result, minimal bool) reply {
	list := make([]any, len(results))
	out := reply{status: status}
	for i, r := range results {
		o := jsondoc.NewObject()
		o.Set("statusCode", float64(r.status))
		if r.substatus != 0 {
			o.Set("subStatusCode", float64(r.substatus))
		}
		o.Set("requestCharge", r.charge)
		if r.etag != "" {
			o.Set("eTag", r.etag)
		}
		if r.body != nil && (!minimal || ops[i].kind == "Read") {
			if v, err := jsondoc.Parse(r.body); err == nil {
				o.Set("resourceBody", v)
			}
		}
		list[i] = o
		out.charge += r.charge
		if r.status >= 400 && r.status != http.StatusFailedDependency {
			out.message = r.message
		}
	}
	out.charge = round2(out.charge)
	out.body = jsondoc.Encode(list)
	return out
}
