package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// explainBroker says what an error of Service Bus means for the person who started the command, and what to do.
func explainBroker(c config, err error) error {
	where := c.namespace
	if where == "" {
		where = "the broker of SERVICEBUS_CONNECTION_STRING"
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch e.Code {
		case azservicebus.CodeNotFound:
			return fmt.Errorf("there is no queue %q at %s. Check SERVICEBUS_QUEUE (--queue)", c.queue, where)
		case azservicebus.CodeUnauthorizedAccess:
			return fmt.Errorf("%s refuses access to queue %q. Give this identity the role Azure Service Bus Data Sender or Receiver on the queue (a new role takes minutes), or check the key", where, c.queue)
		case azservicebus.CodeConnectionLost, azservicebus.CodeTimeout:
			return unreachable(where)
		}
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		switch e.Condition {
		case amqp.ErrCondResourceLimitExceeded:
			return fmt.Errorf("queue %q is full, dead letters included. Review or remove dead letters, or enlarge the queue", c.queue)
		case "com.microsoft:entity-disabled":
			return fmt.Errorf("queue %q is disabled. Enable it in the portal", c.queue)
		}
	}
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return fmt.Errorf("the message is larger than queue %q takes", c.queue)
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return unreachable(where)
	}
	return err
}

func unreachable(where string) error {
	return fmt.Errorf("%s cannot be reached. Check the name and the network; is the embedded environment (go run ./cmd/devenv) or the emulator up?", where)
}
