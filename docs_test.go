package orderworker_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentsNameWhatTheCodeSays holds the pages that alerts and people rely on against the words in the code.
func TestDocumentsNameWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ page, code, words string }{
		{"docs/telemetry.md", "worker/telemetry.go", `"((?:orderworker|messaging)\.[a-z_.]+)"`},
		{"docs/telemetry.md", "worker/logs.go", `key[A-Z]\w+ += "([a-z_]+)"`},
		{"docs/telemetry.md", "worker/events.go", `EventKind = "([a-z_]+)"`},
		{"docs/telemetry.md", "worker/decide.go", `"([a-z]+_[a-z_]+)"`},
		{"docs/admission.md", "worker/reason/reason.go", `= "([A-Za-z0-9]+)" +// (?:the key|no body|an AMQP|a legacy|a content|the label|the body|an object|JSON|nested|larger|a number|the part)`},
		{"docs/operations.md", "worker/reason/reason.go", `= "([A-Za-z0-9]+)"`},
	} {
		page, err := os.ReadFile(filepath.FromSlash(tt.page))
		require.NoError(t, err)
		code, err := os.ReadFile(filepath.FromSlash(tt.code))
		require.NoError(t, err)
		found := regexp.MustCompile(tt.words).FindAllSubmatch(code, -1)
		require.NotEmpty(t, found, "%s has no words like %s any more", tt.code, tt.words)
		for _, m := range found {
			require.Regexp(t, "`"+regexp.QuoteMeta(string(m[1]))+"`", string(page), "%s does not name %s of %s", tt.page, m[1], tt.code)
		}
	}
}

// TestThePagesOfEffectsShowCodeThatRuns finds each piece of code of the pages in a program that is tested.
func TestThePagesOfEffectsShowCodeThatRuns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.FromSlash("docs/effects.md"))
	require.NoError(t, err)
	more, err := os.ReadFile(filepath.FromSlash("docs/claims.md"))
	require.NoError(t, err)
	programs, err := filepath.Glob(filepath.FromSlash("docs/examples/*/main.go"))
	require.NoError(t, err)
	var code []byte
	for _, p := range programs {
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		code = append(code, text...)
	}
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(append(page, more...), -1)
	require.NotEmpty(t, pieces)
	for _, piece := range pieces {
		require.Contains(t, string(code), string(piece[1]))
	}
}

// TestGoDocOpensWithCodeThatRuns finds each line of the code at the top of package worker in its example, which is compiled.
func TestGoDocOpensWithCodeThatRuns(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.FromSlash("worker/doc.go"))
	require.NoError(t, err)
	example, err := os.ReadFile(filepath.FromSlash("worker/example_test.go"))
	require.NoError(t, err)
	lines := regexp.MustCompile("(?m)^//\t(.*?)( // .*)?$").FindAllStringSubmatch(string(doc), -1)
	require.Greater(t, len(lines), 8)
	for _, line := range lines {
		require.Contains(t, string(example), strings.TrimSpace(line[1]))
	}
}
