package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// buried starts an environment with n dead letters of 1 KB that were never applied: they expired.
func buried(t *testing.T, n int) (*testenv.Env, map[string]string) {
	t.Helper()
	env, settings := serve(t, testenv.Options{
		History: history.NewBounded(1000), Adjust: func(q *servicebus.Queue) {
			q.RequiresDuplicateDetection, q.DeadLetteringOnMessageExpiration = false, true
		},
	})
	settings["WORKER_DUPLICATE_DETECTION_WINDOW"] = "0s"
	ttl := uint32(1)
	filler := fmt.Sprintf("%01000d", 0)
	for i := range n {
		_, err := env.Broker.Send("orders", servicebus.Message{
			Header: &servicebus.Header{TTL: &ttl}, Properties: &servicebus.Properties{MessageID: fmt.Sprint("m", i)}, BodyKind: servicebus.BodyData,
			Data: [][]byte{fmt.Appendf(nil, `{"orderId":"%d","filler":"%s"}`, i, filler)},
		})
		require.NoError(t, err)
	}
	for dead(t, env) < n {
		require.NoError(t, t.Context().Err())
	}
	return env, settings
}

// dead counts the dead letters.
func dead(t *testing.T, env *testenv.Env) int {
	t.Helper()
	c, err := env.Broker.Counts("orders/$DeadLetterQueue")
	require.NoError(t, err)
	return c.Total()
}

// TestTenThousandDeadLettersAreListed prints how long it takes; the time itself is no assertion.
func TestTenThousandDeadLettersAreListed(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand dead letters take some seconds")
	}
	const n = 10_000
	_, settings := buried(t, n)
	begun := time.Now()
	code, stdout, stderr := execute(t, environOf(settings), "", "deadletter", "list", "--group", "verdict", "-o", "json")
	require.Equal(t, exitOK, code, stderr)
	var groups []deadletter.Group
	require.NoError(t, json.Unmarshal([]byte(stdout), &groups))
	require.Len(t, groups, 1)
	require.Equal(t, n, groups[0].Count)
	t.Logf("%d dead letters with their verdicts in %s", n, time.Since(begun).Round(time.Millisecond))
}

// TestManyDeadLettersArePlannedAndApplied takes two thousand, and as many as SCALE says: SCALE=100000 takes minutes and some
// gigabytes for the emulators. It prints what it took; the time itself is no assertion.
func TestManyDeadLettersArePlannedAndApplied(t *testing.T) {
	if testing.Short() {
		t.Skip("many dead letters take some seconds")
	}
	n := 2000
	if text := os.Getenv("SCALE"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	env, settings := buried(t, n)
	plan := filepath.Join(t.TempDir(), "plan.jsonl")
	begun := time.Now()
	code, _, stderr := execute(t, environOf(settings), "", "deadletter", "plan", "--file", plan)
	require.Equal(t, exitOK, code, stderr)
	t.Logf("planned %d in %s", n, time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	code, stdout, stderr := execute(t, environOf(settings), "", "deadletter", "apply", plan, "--execute", "--reason", "scale", "--rate", "0", "--canary", "1,5,20,100,1000", "--concurrency", "64")
	require.Equal(t, exitOK, code, stderr)
	t.Logf("applied %d in %s\n%s", n, time.Since(begun).Round(time.Millisecond), stdout)
	require.Zero(t, dead(t, env))
	require.Len(t, env.Account.Documents(env.Database, env.Container), 3*n, "an order and two records for each")
}
