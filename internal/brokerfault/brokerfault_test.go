package brokerfault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/brokerfault"
)

type rpcError struct {
	Resp *struct {
		Code        int
		Description string
	}
}

func (e rpcError) Error() string { return "rpc: failed" }
func (e rpcError) RPCCode() int  { return e.Resp.Code }

func rpc(code int, description string) error {
	e := rpcError{}
	e.Resp = &struct {
		Code        int
		Description string
	}{code, description}
	return e
}

func TestWhatAnErrorOfTheBrokerMeans(t *testing.T) {
	remote := func(c amqp.ErrCond) *amqp.Error { return &amqp.Error{Condition: c} }
	tests := []struct {
		name string
		err  error
		want brokerfault.Fault
	}{
		{"no error", nil, brokerfault.None},
		{"a lock that the broker gave to somebody else", &azservicebus.Error{Code: azservicebus.CodeLockLost}, brokerfault.LockLost},
		{"a closed receiver", &azservicebus.Error{Code: azservicebus.CodeClosed}, brokerfault.Closed},
		{"a missing right, told by the client", &azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess}, brokerfault.Unauthorized},
		{"a missing queue", &azservicebus.Error{Code: azservicebus.CodeNotFound}, brokerfault.NotFound},
		{"retries that are exhausted", &azservicebus.Error{Code: azservicebus.CodeConnectionLost}, brokerfault.Connection},
		{"a timeout of the broker", &azservicebus.Error{Code: azservicebus.CodeTimeout}, brokerfault.Throttled},
		{"a code of a later version", &azservicebus.Error{Code: "odd"}, brokerfault.Unknown},
		{"a lock lost, told raw", remote("com.microsoft:message-lock-lost"), brokerfault.LockLost},
		{"a busy broker", remote("com.microsoft:server-busy"), brokerfault.Throttled},
		{"an operation cancelled by the broker", remote("com.microsoft:operation-cancelled"), brokerfault.Throttled},
		{"a timeout, told raw", remote("com.microsoft:timeout"), brokerfault.Throttled},
		{"a disabled queue", remote("com.microsoft:entity-disabled"), brokerfault.Disabled},
		{"a missing right, told raw", remote(amqp.ErrCondUnauthorizedAccess), brokerfault.Unauthorized},
		{"a token refused", remote("com.microsoft:auth-failed"), brokerfault.Unauthorized},
		{"a missing queue, told raw", remote(amqp.ErrCondNotFound), brokerfault.NotFound},
		{"a queue that needs sessions", remote(amqp.ErrCondNotAllowed), brokerfault.NotAllowed},
		{"a quota", remote(amqp.ErrCondResourceLimitExceeded), brokerfault.Quota},
		{"a note that is too large", remote(amqp.ErrCondMessageSizeExceeded), brokerfault.TooLarge},
		{"a forced connection", remote(amqp.ErrCondConnectionForced), brokerfault.Broken},
		{"an internal error", remote(amqp.ErrCondInternalError), brokerfault.Broken},
		{"a condition that nobody knows", remote("com.example:odd"), brokerfault.Unknown},
		{"a detached link", &amqp.LinkError{RemoteErr: remote(amqp.ErrCondDetachForced)}, brokerfault.Broken},
		{"a link detached as disabled", &amqp.LinkError{RemoteErr: remote("com.microsoft:entity-disabled")}, brokerfault.Disabled},
		{"a link detached without a word", &amqp.LinkError{}, brokerfault.Connection},
		{"an ended session", &amqp.SessionError{}, brokerfault.Connection},
		{"an ended session with a word", &amqp.SessionError{RemoteErr: remote("com.microsoft:server-busy")}, brokerfault.Throttled},
		{"a closed connection", &amqp.ConnError{}, brokerfault.Connection},
		{"a closed connection with a word", &amqp.ConnError{RemoteErr: remote(amqp.ErrCondConnectionForced)}, brokerfault.Broken},
		{"a wrapped error", fmt.Errorf("receive: %w", remote("com.microsoft:server-busy")), brokerfault.Throttled},
		{"a context that ended", context.DeadlineExceeded, brokerfault.Canceled},
		{"a context that was cancelled, wrapped", fmt.Errorf("receive: %w", context.Canceled), brokerfault.Canceled},
		{"a message that is too large", azservicebus.ErrMessageTooLarge, brokerfault.TooLarge},
		{"an end of file", io.EOF, brokerfault.Connection},
		{"a broken pipe", io.ErrClosedPipe, brokerfault.Connection},
		{"a name that cannot be resolved", &net.DNSError{Err: "no such host"}, brokerfault.Connection},
		{"a refused connection", &net.OpError{Op: "dial", Err: errors.New("refused")}, brokerfault.Connection},
		{"a token that is not issued", &azcore.ResponseError{StatusCode: 401}, brokerfault.NoToken},
		{"an identity that cannot sign in", &azidentity.AuthenticationFailedError{}, brokerfault.NoToken},
		{"a request on a management link that is refused", rpc(401, ""), brokerfault.Unauthorized},
		{"a request for a queue that is not there", rpc(404, ""), brokerfault.NotFound},
		{"a request with a lock that is lost", rpc(410, ""), brokerfault.LockLost},
		{"a request to a busy broker", rpc(503, ""), brokerfault.Throttled},
		{"a request that the broker fails over", rpc(500, ""), brokerfault.Broken},
		{"a request of an odd status", rpc(418, ""), brokerfault.Unknown},
		{"anything else", errors.New("odd"), brokerfault.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, brokerfault.Of(tt.err)) })
	}
}

