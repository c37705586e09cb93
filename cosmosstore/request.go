package cosmosstore

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// written is what one write came to.
type written struct {
	class  class
	op     operation
	answer answer
	// index is the document that decided.
	index int
	// session is the session token of the reply, so that a read sees what the write saw.
	session string
	// over tells that the time of the operation was up, so that another try makes no sense now.
	over bool
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
	case done:
		s.standing.accepted()
	case exists: // true only when the document is found
	case moved, absent:
		s.standing.answered()
	default:
		s.standing.doubt(w.op)
	}
	return w
}

func (s *Store) create(ctx context.Context, sess *session, p plan) written {
	resp, err := sess.container.CreateItem(expecting(ctx, http.StatusConflict), azcosmos.NewPartitionKeyString(p.partition), p.docs[0].body, nil)
	return failedOr(opCreate, err, func() written {
		a := answerOf(resp.RawResponse)
		return written{class: classify(opCreate, a), op: opCreate, answer: a, session: resp.RawResponse.Header.Get(headerSessionToken)}
	})
}

// failedOr is what an error came to, or the result of f when there is none.
func failedOr(op operation, err error, f func() written) written {
	if err == nil {
		return f()
	}
	a := answerTo(err)
	return written{class: classify(op, a), op: op, answer: a, session: sessionOf(err)}
}

// sessionOf returns the session token that came with an error, or "".
func sessionOf(err error) string {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok && e.RawResponse != nil {
		return e.RawResponse.Header.Get(headerSessionToken)
	}
	return ""
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
	return failedOr(opBatch, err, func() written { return batchReply(resp.RawResponse, p) })
}

// batchReply judges the reply to a batch. The text is read again, since azcosmos drops the substatus of an operation.
func batchReply(resp *http.Response, p plan) written {
	a := answerOf(resp)
	w := written{op: opBatch, answer: a, session: resp.Header.Get(headerSessionToken)}
	if a.status != http.StatusOK && a.status != http.StatusMultiStatus {
		w.class = unexpected
		return w
	}
	body, err := azruntime.Payload(resp)
	if err != nil {
		body = nil
	}
	results := parseBatch(body)
	v := judgeBatch(a.status, results, len(p.docs), p.operations(), p.records)
	w.class, w.index = v.class, v.index
	if v.index < len(results) && v.class != done && v.class != unexpected {
		w.op, w.answer = opOf(v.index, len(p.docs)), results[v.index].answer(a.activity)
	}
	return w
}

// reading is what one read came to.
type reading struct {
	class   class
	answer  answer
	body    []byte
	session string
}

// read reads one document. The token may be empty.
func (s *Store) read(ctx context.Context, sess *session, partition, id, token string) reading {
	ctx, cancel := bounded(ctx, s.opts.OperationTimeout)
	defer cancel()
	opts := &azcosmos.ItemOptions{}
	if token != "" {
		opts.SessionToken = &token
	}
	resp, err := sess.container.ReadItem(expecting(ctx, http.StatusNotFound), azcosmos.NewPartitionKeyString(partition), id, opts)
	if err != nil {
		a := answerTo(err)
		return reading{class: classify(opRead, a), answer: a, session: sessionOf(err)}
	}
	a := answerOf(resp.RawResponse)
	return reading{class: classify(opRead, a), answer: a, body: resp.Value, session: resp.RawResponse.Header.Get(headerSessionToken)}
}

// readAll reads several documents of one logical partition in one batch, and returns their bodies in order, or nil when
// not every one of them was read.
func (s *Store) readAll(ctx context.Context, sess *session, partition string, ids []string, token string) [][]byte {
	ctx, cancel := bounded(readingOnly(ctx), s.opts.OperationTimeout)
	defer cancel()
	b := sess.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(partition))
	for _, id := range ids {
		b.ReadItem(id, nil)
	}
	resp, err := sess.container.ExecuteTransactionalBatch(ctx, b, &azcosmos.TransactionalBatchOptions{SessionToken: token})
	if err != nil || resp.RawResponse.StatusCode != http.StatusOK {
		return nil
	}
	text, err := azruntime.Payload(resp.RawResponse)
	results := parseBatch(text)
	if err != nil || len(results) != len(ids) {
		return nil
	}
	bodies := make([][]byte, len(ids))
	for i, r := range results {
		if r.Status != http.StatusOK {
			return nil
		}
		bodies[i] = r.Body
	}
	return bodies
}
