package testenv_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

func TestTheDefaultEnvironmentIsTheOneOfTheTemplates(t *testing.T) {
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	defer env.Close()
	require.Equal(t, "orders", env.Queue.Name)
	require.Equal(t, time.Minute, env.Queue.LockDuration)
	require.Equal(t, 10, env.Queue.MaxDeliveryCount)
	require.True(t, env.Queue.RequiresDuplicateDetection)
	require.True(t, env.Queue.DeadLetteringOnMessageExpiration)
	require.NoError(t, env.Account.Seed("orders", "orders", `{"id":"1","pk":"1","ttl":60}`), "the partition key is /pk")
	require.Equal(t, []string{"1"}, env.Stored())
}

func TestBothEmulatorsWriteOneHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, err := testenv.New(testenv.Options{Adjust: func(q *servicebus.Queue) { q.LockDuration = 7 * time.Second }})
		require.NoError(t, err)
		_, err = env.Broker.Send("orders", amqp.Message{Properties: &amqp.Properties{MessageID: "1"}, BodyKind: amqp.BodyData, Data: [][]byte{{1}}})
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		require.NoError(t, err)
		resp, err := env.Account.Transport().Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		events := env.History.Events()
		require.Len(t, events, 2)
		require.Equal(t, history.Send, events[0].Op)
		require.Equal(t, history.ReadAccount, events[1].Op)
		require.Equal(t, history.Expect{Stored: []string{}, LockDuration: 7 * time.Second}, env.Expect())
		require.NoError(t, env.Close())
	})
}

func TestAnEnvironmentServesOnFreePortsAndStops(t *testing.T) {
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	at, err := env.Serve(t.Context(), testenv.Addresses{})
	require.NoError(t, err)
	require.Equal(t, `{"status":"healthy"}`, get(t, "http://"+at.Management+"/health"))
	require.Contains(t, get(t, "http://"+at.Management+"/queues"), `"orders":{"active":0`)
	settings := map[string]string{}
	for _, s := range env.Settings() {
		settings[s.Name] = s.Value
	}
	require.Equal(t, "http://"+at.Cosmos, settings["COSMOS_ENDPOINT"])
	require.Contains(t, settings["SERVICEBUS_CONNECTION_STRING"], "Endpoint=sb://"+at.AMQP+";")
	require.Contains(t, settings["SERVICEBUS_CONNECTION_STRING"], "UseDevelopmentEmulator=true")
	require.Equal(t, "orders", settings["SERVICEBUS_QUEUE"])
	require.Equal(t, "orders", settings["COSMOS_DATABASE"])
	require.Equal(t, "orders", settings["COSMOS_CONTAINER"])
	require.NotEmpty(t, settings["COSMOS_KEY"])
	require.Equal(t, "1m0s", settings["WORKER_LOCK_DURATION"])
	require.Equal(t, "10", settings["WORKER_MAX_DELIVERY_COUNT"])
	require.Equal(t, "5m0s", settings["WORKER_DUPLICATE_DETECTION_WINDOW"])
	require.Contains(t, env.Environ(), "SERVICEBUS_QUEUE=orders")

	_, err = env.Serve(t.Context(), testenv.Addresses{})
	require.ErrorContains(t, err, "serving already")
	require.NoError(t, env.Close())
	for _, address := range []string{at.AMQP, at.Management, at.Cosmos} {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err, "the port is free again")
		require.NoError(t, l.Close())
	}
	require.NoError(t, env.Close(), "a second Close does no harm")
}

func TestEveryPortInUseIsNamedAndNothingStaysOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	defer env.Close()
	address := taken.Addr().String()
	_, err = env.Serve(t.Context(), testenv.Addresses{Management: address, Cosmos: address})
	require.ErrorContains(t, err, "Service Bus health and management cannot listen on "+address)
	require.ErrorContains(t, err, "Cosmos DB cannot listen on "+address)
	inUse := new(testenv.PortInUseError)
	require.ErrorAs(t, err, &inUse)

	_, err = env.Serve(t.Context(), testenv.Addresses{AMQP: "nowhere.invalid:1"})
	require.ErrorContains(t, err, "Service Bus cannot listen on nowhere.invalid:1")
	_, err = env.Serve(t.Context(), testenv.Addresses{})
	require.NoError(t, err, "after a failure the environment can still serve")
}

func TestServingEndsWithItsContextAndTheEnvironmentCanStillBeRead(t *testing.T) {
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = env.Serve(ctx, testenv.Addresses{})
	require.NoError(t, err)
	cancel()
	require.NoError(t, env.Close())
	counts, err := env.Broker.Counts("orders")
	require.NoError(t, err)
	require.Zero(t, counts.Total())
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	two := `{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[{"Name":"a"},{"Name":"b"}],"Topics":[]}]}}`
	tests := []struct {
		name    string
		options testenv.Options
		want    string
	}{
		{"a configuration that is no JSON", testenv.Options{Config: strings.NewReader("{")}, "configuration"},
		{"a configuration without queues", testenv.Options{Config: strings.NewReader(`{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[]}]}}`)}, "queue"},
		{"a queue that is not there", testenv.Options{Config: strings.NewReader(two), Queue: "c"}, `no queue "c"`},
		{"an impossible lock", testenv.Options{Adjust: func(q *servicebus.Queue) { q.LockDuration = time.Hour }}, "LockDuration"},
		{"an impossible partition key", testenv.Options{PartitionKey: "pk"}, "pk"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := testenv.New(tt.options)
			require.ErrorContains(t, err, tt.want)
		})
	}
	env, err := testenv.New(testenv.Options{Config: strings.NewReader(two), Queue: "B"})
	require.NoError(t, err)
	defer env.Close()
	require.Equal(t, "b", env.Queue.Name, "names of queues do not depend on case")
	require.Equal(t, time.Minute, env.Queue.LockDuration, "what a configuration leaves out has the default of the service")
	require.Equal(t, 10, env.Queue.MaxDeliveryCount)
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}
