package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsOfThePagesCanBeGiven holds what an operator copies at night against the program: each command is there, and
// takes as many words and the flags that the page gives it.
func TestCommandsOfThePagesCanBeGiven(t *testing.T) {
	t.Parallel()
	written := regexp.MustCompile("(?m)(?:^|[`|] ?)orderworker ([a-z][^`|#<\n]*)")
	for _, page := range []string{"deploy.md", "operations.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		require.NoError(t, err)
		found := written.FindAllStringSubmatch(string(text), -1)
		require.Greater(t, len(found), 2, page)
		for _, m := range found {
			c, rest, err := newRoot(system{program: testProgram()}).Find(strings.Fields(m[1]))
			require.NoError(t, err, "%s: %s", page, m[0])
			require.NoError(t, c.ParseFlags(rest), "%s: %s", page, m[0])
			require.NoError(t, c.ValidateArgs(c.Flags().Args()), "%s: %s", page, m[0])
		}
	}
}
