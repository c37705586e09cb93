package app

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of settings into the README")

func settingsTable() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| variable | flag | default | meaning |\n|---|---|---|---|")
	for _, s := range new(config).settings() {
		flag, fallback := "", ""
		if s.flag != "" {
			flag = "`--" + s.flag + "`"
		}
		if s.fallback != "" {
			fallback = "`" + s.fallback + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.env, flag, fallback, s.meaning)
	}
	return b.String()
}

func TestTheReadmeHasTheTableOfSettings(t *testing.T) {
	const file, begin, end = "../../README.md", "<!-- settings -->\n", "<!-- end of settings -->"
	readme, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := bytes.Cut(readme, []byte(begin))
	require.True(t, ok)
	table, after, ok := bytes.Cut(rest, []byte(end))
	require.True(t, ok)
	if *update {
		text := string(before) + begin + settingsTable() + end + string(after)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	require.Equal(t, settingsTable(), string(table), "run: go test ./cmd/orderworker -run Readme -update")
}
