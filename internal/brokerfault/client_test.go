package brokerfault_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/brokerfault"
)

type credentialFunc func() (azcore.AccessToken, error)

func (f credentialFunc) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return f()
}

// peekThrough has the real client meet a connection that fails.
func peekThrough(t *testing.T, dial error) error {
	t.Helper()
	client, err := azservicebus.NewClient("x.servicebus.windows.net", credentialFunc(func() (azcore.AccessToken, error) { return azcore.AccessToken{}, nil }),
		&azservicebus.ClientOptions{
			RetryOptions:     azservicebus.RetryOptions{MaxRetries: -1},
			NewWebSocketConn: func(context.Context, azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return nil, dial },
		})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	r, err := client.NewReceiverForQueue("orders", nil)
	require.NoError(t, err)
	_, err = r.PeekMessages(t.Context(), 1, nil)
	require.Error(t, err)
	return err
}

// TestTheCauseThatTheClientHidesIsFound holds the reading of an unexported field against the client in use.
func TestTheCauseThatTheClientHidesIsFound(t *testing.T) {
	err := peekThrough(t, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"})
	require.IsType(t, &azservicebus.Error{}, err)
	var record tls.RecordHeaderError
	require.ErrorAs(t, brokerfault.Cause(err), &record)
	require.Equal(t, brokerfault.Connection, brokerfault.Of(err))

	err = peekThrough(t, &amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondInternalError, Description: "The service was unable to process the request."}})
	require.Equal(t, brokerfault.Broken, brokerfault.Of(err), "the broker answered")
	require.Equal(t, "amqp:internal-error: The service was unable to process the request.", brokerfault.Said(err))
}