func TestEveryFaultHasAdvice(t *testing.T) {
	for f := brokerfault.None; f <= brokerfault.Unknown+1; f++ {
		require.NotEmpty(t, f.Advice())
	}
	require.Contains(t, brokerfault.NotAllowed.Advice(), "sessions")
	require.Contains(t, brokerfault.Unauthorized.Advice(), "Azure Service Bus Data Receiver")
	require.Contains(t, brokerfault.Unauthorized.Advice(), "firewall")
	require.NotContains(t, brokerfault.Broken.Advice(), "cannot be reached", "the broker did answer")
	require.NotContains(t, brokerfault.NoToken.Advice(), "Data Receiver", "no role helps an identity without a token")
}

func TestTheBrokersOwnSentenceIsQuotedWithoutIds(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"nothing", nil, ""},
		{"no answer", io.EOF, ""},
		{"an address that the firewall keeps out", &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondUnauthorizedAccess,
			Description: "Ip has been prevented to connect to the endpoint. TrackingId:0e6d5ec6-5a28-4d49-8a3b-5a39f7d7a6ee_G13, SystemTracker:NoSystemTracker, Timestamp:2026-01-02T03:04:05"}},
			"amqp:unauthorized-access: Ip has been prevented to connect to the endpoint."},
		{"a claim that is missing", rpc(401, "Unauthorized access. 'Listen' claim(s) are required to perform this operation. Resource: 'sb://shop.servicebus.windows.net/orders'. TrackingId:x"),
			"401: Unauthorized access. 'Listen' claim(s) are required to perform this operation. Resource: 'sb://shop.servicebus.windows.net/orders'."},
		{"an id in the middle", rpc(500, "The operation 7bd1b0c9-1c52-4a8e-9d6a-d3f0a2f6c111 failed"), "500: The operation … failed"},
		{"several lines", &amqp.Error{Condition: "a:b", Description: "one\r\ntwo\x00three"}, "a:b: one two three"},
		{"no description", &amqp.Error{Condition: amqp.ErrCondInternalError}, "amqp:internal-error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, brokerfault.Said(tt.err)) })
	}
	long := brokerfault.Said(&amqp.Error{Condition: "a:b", Description: string(make([]rune, 2000)) + fmt.Sprintf("%01000d é", 7)})
	require.LessOrEqual(t, len(long), 300)
}

// TestNothingOfAReplyOfAnIdentityEndpointIsTold plants a secret where azidentity would print it.
func TestNothingOfAReplyOfAnIdentityEndpointIsTold(t *testing.T) {
	err := identityError{}
	require.Equal(t, brokerfault.NoToken, brokerfault.Of(err))
	require.Equal(t, "ManagedIdentityCredential authentication failed. RESPONSE 400: Bad Request", brokerfault.Text(err))
	require.NotContains(t, brokerfault.Explain(brokerfault.NoToken, err), "secret")
}

type identityError struct{}

func (identityError) NonRetriable() {}
func (identityError) Error() string {
	return "ManagedIdentityCredential authentication failed. \nGET http://x\n----\nRESPONSE 400: Bad Request\n----\n{\n\t\"secret\": 1\n}\n----"
}
