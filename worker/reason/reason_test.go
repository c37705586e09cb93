package reason_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/reason"
)

// words reads the constants from the source, so that none can be forgotten.
func words(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	require.NoError(t, err)
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, v := range spec.Values {
				literal, ok := v.(*ast.BasicLit)
				require.True(t, ok, "a reason is a literal word")
				word, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				out = append(out, word)
			}
		}
		return true
	})
	require.Greater(t, len(out), 30)
	return out
}

func TestWordsAreDistinctAndShort(t *testing.T) {
	seen := map[string]bool{}
	for _, word := range words(t) {
		require.Regexp(t, regexp.MustCompile(`^[A-Z][A-Za-z0-9]{2,39}$`), word)
		require.False(t, seen[word], word)
		seen[word] = true
	}
}

func TestEveryWordIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/admission.md")
	require.NoError(t, err)
	for _, word := range words(t) {
		require.Contains(t, string(page), "\n| `"+word+"` | ", "the table of reasons lacks it")
	}
}

func TestARefusalIsAnError(t *testing.T) {
	var err error = reason.Refuse(reason.TooLarge, "The body has %d bytes.", 7)
	require.EqualError(t, err, "TooLarge: The body has 7 bytes.")
}
