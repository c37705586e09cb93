package amqpbroker

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func asStatus(err error) (*StatusError, bool) { return errors.AsType[*StatusError](err) }

// lostConnection reports whether a request failed for want of a connection, while its caller still waits.
func lostConnection(ctx context.Context, err error) bool {
	if _, answered := asStatus(err); answered || ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return false
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		switch e.Condition {
		case amqp.ErrCondUnauthorizedAccess, amqp.ErrCondNotFound, amqp.ErrCondNotAllowed, "com.microsoft:entity-disabled":
			return false
		}
	}
	return true
}

// again reports whether a request may work on another connection. A broker that did not even let one open in time would not
// let the next one either, and a person waits.
func again(ctx context.Context, c *connection, err error) bool {
	return lostConnection(ctx, err) && (c != nil || !errors.Is(err, context.DeadlineExceeded))
}

// asLock turns an answer about a lock into the error that a review knows.
func asLock(err error) error {
	if e, ok := asStatus(err); ok && (e.Status == http.StatusGone || e.Status == http.StatusNotFound) {
		return deadletter.ErrLockLost
	}
	return err
}

// refusal reports whether an error of a send is an answer of the broker that leaves the link as it was.
func refusal(err error) bool {
	if errors.Is(err, deadletter.ErrTooLarge) {
		return true
	}
	_, link := errors.AsType[*amqp.LinkError](err)
	_, answered := errors.AsType[*amqp.Error](err)
	return answered && !link
}

// asSend turns the refusal of a message for its size into the error that a review knows.
func asSend(err error) error {
	if e, ok := errors.AsType[*amqp.Error](err); ok && e.Condition == amqp.ErrCondMessageSizeExceeded {
		return deadletter.ErrTooLarge
	}
	return err
}
