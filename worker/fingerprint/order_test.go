package fingerprint

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAByteMovesAsOftenAsABodyCanBeHalved counts the bytes that are moved to put members in order.
func TestAByteMovesAsOftenAsABodyCanBeHalved(t *testing.T) {
	const size = 1_000_000
	chain := func(depth int, inner, after string) string {
		return strings.Repeat(`{"n":0,"m":`, depth) + inner + strings.Repeat(after+`,"a":0}`, depth)
	}
	doubling := `{"n":0,"m":0,"a":0}`
	for len(doubling) < size/2 {
		doubling = `{"n":"` + strings.Repeat("x", len(doubling)) + `","m":` + doubling + `,"a":0}`
	}
	small := chain(40, "0", "")
	for name, body := range map[string]string{
		"deep around a long text": chain(9_000, `"`+strings.Repeat("x", size)+`"`, ""),
		"the depth of admission":  chain(127, `"`+strings.Repeat("x", size)+`"`, ""),
		"a long text all along":   chain(127, "0", `,"l":"`+strings.Repeat("x", size/127)+`"`),
		"each twice the last":     doubling,
		"many small ones":         "[" + small + strings.Repeat(","+small, size/len(small)) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := read([]byte(body), Limits{}, nil, false)
			require.NoError(t, err)
			text := c.ordered(c.all())
			require.NotEqual(t, body, string(text), "it was out of order")
			t.Logf("%.1f times", float64(c.copied)/float64(len(text)))
			require.LessOrEqual(t, c.copied, (bits.Len(uint(len(text)))+1)*len(text))
			again, err := canonical(text, Limits{}, nil, false)
			require.NoError(t, err)
			require.True(t, string(text) == string(again))
		})
	}
}
