package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
)

func TestWhatCannotBeSentIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for _, tt := range []struct {
		name  string
		stdin string
		args  []string
		want  string
	}{
		{"nothing", "", nil, "there is no message in standard input"},
		{"blank lines", "\n \n", nil, "there is no message in standard input"},
		{"an empty file", "", []string{file("empty", "")}, "there is no message in " + filepath.Join(folder, "empty")},
		{"no file", "", []string{filepath.Join(folder, "none")}, filepath.Join(folder, "none") + ": no such file"},
		{"a folder", "", []string{folder}, "is a directory"},
		{"two files", "", []string{"a", "b"}, "accepts at most 1 arg(s)"},
		{"zeros", "", []string{file("zeros", "{}\x00")}, "line 1:"},
		{"a compressed file", "", []string{file("gz", "\x1f\x8b\x08\x00rest")}, "line 1:"},
		{"text of another encoding", "", []string{file("latin", "{\"body\":\"caf\xe9\"}")}, "line 1:"},
		{"a misspelt member", `{"mesage_id":"1"}`, nil, `there is no member "mesage_id". The members are message_id, message_id_amqp, `},
		{"a foreign member", `{"quantity":1}`, nil, `there is no member "quantity". The members are message_id, `},
		{"a number for an id", `{"message_id":1}`, nil, "message_id: must be a string, and is a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := execute(t, nil, tt.stdin, append([]string{"send", "--check"}, tt.args...)...)
			require.Equal(t, exitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
		})
	}
}

func TestOnlyTheFirstFaultsAreShown(t *testing.T) {
	t.Parallel()
	_, _, stderr := execute(t, nil, strings.Repeat("oops\n", 25), "send", "--check")
	require.Contains(t, stderr, "The first 10 faults are")
	require.Contains(t, stderr, "line 10:")
	require.NotContains(t, stderr, "line 11:")
}

func TestAByteOrderMarkIsNoFault(t *testing.T) {
	t.Parallel()
	code, _, stderr := execute(t, nil, "\ufeff{\"message_id\":\"1\"}\r\n", "send", "--check")
	require.Equal(t, exitOK, code, stderr)
}

func TestAMessageThatIsTooLargeIsRefusedWithTheSizes(t *testing.T) {
	t.Parallel()
	_, settings := serve(t, testenv.Options{})
	code, _, stderr := execute(t, environOf(settings), `{"message_id":"1","body":"`+strings.Repeat("x", 300_000)+`"}`, "send")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "Its line has 300028 bytes; a queue or topic takes 256 KB")
}

// endsOnce is a terminal: after its end it would wait for more.
type endsOnce struct {
	t    *testing.T
	text io.Reader
	done bool
}

func (e *endsOnce) Read(p []byte) (int, error) {
	require.False(e.t, e.done, "it was asked again after its end")
	n, err := e.text.Read(p)
	e.done = errors.Is(err, io.EOF)
	return n, err
}

func TestATerminalIsNotAskedAgainAfterItsEnd(t *testing.T) {
	t.Parallel()
	lines, err := readLines(system{stdin: &endsOnce{t: t, text: strings.NewReader("{}\n")}}, "-", decodeNumbered)
	require.NoError(t, err)
	require.Len(t, lines, 1)
}
