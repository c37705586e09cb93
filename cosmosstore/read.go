package cosmosstore

import (
	"context"
	"net/http"

	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// reading is what the read of one document came to.
type reading struct {
	class   class
	answer  answer
	body    []byte
	session string
	date    string // the service's time, as the reply says it
}

// found is a document that was read. The zero value says that there is none.
type found struct {
	document
	body  []byte
	token string
	date  string
}

// found returns the document with an id, and false when that is not what was read.
func (g reading) found(id string) (found, bool) {
	if d, ok := parseDocument(id, g.body); ok && g.class == done {
		return found{d, g.body, g.session, g.date}, true
	}
	return found{}, false
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
	a, session := replyOf(resp.RawResponse, err)
	return reading{class: classify(opRead, a), answer: a, body: resp.Value, session: session, date: dateOf(resp.RawResponse)}
}

// readBatch reads documents of one logical partition in one batch, in order. A batch that is not answered as such is one reading,
// which says why.
//
// A batch goes to the write region and to the replica that takes the writes, so what it does not find does not exist, however far
// the others lag behind. It is a POST, too: a proxy that spoils every GET lets it pass, as it does the writes. It costs a little
// more than a read, so it is the last look for one document and not the first.
func (s *Store) readBatch(ctx context.Context, sess *session, partition string, ids []string, token string) []reading {
	ctx, cancel := bounded(readingOnly(ctx), s.opts.OperationTimeout)
	defer cancel()
	b := sess.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(partition))
	for _, id := range ids {
		b.ReadItem(id, nil)
	}
	resp, err := sess.container.ExecuteTransactionalBatch(ctx, b, &azcosmos.TransactionalBatchOptions{SessionToken: token})
	whole := answerFrom(resp.RawResponse, err)
	results := resultsOf(resp.RawResponse)
	if len(results) != len(ids) {
		return []reading{{class: classifyWhole(whole), answer: whole}}
	}
	readings := make([]reading, len(ids))
	for i, r := range results {
		a := r.answer(whole.activity)
		readings[i] = reading{class: classify(opRead, a), answer: a, body: r.Body, session: resp.RawResponse.Header.Get(headerSessionToken), date: dateOf(resp.RawResponse)}
	}
	return readings
}

// resultsOf are the results in the reply to a batch, whose text azcosmos has read already. It drops the substatus of an operation.
// A reply with another status, or none, has no results.
func resultsOf(r *http.Response) []batchResult {
	if r == nil || r.StatusCode != http.StatusOK && r.StatusCode != http.StatusMultiStatus {
		return nil
	}
	body, err := azruntime.Payload(r)
	if err != nil {
		return nil
	}
	return parseBatch(body)
}

// classifyWhole says what an answer to a batch of reads means that is not the answer to the reads. Without the word that
// the container is missing, a 404 may be anybody's.
func classifyWhole(a answer) class {
	c := classify(opReadContainer, a)
	if c == done || a.failure == answered && a.status == http.StatusNotFound && c == misconfigured && a.substatus != subOwnerMissing {
		return unexpected
	}
	return c
}
