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
		return p
	}
	return err
}

func problemOf(c config, err error) *brokerProblem {
	if err == nil || ofThisMachine(err) {
		return nil
	}
	cause, said := brokerfault.Cause(err), brokerfault.Said(err)
	fault := brokerfault.Of(cause)
	what, fix, _ := strings.Cut(fault.Advice(), ". ")
	p := &brokerProblem{cause: err, fix: cmp.Or(fix, "Look at the health and the metrics of the namespace")}
	switch {
	case fault == brokerfault.NoToken:
		p.fix = tokenerror.Fix
	case fault == brokerfault.Unauthorized:
		p.fix += ". To send takes the role Azure Service Bus Data Sender"
	case said == "" && (fault == brokerfault.Connection || fault == brokerfault.Canceled || fault == brokerfault.Unknown):
		what, p.fix = connectionProblem(cause)
		p.unknown = p.fix == unknownFix
	}
	p.text = fmt.Sprintf("queue %q at %s: %s", c.queue, c.broker(), what)
	if said = cmp.Or(said, brokerfault.Text(cause)); said != "" {
		p.text += " (" + said + ")"
	}
	return p
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

const unknownFix = "A text that is not UTF-8 cannot be sent by it. For anything else check the name and the network"

// connectionProblem tells a peer that speaks something else from one that is away.
func connectionProblem(err error) (what, fix string) {
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, dialed := errors.AsType[net.Error](err)
	switch {
	case noTLS, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "it does not answer as Service Bus does: it is another service, or one side speaks TLS and the other does not",
			"Check host and port. UseDevelopmentEmulator=true in SERVICEBUS_CONNECTION_STRING means no TLS: an emulator needs it, Azure must not have it"
	case certificate, authority:
		return "its certificate is not accepted", "Check the host name, and whether a proxy is between; its authority must be known to this machine"
	case dialed, errors.Is(err, context.DeadlineExceeded), brokerfault.Of(err) == brokerfault.Connection:
		return "it cannot be reached, or takes the connection and does not answer in AMQP",
			"Check the address and the network, firewall and private endpoint among it. Is the embedded environment (go run ./cmd/devenv) or the emulator up?"
	}
	return "the client library gave up", unknownFix
}

// broker names the broker for people, without secrets.
func (c config) broker() string {
	if parts, _ := connstring.Parse(c.connectionString); c.namespace == "" && parts.Host != "" {
		return parts.Address()
	}
	return cmp.Or(c.namespace, "the broker of SERVICEBUS_CONNECTION_STRING")
}

// brokerHost is the host of the broker, and empty when the settings do not tell.
func (c config) brokerHost() string {
	parts, _ := connstring.Parse(c.connectionString)
	return cmp.Or(c.namespace, parts.Hostname())
}

func fullStop(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
