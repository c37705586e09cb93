package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/internal/connstring"
	"github.com/orderworker/orderworker/internal/tokenerror"
)

// A brokerProblem is an error of Service Bus as a person should read it.
type brokerProblem struct {
	text, fix string
	cause     error
	// unknown tells that nothing is known of the error: another part of the program may have made it.
	unknown bool
}

func (p *brokerProblem) Error() string { return p.text + ". " + p.fix }
func (p *brokerProblem) Unwrap() error { return p.cause }

// explainBroker says what an error of Service Bus means for the person who started the command, and what to do. It quotes what
// the service itself answered.
func explainBroker(c config, err error) error {
	if p := problemOf(c, err); p != nil {
		p.cause = err
		return p
	}
	return err
}

func problemOf(c config, err error) *brokerProblem {
	if err == nil || ofThisMachine(err) {
		return nil
	}
	where, said := c.broker(), brokerfault.Said(err)
	problem := func(text, fix string) *brokerProblem { return &brokerProblem{text: quoting(text, said), fix: fix} }
	switch brokerfault.Of(brokerfault.Cause(err)) {
	case brokerfault.NoToken:
		return &brokerProblem{text: fmt.Sprintf("there is no token to use %s (%s)", where, brokerfault.Text(err)), fix: tokenerror.Fix}
	case brokerfault.NotFound:
		return problem(fmt.Sprintf("there is no queue %q at %s", c.queue, where), "Check SERVICEBUS_QUEUE (--queue)")
	case brokerfault.Unauthorized:
		return problem(fmt.Sprintf("%s refuses access to queue %q", where, c.queue), accessFix)
	case brokerfault.Disabled:
		return problem(fmt.Sprintf("queue %q is disabled", c.queue), "Enable it in the portal")
	case brokerfault.NotAllowed:
		return problem(fmt.Sprintf("queue %q does not take this client", c.queue), "A queue that requires sessions or forwards its messages cannot be used, nor can a topic")
	case brokerfault.Quota:
		return problem(fmt.Sprintf("queue %q is full, dead letters included, or another limit of the namespace is reached", c.queue), "Review or remove dead letters, or enlarge the queue")
	case brokerfault.Throttled:
		return problem(where+" is too busy", "Try again later; the namespace may be too small for its load")
	case brokerfault.Connection, brokerfault.Canceled, brokerfault.Unknown:
		if said != "" {
			break
		}
		return c.connectionProblem(brokerfault.Cause(err), brokerfault.Text(brokerfault.Cause(err)))
	case brokerfault.Broken:
	default:
		return nil
	}
	return problem(where+" answered with an error", "It can be reached, and roles are not the cause. Look at the health and the metrics of the namespace")
}

// quoting adds what the service itself said.
func quoting(text, said string) string {
	if said == "" {
		return text
	}
	return fmt.Sprintf("%s (%s)", text, said)
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

// connectionProblem tells a peer that speaks something else from one that is not there.
func (c config) connectionProblem(err error, text string) *brokerProblem {
	where := c.broker()
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, dialed := errors.AsType[net.Error](err)
	switch {
	case noTLS:
		return &brokerProblem{text: where + " does not speak TLS (" + text + ")",
			fix: "Check host and port. For an emulator, which has no TLS, add UseDevelopmentEmulator=true to SERVICEBUS_CONNECTION_STRING"}
	case certificate, authority:
		return &brokerProblem{text: "the certificate of " + where + " is not accepted (" + text + ")",
			fix: "Check the host name, and whether a proxy is between; its authority must be known to this machine"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return &brokerProblem{text: where + " hangs up as soon as it is spoken to (" + text + "): it is no Service Bus, or one side speaks TLS and the other does not",
			fix: "Check host and port. UseDevelopmentEmulator=true in SERVICEBUS_CONNECTION_STRING means no TLS: an emulator needs it, Azure must not have it"}
	case errors.Is(err, context.DeadlineExceeded) && accepts(c.brokerAddress()):
		return &brokerProblem{text: where + " takes the connection and does not answer in AMQP",
			fix: "Check the port: is it that of another service? A firewall or a private endpoint that this machine does not use can look like this too"}
	case dialed, errors.Is(err, context.DeadlineExceeded), brokerfault.Of(err) == brokerfault.Connection:
		return &brokerProblem{text: where + " cannot be reached (" + text + ")", fix: reachFix}
	}
	return &brokerProblem{unknown: true, text: "the client library gave up (" + text + ")",
		fix: "A text that is not UTF-8 cannot be sent by it. For anything else check the name and the network"}
}

const (
	reachFix  = "Check the name and the network, firewall and private endpoint among it; is the embedded environment (go run ./cmd/devenv) or the emulator up?"
	accessFix = "Give this identity the role Azure Service Bus Data Receiver on the queue, and Data Sender to send (a new role takes minutes), or check the key. " +
		"Check also that the firewall of the namespace lets this machine in, or that its name leads to the private endpoint from here"
)

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

// brokerHost is the host of the broker, and empty when the settings do not tell.
func (c config) brokerHost() string {
	parts, _ := connstring.Parse(c.connectionString)
	return cmp.Or(c.namespace, parts.Hostname())
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

func fullStop(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
