package cosmosstore

import (
	"context"
	"errors"
	"net/http"

	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// probeID is an id that no key has.
const probeID = "~probe"

// probe asks for a document that does not exist: an answer to that says that the store can be used for reads.
func (s *Store) probe(ctx context.Context, sess *session) error {
	g := s.read(ctx, sess, probeID, probeID, "")
	err := probeError(opRead, g.answer)
	if g.class == done { // nothing has this id, so something else answers in the place of the account
		err = &worker.UnavailableError{Cause: &answerError{op: opRead, answer: g.answer, note: "a document that does not exist was read"}}
	}
	if g.class == misconfigured {
		s.forget(sess)
	}
	return outOfTime(ctx, err)
}

// probeWrite sends a write that can have no effect: the refusal for that says that such writes are answered, and are
// allowed. Reads may work while writes do not: keys and roles differ, proxies do, and in a fail-over so do regions. Op is
// opCreate or opBatch. It fails with an UnavailableError or a MisconfiguredError.
func (s *Store) probeWrite(ctx context.Context, sess *session, op operation) error {
	opCtx, cancel := bounded(ctx, s.opts.OperationTimeout)
	defer cancel()
	a := invalidWrite(opCtx, sess, op)
	if a.status == http.StatusBadRequest {
		s.writes.answered()
		return nil
	}
	s.writes.doubt(op)
	c := classify(opCreate, a)
	switch c {
	case misconfigured:
		s.forget(sess)
	case refused, tooLarge:
		c = misconfigured
	default:
		c = unavailable // a success, a conflict, a full partition: nothing of that can be true of such a write
	}
	return outOfTime(ctx, storeError(op, c, a, false))
}

// invalidWrite sends a write that every store refuses with 400: the document is no JSON, or in a batch no object.
func invalidWrite(ctx context.Context, sess *session, op operation) answer {
	ctx = expecting(ctx, http.StatusBadRequest)
	key := azcosmos.NewPartitionKeyString(probeID)
	if op != opBatch {
		resp, err := sess.container.CreateItem(ctx, key, []byte("{"), nil)
		return answerFrom(resp.RawResponse, err)
	}
	b := sess.container.NewTransactionalBatch(key)
	b.CreateItem([]byte("0"), nil)
	resp, err := sess.container.ExecuteTransactionalBatch(ctx, b, nil)
	a := answerFrom(resp.RawResponse, err)
	if resp.RawResponse == nil || a.status != http.StatusOK && a.status != http.StatusMultiStatus {
		return a
	}
	body, err := azruntime.Payload(resp.RawResponse)
	if results := parseBatch(body); err == nil && len(results) == 1 {
		return results[0].answer(a.activity)
	}
	return a
}

// answerFrom is the answer of a call of azcosmos that may have failed. A reply that azcosmos cannot read is a reply.
func answerFrom(r *http.Response, err error) answer {
	switch {
	case r != nil:
		return answerOf(r)
	case err != nil:
		return answerTo(err)
	}
	return answer{failure: broken, text: "a call came back with neither a reply nor an error"}
}

// storesFault probes the store after a write that was not accepted. Nil means that the probes are answered as they should be,
// so that message or store may be to blame: the engine weighs that.
func (k *committer) storesFault(ctx context.Context) error {
	ambiguous := k.stats.ambiguous()
	err := k.probeAll(ctx)
	if u, ok := errors.AsType[*worker.UnavailableError](err); ok && ambiguous {
		return &worker.UnavailableError{RetryAfter: u.RetryAfter, Ambiguous: true, Cause: u.Cause}
	}
	return err
}

// probeAll asks whether reads, unless some were just answered, and writes are answered and allowed.
func (k *committer) probeAll(ctx context.Context) error {
	if c := k.last.class; c != exists && c != tooLarge {
		if err := k.store.probe(ctx, k.sess); err != nil {
			return err
		}
	}
	return k.store.probeWrite(ctx, k.sess, wholeWrite(k.last.op))
}

// unreadable is the error for a document that cannot be read although others can.
func (s *Store) unreadable(ctx context.Context, sess *session, a answer, documentID string) error {
	s.report(ctx, opRead, a, documentID)
	if err := s.probe(ctx, sess); err != nil {
		return err
	}
	return uncertain(reason.ConflictUnread, &answerError{op: opRead, answer: a},
		"The document %q of this message cannot be read (%v), while others can. Look at it by hand, and reprocess this message.", documentID, a)
}
