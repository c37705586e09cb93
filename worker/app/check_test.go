package app

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// serve starts an environment on this machine and returns it with the settings that reach it.
func serve(t *testing.T, o testenv.Options) (*testenv.Env, map[string]string) {
	t.Helper()
	env, err := testenv.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, env.Close()) })
	_, err = env.Serve(t.Context(), testenv.Addresses{})
	require.NoError(t, err)
	settings := map[string]string{}
	for _, s := range env.Settings() {
		settings[s.Name] = s.Value
	}
	return env, settings
}

func environOf(settings map[string]string) []string {
	var environ []string
	for name, value := range settings {
		environ = append(environ, name+"="+value)
	}
	return environ
}

func checked(t *testing.T, settings map[string]string, args ...string) (int, checkReport, string) {
	t.Helper()
	code, stdout, stderr := execute(t, environOf(settings), "", append([]string{"check", "-o", "json"}, args...)...)
	var r checkReport
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), "%s\n%s", stdout, stderr)
	return code, r, stderr
}

func TestASoundSetUpHasNothingToFix(t *testing.T) {
	t.Parallel()
	_, settings := serve(t, testenv.Options{})
	code, r, stderr := checked(t, settings)
	require.Equal(t, exitOK, code, stderr)
	require.Empty(t, r.Findings)
	require.Contains(t, r.Checked[1], "queue orders, without its settings")
	_, stdout, _ := execute(t, environOf(settings), "", "check", "-o", "json")
	require.Contains(t, stdout, `"findings": []`)
	require.Contains(t, stdout, `"previews": []`)
	code, stdout, _ = execute(t, environOf(settings), "", "check")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "nothing to fix")
}

func TestPeekSaysThatTheQueueIsEmpty(t *testing.T) {
	t.Parallel()
	_, settings := serve(t, testenv.Options{})
	code, stdout, stderr := execute(t, environOf(settings), "", "check", "--peek", "5")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "note: Queue orders is empty: there is no message to look at.")
	_, r, _ := checked(t, settings, "--peek", "5")
	require.Contains(t, r.Notes, "Queue orders is empty: there is no message to look at.")
}

// TestCheckSaysHowFastTheLineMustBe multiplies slots and size and divides by what a message may take of its lock.
func TestCheckSaysHowFastTheLineMustBe(t *testing.T) {
	t.Parallel()
	env, settings := serve(t, testenv.Options{})
	settings["WORKER_LOCK_DURATION"], settings["WORKER_CONCURRENCY"] = "40s", "20"
	_, r, _ := checked(t, settings)
	require.Contains(t, r.Notes[0], "WORKER_CONCURRENCY 20 x 262144 bytes")
	require.Contains(t, r.Notes[0], "a quarter of the lock of 40s take a line of 524 KB/s")
	for _, size := range []int{10, 100_000, 50} {
		_, err := env.Broker.Send("orders", servicebus.Message{Properties: &servicebus.Properties{MessageID: strconv.Itoa(size)}, BodyKind: servicebus.BodyData, Data: [][]byte{make([]byte, size)}})
		require.NoError(t, err)
	}
	_, r, _ = checked(t, settings, "--peek", "10")
	require.Contains(t, r.Notes[0], "x 100000 bytes (the largest that was looked at)")
	require.Contains(t, r.Notes[0], "200 KB/s")
}

