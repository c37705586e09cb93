package brokerfault

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/tokenerror"
)

// The conditions of Service Bus that go-amqp has no name for.
const (
	condLockLost     amqp.ErrCond = "com.microsoft:message-lock-lost"
	condServerBusy   amqp.ErrCond = "com.microsoft:server-busy"
	condTimeout      amqp.ErrCond = "com.microsoft:timeout"
	condCancelled    amqp.ErrCond = "com.microsoft:operation-cancelled"
	condDisabled     amqp.ErrCond = "com.microsoft:entity-disabled"
	condUnauthorized amqp.ErrCond = "com.microsoft:auth-failed"
)

// An rpcError is what the client makes of an answer on a management link or to a token, with its HTTP status.
type rpcError interface {
	error
	RPCCode() int
}

// Of says what an error of the broker's client means. The order matters: the client wraps a context error in others, and a
// context error may come from inside the client, so callers also look at their own context.
func Of(err error) Fault {
	if err == nil {
		return None
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		return ofCode(e)
	}
	return ofCause(err)
}

func ofCode(e *azservicebus.Error) Fault {
	switch e.Code {
	case azservicebus.CodeLockLost:
		return LockLost
	case azservicebus.CodeClosed:
		return Closed
	case azservicebus.CodeUnauthorizedAccess:
		return Unauthorized
	case azservicebus.CodeNotFound:
		return NotFound
	case azservicebus.CodeTimeout:
		return Throttled
	case azservicebus.CodeConnectionLost: // whatever the client has no better code for
		if f := ofCause(hidden(e)); f != None && f != Unknown && f != Canceled {
			return f
		}
		return Connection
	}
	return Unknown
}

// ofCause classifies an error that is none of azservicebus itself.
func ofCause(err error) Fault {
	if err == nil {
		return None
	}
	if e := remote(err); e != nil {
		return ofCondition(e.Condition)
	}
	if e, ok := errors.AsType[rpcError](err); ok {
		return ofStatus(e.RPCCode())
	}
	if tokenerror.Is(err) {
		return NoToken
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Canceled
	}
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return TooLarge
	}
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok && e != nil {
		return NoToken // the only HTTP requests are for tokens
	}
	if lostConnection(err) {
		return Connection
	}
	return Unknown
}

func ofCondition(c amqp.ErrCond) Fault {
	switch c {
	case condLockLost:
		return LockLost
	case condServerBusy, condTimeout, condCancelled:
		return Throttled
	case condDisabled:
		return Disabled
	case amqp.ErrCondUnauthorizedAccess, condUnauthorized:
		return Unauthorized
	case amqp.ErrCondNotFound:
		return NotFound
	case amqp.ErrCondNotAllowed:
		return NotAllowed
	case amqp.ErrCondResourceLimitExceeded:
		return Quota
	case amqp.ErrCondMessageSizeExceeded:
		return TooLarge
	case amqp.ErrCondDetachForced, amqp.ErrCondConnectionForced, amqp.ErrCondInternalError, amqp.ErrCondTransferLimitExceeded:
		return Broken
	}
	return Unknown
}

func ofStatus(status int) Fault {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Unauthorized
	case http.StatusNotFound:
		return NotFound
	case http.StatusGone:
		return LockLost
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return Throttled
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return Broken
	}
	return Unknown
}

// remote is what the broker itself said, on a link, a session, a connection or in a disposition, or nil.
func remote(err error) *amqp.Error {
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		return e
	}
	return nil
}

func lostConnection(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	_, link := errors.AsType[*amqp.LinkError](err)
	_, session := errors.AsType[*amqp.SessionError](err)
	_, conn := errors.AsType[*amqp.ConnError](err)
	return link || session || conn
}
