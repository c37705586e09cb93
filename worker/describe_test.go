package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

func TestWhyARecordCannotBeComparedIsSaid(t *testing.T) {
	newer := &fingerprint.Fingerprint{Hash: "aa", Parameters: fingerprint.Parameters{Version: 9, Algorithm: "blake3"}}
	damaged := &fingerprint.Fingerprint{Hash: "aa", Parameters: fingerprint.Parameters{Version: 1, Algorithm: "sha256", Form: "JSON"}}
	for _, tt := range []struct {
		name   string
		record Record
		says   []string
	}{
		{"parameters of a newer version", Record{Key: "1", Attempt: "a", Fingerprint: newer}, []string{"version 9", "blake3", "use that version"}},
		{"parameters that was damaged", Record{Key: "1", Attempt: "a", Fingerprint: damaged}, []string{`form "JSON"`, "somebody changed it", "by hand"}},
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

func TestAConflictSaysOnWhichSideAValueIsMissing(t *testing.T) {
	f := fingerprint.Fingerprint{Hash: "aa"}
	r := Result{
		Admitted: true, Cause: CauseConflict, Judgement: Conflict, Commit: Commit{Key: identity.Text("1"), DocumentID: "1"},
		Outcome: Outcome{Existing: &Record{Key: "1", Fingerprint: &f}},
	}
	for _, tt := range []struct {
		name        string
		differences []fingerprint.Difference
		says, lines string
	}{
		{"a value that changed", []fingerprint.Difference{{Path: "/a", Kind: fingerprint.Changed}}, "at /a.", "/a"},
		{"a member that was left out and one that came", []fingerprint.Difference{{Path: "/a", Kind: fingerprint.Removed}, {Path: "/b", Kind: fingerprint.Added}},
			"at /a (only in what is stored), /b (only in this message).", "/a\n/b"},
		{"two names that look alike", []fingerprint.Difference{{Path: "/cafe\u0301", Kind: fingerprint.Removed}, {Path: "/caf\u00e9", Kind: fingerprint.Added}},
			`at "/cafe\u0301" (only in what is stored), "/caf\u00e9" (only in this message).`, "/cafe\u0301\n/caf\u00e9"},
		{"a name with a line feed in it", []fingerprint.Difference{{Path: "/a\n/b", Kind: fingerprint.Changed}, {Path: "/c", Kind: fingerprint.Changed}},
			`at "/a\n/b", /c.`, `"/a\n/b"` + "\n/c"},
		{"bodies that differ as a whole", []fingerprint.Difference{{Kind: fingerprint.Changed}}, "at the whole body.", "the whole body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := r
			r.Differences = tt.differences
			require.Contains(t, describe(r), tt.says)
			require.Equal(t, tt.lines, noteOf(r, "", "").properties[PropertyPaths])
		})
	}
}

func TestAMessageThatLacksWhatWasComparedHasNoHashToName(t *testing.T) {
	f := fingerprint.Fingerprint{Hash: "aa", Parameters: fingerprint.Parameters{Version: 1, Algorithm: "sha256", Form: "json", Only: []string{"/order"}}}
	r := Result{Judgement: Conflict, Commit: Commit{Key: identity.Text("1")}, Outcome: Outcome{Existing: &Record{Key: "1", Fingerprint: &f}}}
	require.Contains(t, describe(r), "Stored hash aa; this message has none of the values that were compared")
	r.ArrivedHash = "bb"
	require.Contains(t, describe(r), "Stored hash aa, arrived hash bb.")
}
