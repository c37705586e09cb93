package amqpbroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/orderworker/orderworker/internal/connstring"
)

// Options say which queue, and how to reach it. Give a ConnectionString, or Namespace and Credential.
type Options struct {
	// ConnectionString is that of a namespace, with a key or a shared access signature.
	ConnectionString string
	// Namespace is the full host name, such as shop.servicebus.windows.net.
	Namespace  string
	Credential azcore.TokenCredential
	// Queue is the path of the queue itself, not that of its dead letters.
	Queue string
	// Forwarded reads dead-lettered messages that were forwarded to the queue, where they lie as ordinary ones, in place of its
	// own dead letters.
	Forwarded bool
	// Dial opens connections in place of TCP and TLS. Defaults to those.
	Dial func(ctx context.Context) (net.Conn, error)
	// CallTimeout bounds one request to the broker, a reconnect included. Defaults to 30s.
	CallTimeout time.Duration
}

// source is the path of the dead letters.
func (o Options) source() string {
	if o.Forwarded {
		return o.Queue
	}
	return o.Queue + deadLetterQueue
}

// address is what the options come to.
type address struct {
	host  string // with the port, when there is one
	tls   bool
	token tokenSource
}

func (o Options) address() (address, error) {
	switch {
	case o.Queue == "":
		return address{}, errors.New("amqpbroker: the queue is missing")
	case o.ConnectionString == "" && (o.Namespace == "" || o.Credential == nil):
		return address{}, errors.New("amqpbroker: give a connection string, or a namespace and a credential")
	case o.ConnectionString == "":
		return address{host: o.Namespace, tls: true, token: fromCredential(o.Credential)}, nil
	}
	c, err := connstring.Parse(o.ConnectionString)
	if err != nil {
		return address{}, fmt.Errorf("amqpbroker: the connection string cannot be used: %w", err)
	}
	if c.Signature != "" {
		return address{host: c.Host, tls: !c.Emulator, token: fixed(c.Signature)}, nil
	}
	return address{host: c.Host, tls: !c.Emulator, token: signed(c.KeyName, c.Key)}, nil
}

// audience names an entity in a token.
func (a address) audience(path string) string {
	scheme := "amqp://"
	if a.tls {
		scheme = "amqps://"
	}
	return scheme + a.host + "/" + path
}
