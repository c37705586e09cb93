package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelpNamesWhatHasNoFlagAndTheExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"run", "--help"}, []string{"SERVICEBUS_CONNECTION_STRING", "COSMOS_KEY", "Exit codes: 0"}},
		{[]string{"check", "--help"}, []string{"SERVICEBUS_CONNECTION_STRING", "COSMOS_KEY", "3 when a"}},
		{[]string{"send", "--help"}, []string{"SERVICEBUS_CONNECTION_STRING", "Exit codes: 0"}},
		{[]string{"healthcheck", "--help"}, []string{"WORKER_HEALTH_ADDRESS"}},
		{[]string{"help", "run"}, []string{"COSMOS_KEY"}},
		{[]string{"help", "deadletter", "list"}, []string{"--limit"}},
		{[]string{"help"}, []string{"healthcheck"}},
		{nil, []string{"healthcheck"}},
	} {
		code, stdout, stderr := execute(t, nil, "", tt.args...)
		require.Equal(t, exitOK, code, stderr)
		for _, word := range tt.want {
			require.Contains(t, stdout, word, "%v", tt.args)
		}
	}
	_, stdout, _ := execute(t, nil, "", "send", "--help")
	require.NotContains(t, stdout, "COSMOS_KEY", "send needs no store")
}

// It is not parallel, since it changes the words of the process.
func TestTheWordsOfTheProcessAreNotRead(t *testing.T) {
	words := os.Args
	os.Args = []string{words[0], "nope"}
	defer func() { os.Args = words }()
	code, stdout, stderr := execute(t, nil, "")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "healthcheck")
}

func TestAWrongUseIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"help for nothing", []string{"help", "nope"}, `there is no command "nope"`},
		{"help for nothing of a group", []string{"help", "deadletter", "nope"}, `there is no command "deadletter nope"`},
		{"no such command", []string{"nope"}, `has no command "nope"`},
		{"no such command of a group", []string{"deadletter", "nope"}, `orderworker deadletter has no command "nope"`},
		{"an argument too many", []string{"run", "extra"}, `orderworker run takes no arguments, and was given extra`},
		{"an argument too few", []string{"get"}, `orderworker get takes KEY, and was given nothing`},
		{"two for one", []string{"get", "a", "b"}, `takes KEY, and was given a b`},
		{"no such flag", []string{"run", "--nonsense"}, `unknown flag: --nonsense. See orderworker run --help`},
		{"no such letter", []string{"run", "-x"}, `unknown shorthand flag: 'x' in -x`},
		{"a flag without its value", []string{"run", "--queue"}, `flag needs an argument: --queue`},
		{"a word for a number", []string{"check", "--peek", "many"}, `--peek "many" is not a whole number`},
		{"a path that is not served", []string{"healthcheck", "--path", "/health"}, `--path /health: the worker answers at /livez and /readyz only`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := execute(t, nil, "", tt.args...)
			require.Equal(t, exitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.NotContains(t, stderr, "strconv")
		})
	}
}

func TestNobodyHoldsAConnectionOfTheHealthEndpointForEver(t *testing.T) {
	t.Parallel()
	s := healthServer(nil)
	require.Positive(t, s.IdleTimeout)
	require.Positive(t, s.ReadHeaderTimeout)
	require.Positive(t, s.WriteTimeout)
}

func TestHealthIsAskedThroughNoProxy(t *testing.T) {
	t.Parallel()
	require.Nil(t, direct.Transport.(*http.Transport).Proxy, "HTTP_PROXY would be asked for a worker that listens on the container's own address")
}

func TestHealthIsAskedAtTheAddressOfTheWorker(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	for _, tt := range []struct {
		name, address, path string
		code                int
	}{
		{"alive", server.Listener.Addr().String(), "/livez", exitOK},
		{"a path without its slash", server.Listener.Addr().String(), "livez", exitOK},
		{"not ready", server.Listener.Addr().String(), "readyz", exitFailure},
		{"nobody there", unused(t), "/livez", exitFailure},
		{"switched off", "off", "/livez", exitUsage},
		{"no address", "here", "/livez", exitUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := execute(t, []string{"WORKER_HEALTH_ADDRESS=" + tt.address}, "", "healthcheck", "--path", tt.path)
			require.Equal(t, tt.code, code, stderr)
		})
	}
}

func TestHelpShowsTypesAndTheFlagsOfTheCommandBeforeTheSettings(t *testing.T) {
	t.Parallel()
	_, stdout, _ := execute(t, nil, "", "deadletter", "list", "--help")
	own, settings, ok := strings.Cut(stdout, "\nSettings:\n")
	require.True(t, ok)
	require.Contains(t, own, "--limit int")
	require.Contains(t, own, "--requires-session")
	require.NotContains(t, own, "--queue")
	for _, want := range []string{"--lock-duration duration", "--concurrency int", "--hash-form json|bytes", "--hash-ignore pointers", "--allow-keys[=true|false]", "--queue string"} {
		require.Contains(t, settings, want)
	}
	require.Less(t, strings.Index(settings, "--namespace"), strings.Index(settings, "--allow-keys"), "the settings are in the order of their table")
	c, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"}, "--inbox-record")
	require.NoError(t, err)
	require.True(t, c.store.InboxRecords, "a bool needs no value")
}
