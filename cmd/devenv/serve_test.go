package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
)

func TestSettingsNameAnAddressThatThisMachineReaches(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"0.0.0.0:5672":     "127.0.0.1:5672",
		"[::]:5672":        "127.0.0.1:5672",
		":5672":            "127.0.0.1:5672",
		"127.0.0.1:5672":   "127.0.0.1:5672",
		"[::1]:5672":       "[::1]:5672",
		"192.168.1.5:5672": "192.168.1.5:5672",
		"localhost:5672":   "localhost:5672",
	} {
		require.Equal(t, want, fromHere(address), address)
	}
}

func TestAnEnvironmentForOthersSaysForWhomItsSettingsAre(t *testing.T) {
	t.Parallel()
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	defer env.Close()
	at, err := env.Serve(t.Context(), testenv.Addresses{AMQP: "0.0.0.0:0", Management: "0.0.0.0:0", Cosmos: "0.0.0.0:0"})
	require.NoError(t, err)
	var out writer
	serveOptions{host: "0.0.0.0"}.introduce(&out, env, at)
	require.Contains(t, string(out), "Endpoint=sb://127.0.0.1:")
	require.Contains(t, string(out), "COSMOS_ENDPOINT='http://127.0.0.1:")
	require.Contains(t, string(out), "Others on the network are let in too")
	require.Empty(t, serveOptions{host: "127.0.0.1"}.note())
	require.Contains(t, serveOptions{host: "192.168.1.5"}.note(), "--host 0.0.0.0")
}

// writer collects what is written to it.
type writer []byte

func (w *writer) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }

func TestWhatTheWorkerCannotUseIsNotOffered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a lock that is too short", []string{"--lock-duration", "4s"}, "--lock-duration from 5s to 5m"},
		{"a lock that is too long", []string{"--lock-duration", "6m"}, "LockDuration"},
		{"an offset below zero", []string{"--port-offset", "-1"}, "from 0 to 57454"},
		{"an offset that is too large", []string{"--port-offset", "57455"}, "from 0 to 57454"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, _, errs := call(t, t.Context(), nil, tt.args...)
			require.Equal(t, exitUsage, code, errs)
			require.Contains(t, errs, tt.want)
		})
	}
}
