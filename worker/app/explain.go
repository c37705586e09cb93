package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/connstring"
)

// A brokerProblem is an error of Service Bus as a person should read it.
type brokerProblem struct {
	text, fix string
	cause     error
}

func (p *brokerProblem) Error() string { return p.text + ". " + p.fix }
func (p *brokerProblem) Unwrap() error { return p.cause }

// explainBroker says what an error of Service Bus means for the person who started the command, and what to do.
func explainBroker(c config, err error) error {
	if p := problemOf(c, err); p != nil {
		p.cause = err
		return p
	}
	return err
}

func problemOf(c config, err error) *brokerProblem {
	if ofThisMachine(err) {
		return nil
	}
	where := c.broker()
	if notSignedIn(err) {
		return &brokerProblem{text: "nobody is signed in to use " + where, fix: signInCure}
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch e.Code {
		case azservicebus.CodeNotFound:
			return &brokerProblem{text: fmt.Sprintf("there is no queue %q at %s", c.queue, where), fix: "Check SERVICEBUS_QUEUE (--queue)"}
		case azservicebus.CodeUnauthorizedAccess:
			return &brokerProblem{text: fmt.Sprintf("%s refuses access to queue %q", where, c.queue),
				fix: "Give this identity the role Azure Service Bus Data Sender or Receiver on the queue (a new role takes minutes), or check the key"}
		case azservicebus.CodeConnectionLost, azservicebus.CodeTimeout:
			return c.connectionProblem(strings.TrimPrefix(e.Error(), "(connlost): "))
		}
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		switch e.Condition {
		case amqp.ErrCondResourceLimitExceeded:
			return &brokerProblem{text: fmt.Sprintf("queue %q is full, dead letters included", c.queue), fix: "Review or remove dead letters, or enlarge the queue"}
		case "com.microsoft:entity-disabled":
			return &brokerProblem{text: fmt.Sprintf("queue %q is disabled", c.queue), fix: "Enable it in the portal"}
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return c.connectionProblem(err.Error())
	}
	return nil
}

// ofThisMachine reports whether an error is about a file or a port of this machine. The errors of the system that such an
// error carries look like those of a connection.
func ofThisMachine(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return true
	}
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "listen"
}

// connectionProblem tells a peer that speaks something else from one that is not there. The client keeps of the cause only
// its text.
func (c config) connectionProblem(cause string) *brokerProblem {
	where := c.broker()
	switch {
	case strings.Contains(cause, "not a valid UTF-8 string"):
		return &brokerProblem{text: "the message has a text that is not UTF-8, and the client library sends none (" + cause + ")",
			fix: "Give it in UTF-8, or leave it out"}
	case strings.Contains(cause, "does not look like a TLS handshake"):
		return &brokerProblem{text: where + " does not speak TLS (" + cause + ")",
			fix: "Check host and port. For an emulator, which has no TLS, add UseDevelopmentEmulator=true to SERVICEBUS_CONNECTION_STRING"}
	case strings.Contains(cause, "x509"), strings.Contains(cause, "certificate"):
		return &brokerProblem{text: "the certificate of " + where + " is not accepted (" + cause + ")",
			fix: "Check the host name, and whether a proxy stands between; its authority must be known to this machine"}
	case strings.HasSuffix(cause, "EOF"), strings.Contains(cause, "connection reset"):
		return &brokerProblem{text: where + " hangs up as soon as it is spoken to (" + cause + "): it is no Service Bus, or one side speaks TLS and the other does not",
			fix: "Check host and port. UseDevelopmentEmulator=true in SERVICEBUS_CONNECTION_STRING means no TLS: an emulator needs it, Azure must not have it"}
	case strings.Contains(cause, context.DeadlineExceeded.Error()) && accepts(c.brokerAddress()):
		return &brokerProblem{text: where + " takes the connection and does not answer in AMQP", fix: "Check the port: is it that of another service?"}
	}
	return &brokerProblem{text: where + " cannot be reached (" + cause + ")", fix: reachCure}
}

const (
	reachCure  = "Check the name and the network; is the embedded environment (go run ./cmd/devenv) or the emulator up?"
	signInCure = "Sign in with az login, or give an identity: AZURE_CLIENT_ID for a managed one, AZURE_TENANT_ID and AZURE_CLIENT_SECRET besides for a " +
		"service principal. AZURE_TOKEN_CREDENTIALS says which kinds are tried"
)

func unreachable(where string) error {
	return &brokerProblem{text: where + " cannot be reached", fix: reachCure}
}

// notSignedIn reports whether no credential gave a token. Not every layer keeps the type of that error.
func notSignedIn(err error) bool {
	if _, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return true
	}
	return err != nil && strings.Contains(err.Error(), "DefaultAzureCredential: failed to acquire a token")
}

// broker names the broker for people, without secrets.
func (c config) broker() string {
	if c.namespace != "" {
		return c.namespace
	}
	if address := c.brokerAddress(); address != "" {
		return "the broker at " + address
	}
	return "the broker of SERVICEBUS_CONNECTION_STRING"
}

// brokerAddress is host and port of the broker, and empty when the settings do not tell.
func (c config) brokerAddress() string {
	if c.namespace != "" {
		return net.JoinHostPort(c.namespace, "5671")
	}
	parts, _ := connstring.Parse(c.connectionString)
	if parts.Host == "" {
		return ""
	}
	return parts.Address()
}

// accepts reports whether something takes connections at an address.
func accepts(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
