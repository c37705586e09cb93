package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

func TestWhyARecordCannotBeComparedIsSaid(t *testing.T) {
	newer := &fingerprint.Fingerprint{Hash: "aa", Recipe: fingerprint.Recipe{Version: 9, Algorithm: "blake3"}}
	for _, tt := range []struct {
		name   string
		record Record
		says   []string
	}{
		{"a recipe of a newer version", Record{Key: "1", Attempt: "a", Fingerprint: newer}, []string{"version 9", "blake3", "use that version"}},
		{"a document of somebody else", Record{}, []string{"does not look like one that this worker wrote", "discard"}},
		{"a key that was lost", Record{Attempt: "a", Fingerprint: newer}, []string{"does not say its key", "by hand"}},
		{"a hash that was lost", Record{Key: "1", Attempt: "a"}, []string{"missing or damaged", "by hand"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := describe(Result{Judgement: HashMissing, Commit: Commit{Key: identity.Text("1"), DocumentID: "1"}, Outcome: Outcome{Existing: &tt.record}})
			for _, says := range tt.says {
				require.Contains(t, text, says)
			}
		})
	}
}
