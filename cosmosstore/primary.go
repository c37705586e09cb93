package cosmosstore

import (
	"context"
	"net/http"

	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// readPrimary reads one document as the only operation of a batch. A batch goes to the write region and to the replica that
// takes the writes, so what it does not find does not exist, however far the others lag behind. It is a POST, too: a proxy
// that spoils every GET lets it pass, as it does the writes. It costs a little more
// than a read, so it is the last look and not the first.
func (s *Store) readPrimary(ctx context.Context, sess *session, partition, id string) reading {
	ctx, cancel := bounded(readingOnly(ctx), s.opts.OperationTimeout)
	defer cancel()
	b := sess.container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(partition))
	b.ReadItem(id, nil)
	resp, err := sess.container.ExecuteTransactionalBatch(ctx, b, nil)
	a := answerFrom(resp.RawResponse, err)
	if resp.RawResponse == nil {
		return reading{class: classifyWhole(a), answer: a}
	}
	text, err := azruntime.Payload(resp.RawResponse)
	if err != nil {
		text = nil
	}
	return judgeRead(a, text, resp.RawResponse.Header.Get(headerSessionToken))
}

// judgeRead says what the reply to a batch of one read came to. It is a pure function.
func judgeRead(whole answer, text []byte, token string) reading {
	results := parseBatch(text)
	if whole.status != http.StatusOK && whole.status != http.StatusMultiStatus || len(results) != 1 {
		return reading{class: classifyWhole(whole), answer: whole}
	}
	a := results[0].answer(whole.activity)
	return reading{class: classify(opRead, a), answer: a, body: results[0].Body, session: token}
}

// classifyWhole says what an answer to a batch of one read means that is not the answer to the read. Without the word that
// the container is missing, a 404 may be anybody's.
func classifyWhole(a answer) class {
	c := classify(opReadContainer, a)
	if c == done || a.failure == answered && a.status == http.StatusNotFound && c == misconfigured && a.substatus != subOwnerMissing {
		return unexpected
	}
	return c
}
