package app

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
)

func execute(t *testing.T, environ []string, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), testProgram(), Process{Args: args, Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

func TestEveryLineIsCheckedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	code, _, stderr := execute(t, nil, "{\"message_id\":\"1\",\"body\":{}}\n\n{\"messageid\":\"2\"}\nnot json\n", "send")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "nothing was done")
	require.Contains(t, stderr, "standard input, line 3")
	require.Contains(t, stderr, "standard input, line 4")
}

func TestLinesCanBeCheckedWithoutABroker(t *testing.T) {
	t.Parallel()
	code, stdout, _ := execute(t, nil, "{\"message_id\":\"1\",\"body\":{}}\n", "send", "--check")
	require.Equal(t, exitOK, code)
	require.Equal(t, "1 message(s) can be sent\n", stdout)
}

func TestAnUnreachableBrokerIsNamedWithAFix(t *testing.T) {
	t.Parallel()
	environ := []string{"SERVICEBUS_CONNECTION_STRING=Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true"}
	code, _, stderr := execute(t, environ, `{"message_id":"1","body":{}}`, "send")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "line 1 was not sent")
	require.Contains(t, stderr, "cannot be reached")
}

func TestUsageErrorsHaveTheirOwnCode(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "--nonsense"}, {"run", "extra"}, {"nonsense"}, {"check", "-o", "xml"}, {"get"}} {
		code, _, stderr := execute(t, nil, "", args...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
		require.NotEmpty(t, stderr)
	}
}

func TestAnInterruptedSendSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	env, settings := serve(t, testenv.Options{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"send"}, system{program: testProgram(), environ: environOf(settings), stdin: strings.NewReader(`{"message_id":"1","body":{}}`), stdout: &stdout, stderr: &stderr})
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr.String(), "interrupted: line 1 was not sent, nor anything after it; 0 message(s) before it were")
	counts, err := env.Broker.Counts("orders")
	require.NoError(t, err)
	require.Zero(t, counts.Active)
}
