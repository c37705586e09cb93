package cosmosstore

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVerdictOnABatchComesFromItsOperations(t *testing.T) {
	tests := []struct {
		name   string
		status int
		codes  []int
		n      int
		want   batchVerdict
	}{
		{"all created", 200, []int{201, 201, 201}, 3, batchVerdict{class: done}},
		{"inbox record exists", 207, []int{409, 424, 424}, 3, batchVerdict{class: exists}},
		{"a line exists", 207, []int{424, 409, 424}, 3, batchVerdict{class: exists, index: 1}},
		{"the last line exists", 207, []int{424, 424, 409}, 3, batchVerdict{class: exists, index: 2}},
		{"inbox record throttled", 207, []int{429, 424, 424}, 3, batchVerdict{class: unavailable}},
		{"line throttled", 207, []int{424, 424, 429}, 3, batchVerdict{class: unavailable, index: 2}},
		{"line too large", 207, []int{424, 413, 424}, 3, batchVerdict{class: tooLarge, index: 1}},
		{"inbox record contended", 207, []int{449, 424}, 2, batchVerdict{class: contended}},
		{"line contended", 207, []int{424, 449, 424}, 3, batchVerdict{class: contended, index: 1}},
		{"an inbox record that exists decides over a throttled line", 207, []int{409, 429}, 2, batchVerdict{class: exists}},
		{"a throttled line decides over a line that exists", 207, []int{424, 429, 409}, 3, batchVerdict{class: unavailable, index: 1}},
		{"line failed inside the service", 207, []int{424, 500}, 2, batchVerdict{class: ambiguous, index: 1}},
		{"line refused", 207, []int{424, 400}, 2, batchVerdict{class: refused, index: 1}},
		{"no result although the status is good", 200, nil, 3, batchVerdict{class: unexpected}},
		{"fewer results than operations", 200, []int{201, 201}, 3, batchVerdict{class: unexpected}},
		{"more results than operations", 200, []int{201, 201, 201}, 2, batchVerdict{class: unexpected}},
		{"all created under a failed status", 207, []int{201, 201}, 2, batchVerdict{class: unexpected}},
		{"a stray line of a batch that was refused", 207, []int{409, 201}, 2, batchVerdict{class: exists}},
		{"a stray line under a good status", 200, []int{409, 201}, 2, batchVerdict{class: exists}},
		{"an inbox record without its line", 207, []int{201, 409}, 2, batchVerdict{class: unexpected}},
		{"an inbox record without its line under a good status", 200, []int{201, 500}, 2, batchVerdict{class: unexpected}},
		{"a code that a create never has", 200, []int{200, 201}, 2, batchVerdict{class: unexpected}},
		{"all failed for another one", 207, []int{424, 424}, 2, batchVerdict{class: unexpected}},
		{"codes are missing", 200, []int{0, 0}, 2, batchVerdict{class: unexpected}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			results := make([]batchResult, len(tt.codes))
			for i, c := range tt.codes {
				results[i].Status = c
			}
			require.Equal(t, tt.want, judgeBatch(tt.status, results, tt.n, tt.n, 1))
		})
	}
}

func TestWithInboxRecordsTheFirstDocumentCanBeJudgedToo(t *testing.T) {
	results := []batchResult{{Status: 424}, {Status: 409}, {Status: 424}}
	require.Equal(t, batchVerdict{class: exists, index: 1}, judgeBatch(207, results, 3, 3, 2))
}

func TestBatchResultsAreReadFromAnyText(t *testing.T) {
	require.Equal(t, []batchResult{{Status: 429, Substatus: 3200, RetryAfter: 500}, {Status: 424}},
		parseBatch([]byte(`[{"statusCode":429,"subStatusCode":3200,"retryAfterMilliseconds":500,"x":1},{"statusCode":424}]`)))
	for _, text := range []string{"", "null", "<html>", "{}", `[{"statusCode":"409"}]`, `[409]`, `[{"statusCode":201}`} {
		require.Empty(t, parseBatch([]byte(text)), "%q", text)
	}
}

// FuzzJudgeBatch holds every reply against the one promise: done means that each operation said 201 under a good status.
func FuzzJudgeBatch(f *testing.F) {
	f.Add(200, []byte(`[{"statusCode":201},{"statusCode":201}]`), 2, 1)
	f.Add(207, []byte(`[{"statusCode":409},{"statusCode":201}]`), 2, 1)
	f.Add(207, []byte(`[{"statusCode":424},{"statusCode":409}]`), 2, 2)
	f.Add(207, []byte(`not JSON`), 3, 1)
	f.Fuzz(func(t *testing.T, status int, body []byte, n, records int) {
		if n < 1 || n > 100 || records < 1 || records > n {
			t.Skip()
		}
		results := parseBatch(body)
		v := judgeBatch(status, results, n, n, records)
		require.NotZero(t, v.class)
		all := json.Valid(body) && len(results) == n && status == 200
		for _, r := range results {
			all = all && r.Status == 201
		}
		require.Equal(t, all, v.class == done)
		require.Less(t, v.index, n)
	})
}
