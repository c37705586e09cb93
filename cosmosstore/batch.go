package cosmosstore

import (
	"encoding/json"
	"net/http"
	"time"
)

// batchResult is what one operation of a batch got.
type batchResult struct {
	Status     int    `json:"statusCode"`
	Substatus  int    `json:"subStatusCode"`
	RetryAfter int    `json:"retryAfterMilliseconds"`
	ETag       string `json:"eTag"`
	// Body is the document of a read.
	Body json.RawMessage `json:"resourceBody"`
}

func (r batchResult) answer(activity string) answer {
	return answer{
		status: r.Status, substatus: r.Substatus, activity: activity,
		retryAfter: time.Duration(max(r.RetryAfter, 0)) * time.Millisecond,
	}
}

// batchVerdict is what a whole batch came to.
type batchVerdict struct {
	// class is exists for a document that exists.
	class class
	// index is the operation that decided, where class is its class.
	index int
}

// parseBatch reads the results of a batch. A text that is no such list has none.
func parseBatch(body []byte) []batchResult {
	var results []batchResult
	if json.Unmarshal(body, &results) != nil {
		return nil
	}
	return results
}

// blame is the order in which the classes of the operations decide. What lets the whole batch be sent again comes first.
var blame = [...]class{contended, unavailable, ambiguous, exists, moved, absent, tooLarge, partitionFull, misconfigured, refused, unexpected}

// opOf is the operation at an index of a batch that begins with creates.
func opOf(index, creates int) operation {
	if index < creates {
		return opBatchCreate
	}
	return opBatchChange
}

// judgeBatch says what a batch of n operations, the first of them creates, came to whose reply had this HTTP status. The first
// records operations create documents that can be judged. It is a pure function: only the codes of the operations count, and the
// HTTP status only where it contradicts them.
func judgeBatch(status int, results []batchResult, creates, n, records int) batchVerdict {
	if len(results) != n {
		return batchVerdict{class: unexpected}
	}
	classes := make([]class, n)
	created := 0
	for i, r := range results {
		classes[i] = classify(opOf(i, creates), r.answer(""))
		if classes[i] == done {
			created++
		}
	}
	for i := range records {
		if classes[i] == exists {
			return batchVerdict{class: exists, index: i}
		}
	}
	switch {
	case created == n && status == http.StatusOK:
		return batchVerdict{class: done}
	case created > 0:
		return batchVerdict{class: unexpected}
	}
	for _, b := range blame {
		for i, c := range classes {
			if c == b {
				return batchVerdict{class: c, index: i}
			}
		}
	}
	return batchVerdict{class: unexpected} // every operation says that another one failed
}
