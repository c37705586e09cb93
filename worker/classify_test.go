package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"
)

func TestClassifyBroker(t *testing.T) {
	remote := func(c amqp.ErrCond) *amqp.Error { return &amqp.Error{Condition: c} }
	tests := []struct {
		name string
		err  error
		want brokerFault
	}{
		{"no error", nil, faultNone},
		{"a lock that the broker gave to somebody else", &azservicebus.Error{Code: azservicebus.CodeLockLost}, faultLockLost},
		{"a closed receiver", &azservicebus.Error{Code: azservicebus.CodeClosed}, faultClosed},
		{"a missing right, told by the client", &azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess}, faultUnauthorized},
		{"a missing queue", &azservicebus.Error{Code: azservicebus.CodeNotFound}, faultNotFound},
		{"retries that are exhausted", &azservicebus.Error{Code: azservicebus.CodeConnectionLost}, faultConnection},
		{"a timeout of the broker", &azservicebus.Error{Code: azservicebus.CodeTimeout}, faultThrottled},
		{"a code of a later version", &azservicebus.Error{Code: "odd"}, faultUnknown},
		{"a lock lost, told raw", remote("com.microsoft:message-lock-lost"), faultLockLost},
		{"a busy broker", remote("com.microsoft:server-busy"), faultThrottled},
		{"an operation cancelled by the broker", remote("com.microsoft:operation-cancelled"), faultThrottled},
		{"a timeout, told raw", remote("com.microsoft:timeout"), faultThrottled},
		{"a disabled queue", remote("com.microsoft:entity-disabled"), faultDisabled},
		{"a missing right, told raw", remote(amqp.ErrCondUnauthorizedAccess), faultUnauthorized},
		{"a token refused", remote("com.microsoft:auth-failed"), faultUnauthorized},
		{"a missing queue, told raw", remote(amqp.ErrCondNotFound), faultNotFound},
		{"a queue that needs sessions", remote(amqp.ErrCondNotAllowed), faultNotAllowed},
		{"a quota", remote(amqp.ErrCondResourceLimitExceeded), faultQuota},
		{"a note that is too large", remote(amqp.ErrCondMessageSizeExceeded), faultTooLarge},
		{"a forced connection", remote(amqp.ErrCondConnectionForced), faultConnection},
		{"an internal error", remote(amqp.ErrCondInternalError), faultConnection},
		{"a condition that nobody knows", remote("com.example:odd"), faultUnknown},
		{"a detached link", &amqp.LinkError{RemoteErr: remote(amqp.ErrCondDetachForced)}, faultConnection},
		{"a link detached as disabled", &amqp.LinkError{RemoteErr: remote("com.microsoft:entity-disabled")}, faultDisabled},
		{"a link detached without a word", &amqp.LinkError{}, faultConnection},
		{"an ended session", &amqp.SessionError{}, faultConnection},
		{"an ended session with a word", &amqp.SessionError{RemoteErr: remote("com.microsoft:server-busy")}, faultThrottled},
		{"a closed connection", &amqp.ConnError{}, faultConnection},
		{"a closed connection with a word", &amqp.ConnError{RemoteErr: remote(amqp.ErrCondConnectionForced)}, faultConnection},
		{"a wrapped error", fmt.Errorf("receive: %w", remote("com.microsoft:server-busy")), faultThrottled},
		{"a context that ended", context.DeadlineExceeded, faultEnded},
		{"a context that was cancelled, wrapped", fmt.Errorf("receive: %w", context.Canceled), faultEnded},
		{"a message that is too large", azservicebus.ErrMessageTooLarge, faultTooLarge},
		{"an end of file", io.EOF, faultConnection},
		{"a broken pipe", io.ErrClosedPipe, faultConnection},
		{"a name that cannot be resolved", &net.DNSError{Err: "no such host"}, faultConnection},
		{"a refused connection", &net.OpError{Op: "dial", Err: errors.New("refused")}, faultConnection},
		{"a token that is not issued", &azcore.ResponseError{StatusCode: 401}, faultUnauthorized},
		{"a call that did not return", errStuck, faultStuck},
		{"a panic", &panicError{value: "nil"}, faultPanic},
		{"a panic with an error inside", fmt.Errorf("x: %w", &panicError{value: io.EOF}), faultPanic},
		{"anything else", errors.New("odd"), faultUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, classifyBroker(tt.err)) })
	}
}

func TestEveryFaultOfTheBrokerHasAdvice(t *testing.T) {
	for f := faultNone; f <= faultUnknown+1; f++ {
		require.NotEmpty(t, f.advice())
	}
	require.Contains(t, faultNotAllowed.advice(), "sessions")
	require.Contains(t, faultUnauthorized.advice(), "Azure Service Bus Data Receiver")
}