func TestEachWrongSetUpIsFoundWithItsFix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options testenv.Options
		spoil   func(t *testing.T, env *testenv.Env, settings map[string]string)
		about   string
		words   []string
		warning bool
	}{
		{"a queue that is not there", testenv.Options{}, func(_ *testing.T, _ *testenv.Env, s map[string]string) { s["SERVICEBUS_QUEUE"] = "invoices" },
			"queue", []string{`queue "invoices"`, "there is no such queue", "SERVICEBUS_QUEUE"}, false},
		{"a queue that may not be received from", testenv.Options{}, func(t *testing.T, env *testenv.Env, _ map[string]string) {
			require.NoError(t, env.Broker.SetStatus("orders", servicebus.ReceiveDisabled))
		}, "queue", []string{"disabled", "Set its status to Active"}, false},
		{"a missing right to listen", testenv.Options{}, func(t *testing.T, env *testenv.Env, _ map[string]string) {
			require.NoError(t, env.Broker.SetRights("orders", servicebus.Send))
		}, "queue", []string{"refuses access", "Data"}, false},
		{"a wrong key of the broker", testenv.Options{}, func(_ *testing.T, _ *testenv.Env, s map[string]string) {
			s["SERVICEBUS_CONNECTION_STRING"] = strings.Replace(s["SERVICEBUS_CONNECTION_STRING"], servicebus.EmulatorKey, "d3Jvbmc=", 1)
		}, "queue", []string{"refuses access", "role"}, false},
		{"a broker that is not up", testenv.Options{}, func(t *testing.T, _ *testenv.Env, s map[string]string) {
			s["SERVICEBUS_CONNECTION_STRING"] = "Endpoint=sb://" + unused(t) + ";SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true"
		}, "queue", []string{"cannot be reached"}, false},
		{"a store that is not up", testenv.Options{}, func(t *testing.T, _ *testenv.Env, s map[string]string) { s["COSMOS_ENDPOINT"] = "http://" + unused(t) },
			"container", []string{"endpoint, network"}, false},
		{"a container that is not there", testenv.Options{}, func(_ *testing.T, _ *testenv.Env, s map[string]string) { s["COSMOS_CONTAINER"] = "invoices" },
			"container", []string{"invoices", "Create the database"}, false},
		{"a wrong key of the store", testenv.Options{}, func(_ *testing.T, _ *testenv.Env, s map[string]string) { s["COSMOS_KEY"] = "d3Jvbmc=" },
			"container", []string{"401"}, false},
		{"a missing right on the store", testenv.Options{}, func(_ *testing.T, env *testenv.Env, _ map[string]string) { env.Account.DenyData(0) },
			"container", []string{"403"}, false},
		{"an account with several write regions", testenv.Options{}, func(_ *testing.T, env *testenv.Env, _ map[string]string) { env.Account.SetMultiWrite(true) },
			"container", []string{"write", "region"}, false},
		{"orders that would expire", testenv.Options{DefaultTTL: 3600}, nil, "container", []string{"1h0m0s", "time to live"}, false},
		{"a partition key of the first version", testenv.Options{}, func(t *testing.T, env *testenv.Env, s map[string]string) {
			require.NoError(t, env.Account.CreateContainer("orders", cosmosdb.ContainerSpec{ID: "old", PartitionKey: []string{"/pk"}, KeyVersion: 1, DefaultTTL: -1}))
			s["COSMOS_CONTAINER"] = "old"
		}, "container", []string{"version"}, false},
		{"a partition key that is the content of orders", testenv.Options{}, func(t *testing.T, env *testenv.Env, s map[string]string) {
			require.NoError(t, env.Account.CreateContainer("orders", cosmosdb.ContainerSpec{ID: "keyed", PartitionKey: []string{"/order"}, DefaultTTL: -1}))
			s["COSMOS_CONTAINER"] = "keyed"
		}, "container", []string{`type "order"`, "/pk"}, false},
		{"unique keys", testenv.Options{}, func(t *testing.T, env *testenv.Env, s map[string]string) {
			require.NoError(t, env.Account.CreateContainer("orders", cosmosdb.ContainerSpec{ID: "unique", PartitionKey: []string{"/pk"}, DefaultTTL: -1, UniqueKeys: [][]string{{"/order/number"}}}))
			s["COSMOS_CONTAINER"] = "unique"
		}, "container", []string{"unique"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env, settings := serve(t, tt.options)
			if tt.spoil != nil {
				tt.spoil(t, env, settings)
			}
			code, r, stderr := checked(t, settings)
			if tt.warning {
				require.Equal(t, exitOK, code, "%+v %s", r, stderr)
			} else {
				require.Equal(t, exitDifferent, code, "%+v %s", r, stderr)
			}
			found := ""
			for _, f := range r.Findings {
				require.NotEmpty(t, f.Text)
				require.NotEmpty(t, f.Fix, f.Text)
				if f.About == tt.about {
					found += f.Severity + ": " + f.Text + " " + f.Fix + "\n"
				}
			}
			for _, word := range tt.words {
				require.Contains(t, found, word)
			}
			require.NotContains(t, found, settings["COSMOS_KEY"])
		})
	}
}

