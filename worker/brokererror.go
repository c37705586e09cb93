package worker

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// A brokerFault is what an error of the broker's client means for the worker.
type brokerFault int

const (
	faultNone         brokerFault = iota
	faultLockLost                 // the lock of the message is gone
	faultClosed                   // the receiver was closed by us
	faultEnded                    // the context of the call has ended
	faultConnection               // link, session or connection lost, or the retries of the client are exhausted
	faultThrottled                // the broker asks for patience
	faultUnauthorized             // the identity lacks the right, or its token is not valid
	faultNotFound                 // there is no such queue
	faultDisabled                 // the queue is disabled
	faultNotAllowed               // the queue does not take such a receiver, as one that requires sessions
	faultQuota                    // a limit of the namespace or of the queue is reached
	faultTooLarge                 // what was sent is too large
	faultStuck                    // the call did not return
	faultPanic                    // the call panicked
	faultUnknown                  // anything else
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

// classifyBroker says what an error of the broker's client means. Nothing else looks inside such an error. The order
// matters: the client wraps a context error in others, and a context error may come from inside the client, so callers
// also look at their own context.
func classifyBroker(err error) brokerFault {
	if err == nil {
		return faultNone
	}
	if errors.Is(err, errStuck) {
		return faultStuck
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return faultPanic
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		return faultOfCode(e.Code)
	}
	if e := remoteError(err); e != nil {
		return faultOfCondition(e.Condition)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return faultEnded
	}
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return faultTooLarge
	}
	if lostConnection(err) {
		return faultConnection
	}
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok && e != nil {
		return faultUnauthorized // the only HTTP requests are for tokens
	}
	return faultUnknown
}

func faultOfCode(c azservicebus.Code) brokerFault {
	switch c {
	case azservicebus.CodeLockLost:
		return faultLockLost
	case azservicebus.CodeClosed:
		return faultClosed
	case azservicebus.CodeUnauthorizedAccess:
		return faultUnauthorized
	case azservicebus.CodeNotFound:
		return faultNotFound
	case azservicebus.CodeConnectionLost:
		return faultConnection
	case azservicebus.CodeTimeout:
		return faultThrottled
	}
	return faultUnknown
}

func faultOfCondition(c amqp.ErrCond) brokerFault {
	switch c {
	case condLockLost:
		return faultLockLost
	case condServerBusy, condTimeout, condCancelled:
		return faultThrottled
	case condDisabled:
		return faultDisabled
	case amqp.ErrCondUnauthorizedAccess, condUnauthorized:
		return faultUnauthorized
	case amqp.ErrCondNotFound:
		return faultNotFound
	case amqp.ErrCondNotAllowed:
		return faultNotAllowed
	case amqp.ErrCondResourceLimitExceeded:
		return faultQuota
	case amqp.ErrCondMessageSizeExceeded:
		return faultTooLarge
	case amqp.ErrCondDetachForced, amqp.ErrCondConnectionForced, amqp.ErrCondInternalError, amqp.ErrCondTransferLimitExceeded:
		return faultConnection
	}
	return faultUnknown
}

// remoteError finds what the broker itself said, on a link, a session, a connection or in a disposition.
func remoteError(err error) *amqp.Error {
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*amqp.LinkError](err); ok {
		return e.RemoteErr
	}
	if e, ok := errors.AsType[*amqp.SessionError](err); ok {
		return e.RemoteErr
	}
	if e, ok := errors.AsType[*amqp.ConnError](err); ok {
		return e.RemoteErr
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

// advice says in the operator's words what a fault means and what to do.
func (f brokerFault) advice() string {
	switch f {
	case faultUnauthorized:
		return "the identity may not receive from the queue. Give it the role Azure Service Bus Data Receiver on the queue; a new role can take minutes to arrive"
	case faultNotFound:
		return "there is no such queue. Check its name and the namespace"
	case faultDisabled:
		return "the queue is disabled. Set its status to Active"
	case faultNotAllowed:
		return "the queue refuses this receiver. A queue that requires sessions or forwards its messages cannot be used, nor can a topic: create a queue without either"
	case faultQuota:
		return "a limit of the namespace is reached. Look for dead letters that fill it and for receivers that are never closed"
	case faultThrottled:
		return "the broker asks for patience. The namespace may be too small for its load"
	case faultConnection, faultClosed, faultEnded:
		return "the broker cannot be reached. Check its address, the network and the status of the namespace"
	case faultStuck:
		return "a call of the broker's client does not return. It is abandoned and the connection is replaced"
	case faultPanic:
		return "the broker's client panicked over a message. Messages are received one at a time to isolate it; the broker dead-letters it in the end"
	}
	return "the broker answers with an unexpected error"
}
