package worker_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// azidentity writes the whole reply of an identity endpoint into its error. It is not parallel, since the endpoint is named by
// the environment of the process.
func TestNothingOfAnIdentityEndpointsReplyIsLogged(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "line one\nplanted-s3cr3t\nline three")
	}))
	defer endpoint.Close()
	t.Setenv("IDENTITY_ENDPOINT", endpoint.URL)
	t.Setenv("IDENTITY_HEADER", "header")
	credential, err := azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{
		ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, env.Close()) }()
	dial := func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return env.Dial(ctx) }
	broker := worker.NewBroker(func() (*azservicebus.Client, error) {
		return azservicebus.NewClient("embedded.example", credential, &azservicebus.ClientOptions{
			NewWebSocketConn: dial, RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
		})
	}, "orders")
	logs := &logBook{}
	w, err := worker.New(worker.Config{Logger: slog.New(slog.NewJSONHandler(logs, nil))}, broker, storetest.NewMem(), worker.HandlerFunc(order))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	detail := func() string {
		for _, p := range w.Health().Problems {
			if p.Part == "broker" {
				return p.Detail
			}
		}
		return ""
	}
	require.Eventually(t, func() bool { return detail() != "" && detail() != "the broker has not answered yet" }, time.Minute, 10*time.Millisecond)
	said := detail()
	rec := httptest.NewRecorder()
	w.HealthHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	stop()
	require.NoError(t, <-done)
	require.Contains(t, said, "gets no token")
	require.Contains(t, said, "503")
	require.NotContains(t, said, "Data Receiver", "a role is not the cause")
	for _, text := range []string{said, rec.Body.String(), logs.String()} {
		require.NotContains(t, text, "s3cr3t")
		require.NotContains(t, text, "line one")
	}
	require.Contains(t, logs.String(), "gets no token")
}
