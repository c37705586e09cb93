package cosmosstore

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// written is what one write came to.
type written struct {
	class  class
	op     operation
	answer answer
	// index is the operation of the plan that decided.
	index int
	// session is the session token of the reply, so that a read sees what the write saw.
	session string
	// etag is the ETag of the document that was created alone, or that the first change of the plan left.
	etag string
	// over tells that the time of the operation was up, so that another try makes no sense now.
	over bool
}

// ofChange reports whether a change of the batch decided, because the document is not as it must be.
func (w written) ofChange() bool {
	return w.op == opBatchChange && (w.class == exists || w.class == moved || w.class == absent)
}

// bounded is [context.WithTimeout] that costs nothing when ctx ends sooner anyway, as that of the worker does.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// write sends a plan once: a create, or a batch whose first operation carries the inbox record.
func (s *Store) write(ctx context.Context, sess *session, p plan) written {
	ctx, cancel := bounded(ctx, s.opts.OperationTimeout)
	defer cancel()
	var w written
	if p.single() {
		w = s.create(ctx, sess, p)
	} else {
		w = s.batch(ctx, sess, p)
	}
	w.over = ctx.Err() != nil
	switch w.class {
	case done, moved, absent:
		s.writes.answered()
	case exists: // true only when the document is found
	default:
		s.writes.doubt(w.op)
	}
	return w
}

func (s *Store) create(ctx context.Context, sess *session, p plan) written {
	resp, err := sess.container.CreateItem(expecting(ctx, http.StatusConflict), azcosmos.NewPartitionKeyString(p.partition), p.docs[0].body, nil)
	a, session := replyOf(resp.RawResponse, err)
	return written{class: classify(opCreate, a), op: opCreate, answer: a, session: session, etag: string(resp.ETag)}
}

func (s *Store) batch(ctx context.Context, sess *session, p plan) written {
	b := sess.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(p.partition))
	for _, d := range p.docs {
		b.CreateItem(d.body, nil)
	}
	for _, c := range p.changes {
		c.addTo(&b)
	}
	resp, err := sess.container.ExecuteTransactionalBatch(ctx, b, nil)
	if err != nil && resp.RawResponse != nil {
		err = nil // the reply came, and is not JSON: judgeBatch finds no results in it
	}
	a, session := replyOf(resp.RawResponse, err)
	w := written{class: classify(opBatch, a), op: opBatch, answer: a, session: session}
	if err != nil {
		return w
	}
	results := resultsOf(resp.RawResponse)
	v := judgeBatch(a.status, results, len(p.docs), p.operations(), p.records)
	w.class, w.index = v.class, v.index
	if first := len(p.docs); first < len(results) {
		w.etag = results[first].ETag
	}
	if v.index < len(results) && v.class != done && v.class != unexpected {
		w.op, w.answer = opOf(v.index, len(p.docs)), results[v.index].answer(a.activity)
	}
	return w
}

// replyOf is the answer of a call of azcosmos, and the session token that came with it.
func replyOf(r *http.Response, err error) (answer, string) {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok && e.RawResponse != nil {
		return answerTo(err), e.RawResponse.Header.Get(headerSessionToken)
	}
	if err != nil {
		return answerTo(err), ""
	}
	return answerOf(r), r.Header.Get(headerSessionToken)
}
