package fingerprint_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// golden is one line of testdata/parameters-v1.jsonl. The lines were made by another program than this package, and none may
// ever change: documents with these hashes exist.
type golden struct {
	Name       string                 `json:"name"`
	Parameters fingerprint.Parameters `json:"recipe"`
	Body       string                 `json:"body"`
	BodyB64    []byte                 `json:"body_b64"`
	Canonical  string                 `json:"canonical"`
	Hash       string                 `json:"hash"`
}

func (g golden) bytes() []byte {
	if g.BodyB64 != nil {
		return g.BodyB64
	}
	return []byte(g.Body)
}

func goldens(t testing.TB) []golden {
	t.Helper()
	f, err := os.Open("testdata/parameters-v1.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var all []golden
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var g golden
		require.NoError(t, json.Unmarshal(lines.Bytes(), &g))
		all = append(all, g)
	}
	require.NoError(t, lines.Err())
	require.Len(t, all, 37, "no vector may be lost")
	return all
}

func TestParametersVersion1NeverChanges(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			if g.Parameters.Form == fingerprint.FormJSON {
				text, err := fingerprint.Canonical(g.bytes(), g.Parameters)
				require.NoError(t, err)
				require.Equal(t, g.Canonical, string(text))
			}
			f, err := fingerprint.Compute(g.bytes(), g.Parameters)
			require.NoError(t, err)
			require.Equal(t, fingerprint.Fingerprint{Hash: g.Hash, Parameters: g.Parameters}, f)
		})
	}
}

func TestTheStoredFormOfParameters(t *testing.T) {
	for text, parameters := range map[string]fingerprint.Parameters{
		`{"v":1,"alg":"sha256","form":"json"}`:                               {Version: 1, Algorithm: "sha256", Form: "json"},
		`{"v":1,"alg":"sha256","form":"json","ignore":["/a"],"only":["/b"]}`: {Version: 1, Algorithm: "sha256", Form: "json", Ignore: []string{"/a"}, Only: []string{"/b"}},
		`{"v":1,"alg":"sha256","form":"json","part":"data","unwrap":true}`:   {Version: 1, Algorithm: "sha256", Form: "json", Part: "data", Unwrap: true},
	} {
		written, err := json.Marshal(parameters)
		require.NoError(t, err)
		require.Equal(t, text, string(written))
		var read fingerprint.Parameters
		require.NoError(t, json.Unmarshal([]byte(text), &read))
		require.Equal(t, parameters, read)
	}
}