// unused is an address on which nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestPeekTellsWhichMessagesAreMeantAndWhichHaveOneKey(t *testing.T) {
	t.Parallel()
	env, settings := serve(t, testenv.Options{Adjust: func(q *servicebus.Queue) { q.RequiresDuplicateDetection = false }})
	for _, body := range []string{`{"a":1}`, `{ "a": 1.0 }`, `{"a":2}`, `not json`} {
		_, err := env.Broker.Send("orders", servicebus.Message{Properties: &servicebus.Properties{MessageID: "7"}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(body)}})
		require.NoError(t, err)
	}
	settings["WORKER_KEY"] = "message-id"
	code, r, stderr := checked(t, settings, "--peek", "10")
	require.Equal(t, exitOK, code, stderr)
	require.Len(t, r.Previews, 4)
	require.Equal(t, []string{"create", "complete", "dead-letter as ContentConflict", "dead-letter as NotJSON"},
		[]string{r.Previews[0].Decision, r.Previews[1].Decision, r.Previews[2].Decision, r.Previews[3].Decision})
	require.Contains(t, r.Previews[1].Why, "message 1 before it")
	require.Equal(t, "7", r.Previews[3].Key, "a message with an unreadable body still has its key")
	settings["WORKER_KEY"] = "property:order"
	_, stdout, _ := execute(t, environOf(settings), "", "check", "--peek", "1")
	require.Contains(t, stdout, `MessageId "7"`)
}

func TestPeekNeedsANumberOfMessages(t *testing.T) {
	t.Parallel()
	code, _, stderr := execute(t, nil, "", "check", "--peek", "-1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--peek -1")
}

func TestPeekShowsWhatWouldBeDecidedAndTouchesNothing(t *testing.T) {
	t.Parallel()
	env, settings := serve(t, testenv.Options{})
	for _, m := range []struct{ id, body string }{{"1", `{"a":1}`}, {"2", `not json`}, {"", `{"a":1}`}} {
		_, err := env.Broker.Send("orders", servicebus.Message{Properties: &servicebus.Properties{MessageID: m.id}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(m.body)}})
		require.NoError(t, err)
	}
	code, r, stderr := checked(t, settings, "--peek", "10")
	require.Equal(t, exitOK, code, stderr)
	require.Len(t, r.Previews, 3)
	require.Equal(t, []string{"create", "dead-letter as NotJSON", "dead-letter as MissingMessageId"},
		[]string{r.Previews[0].Decision, r.Previews[1].Decision, r.Previews[2].Decision})
	counts, err := env.Broker.Counts("orders")
	require.NoError(t, err)
	require.EqualValues(t, 3, counts.Active)
	require.Zero(t, env.Account.Count("orders", "orders"))
}

func TestAMessageThatTheClientCannotReadIsAWarning(t *testing.T) {
	t.Parallel()
	env, settings := serve(t, testenv.Options{})
	_, err := env.Broker.Send("orders", servicebus.Message{
		Properties: &servicebus.Properties{MessageID: "1"}, ApplicationProperties: servicebus.Map{{Key: "DeadLetterReason", Value: int32(5)}}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte("{}")},
	})
	require.NoError(t, err)
	code, r, stderr := checked(t, settings, "--peek", "10")
	require.Equal(t, exitOK, code, stderr)
	require.Len(t, r.Findings, 1)
	require.Equal(t, severityWarning, r.Findings[0].Severity)
	require.Contains(t, r.Findings[0].Fix, "one message at a time")
}

func TestAnEmptyMessageIdHasToBeWritten(t *testing.T) {
	t.Parallel()
	_, settings := serve(t, testenv.Options{})
	code, _, stderr := execute(t, environOf(settings), "{\"message_id\":\"\",\"body\":{}}\n{\"body\":{}}\n", "send")
	require.Equal(t, exitOK, code, stderr)
	_, r, _ := checked(t, settings, "--peek", "2")
	require.Equal(t, "dead-letter as MissingMessageId", r.Previews[0].Decision)
	require.True(t, assignedByBroker(r.Previews[1].MessageID), "the broker assigns one to a message that has none")
}

func TestCheckTellsWhetherTheSettingForSessionsFitsTheQueue(t *testing.T) {
	t.Parallel()
	_, plain := serve(t, testenv.Options{})
	plain["SERVICEBUS_SESSIONS"] = "true"
	code, r, _ := checked(t, plain)
	require.Equal(t, exitDifferent, code)
	require.Contains(t, r.Findings[0].Text, "does not require sessions")

	_, sessions := serve(t, testenv.Options{Adjust: func(q *servicebus.Queue) { q.RequiresSession = true }})
	code, r, _ = checked(t, sessions)
	require.Equal(t, exitDifferent, code)
	require.Contains(t, r.Findings[0].Fix, "SERVICEBUS_SESSIONS=true")
	sessions["SERVICEBUS_SESSIONS"] = "true"
	code, r, _ = checked(t, sessions)
	require.Equal(t, exitOK, code, r.Findings)
	require.Contains(t, r.Notes[1], "requires sessions")
}
