package deadletter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwoValuesThatDifferAreShownSoThatAPersonSeesIt(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, tt := range []struct{ name, stored, arrived, wantStored, wantArrived string }{
		{"two numbers", `40`, `4.1e1`, `40`, `4.1e1`},
		{"two words", `"Müller"`, `"Mueller"`, `"Müller"`, `"Mueller"`},
		{"words of another script", `"東京"`, `"大阪"`, `"東京"`, `"大阪"`},
		{"an accent of its own", `"café au lait"`, "\"cafe\u0301 au lait\"", `"café au lait"`, `"cafe\u0301 au lait"`},
		{"an accent that both have is left alone", "\"cafe\u0301 1\"", "\"cafe\u0301 2\"", "\"cafe\u0301 1\"", "\"cafe\u0301 2\""},
		{"a Hangul syllable and its parts", `"한"`, "\"\u1112\u1161\u11ab\"", `"한"`, `"\u1112\u1161\u11ab"`},
		{"a blank that does not break", `"a b"`, "\"a\u00a0b\"", `"a b"`, `"a\u00a0b"`},
		{"a Cyrillic letter", `"A-1"`, "\"\u0410-1\"", `"A-1"`, `"\u0410-1"`},
		{"a dash for a hyphen", "\"A\u20131\"", `"A-1"`, `"A\u20131"`, `"A-1"`},
		{"an end of line", `"x\r\n"`, `"x\n"`, `"x\r\n"`, `"x\n"`},
		{"one within the other", `"x"`, `"x "`, `"x"`, `"x "`},
		{"a long text that differs at its end", `"` + long + `a"`, `"` + long + `b"`, "…" + strings.Repeat("x", 100) + `a"`, "…" + strings.Repeat("x", 100) + `b"`},
		{
			"a long text that has other escapes before", `"\/` + long + `a"`, `"/` + long + `b"`,
			"…" + strings.Repeat("x", 100) + `a"`, "…" + strings.Repeat("x", 100) + `b"`,
		},
		{"a long text and a short one", `"` + long + `"`, `"y"`, `"` + strings.Repeat("x", 398) + "…", `"y"`},
		{"nothing that can be read", "", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stored, arrived := apart([]byte(tt.stored), []byte(tt.arrived))
			require.Equal(t, tt.wantStored, stored)
			require.Equal(t, tt.wantArrived, arrived)
		})
	}
}

func FuzzValuesApart(f *testing.F) {
	f.Add([]byte("\"e\u0301\""), []byte("\"\u00e9\""))
	f.Add([]byte("\xe9\x81"), []byte("\xe9\x82"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, text := range []string{first(apart(a, b)), first(apart(b, a))} {
			require.LessOrEqual(t, len([]rune(text)), maxChangeText)
			require.Equal(t, Visible(text), text, "safe to show")
		}
	})
}

func first(a, _ string) string { return a }
