package app

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
)

func TestGetShowsWhatIsStoredForAKey(t *testing.T) {
	t.Parallel()
	env, settings := serve(t, testenv.Options{})
	environ := environOf(settings)
	code, stdout, stderr := execute(t, environ, "", "get", "1042")
	require.Equal(t, exitAbsent, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "nothing is stored for this key: there is no document 1042 in orders/orders")

	code, _, stderr = execute(t, environ, `{"message_id":"1042","body":{"amount":40,"lines":[{"sku":"a"}]}}`, "deadletter", "import", "-", "--execute", "--reason", "set up")
	require.Equal(t, exitOK, code, stderr)
	for name := range settings {
		if name == "SERVICEBUS_CONNECTION_STRING" || name == "SERVICEBUS_QUEUE" {
			delete(settings, name) // the store is enough
		}
	}
	environ = environOf(settings)
	code, stdout, stderr = execute(t, environ, "", "get", "1042")
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{`document id +1042`, `program +orderworker [a-z0-9]+`, `hash +[0-9a-f]{64}`, `request units`, `type +order`, `"amount": 40`, `name +line-1`, `"sku": "a"`} {
		require.Regexp(t, want, stdout)
	}
	code, stdout, stderr = execute(t, environ, "", "get", "1042", "-o", "json")
	require.Equal(t, exitOK, code, stderr)
	var s stored
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.Equal(t, "orderworker", s.Program)
	require.Len(t, s.Fingerprint.Hash, 64)
	require.Len(t, s.Documents, 2)
	require.JSONEq(t, `{"amount":40,"lines":[{"sku":"a"}]}`, string(s.Documents[0].Content))
	require.Positive(t, s.Charge)

	env.Account.DeleteDocument("orders", "orders", s.Documents[1].ID)
	_, stdout, _ = execute(t, environ, "", "get", "1042")
	require.Regexp(t, `missing +line-1`, stdout)
}

func TestGetTakesTheConsumerAndTheKindOfAKey(t *testing.T) {
	t.Parallel()
	_, settings := serve(t, testenv.Options{})
	_, _, stderr := execute(t, environOf(settings), "", "get", "17.0", "--kind", "number", "--consumer", "billing")
	require.Contains(t, stderr, "there is no document ~for.billing.~number.17 in")
	code, _, stderr := execute(t, environOf(settings), "", "get", "17", "--kind", "colour")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, `--kind "colour"`)
	code, _, stderr = execute(t, nil, "", "get", "17")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "COSMOS_ENDPOINT: not set")
	require.NotContains(t, stderr, "SERVICEBUS")
}
