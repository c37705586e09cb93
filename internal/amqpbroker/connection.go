package amqpbroker

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/wire"
)

// management is the path of a management node below that of what it manages.
const management = "/$management"

// deadLetterQueue is the path of a queue's dead letters below its own.
const deadLetterQueue = "/$DeadLetterQueue"

// connection is one connection with what is opened on it. Its fields belong to the goroutine that holds the broker's turn, except that
// the management links may be used by many.
type connection struct {
	address address
	conn    *amqp.Conn
	session *amqp.Session
	// nodes are the management links, by the path of what they manage.
	nodes    map[string]*rpc
	receiver *amqp.Receiver
	sender   *amqp.Sender
	// sentAt is when the sender was used last.
	sentAt time.Time
	// credit is what the receiver has been given and not used, and handed how many messages came over it.
	credit, handed int
	// tokens says of each audience when its token is to be replaced.
	tokens map[string]time.Time
}

// connect opens a connection with the session of its links.
func (b *Broker) connect(ctx context.Context) (*connection, error) {
	conn, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &connection{address: b.address, conn: conn, session: session, nodes: map[string]*rpc{}, tokens: map[string]time.Time{}}, nil
}

// dial opens a connection on which messages arrive as they were encoded.
func (b *Broker) dial(ctx context.Context) (*amqp.Conn, error) {
	dial := b.options.Dial
	if dial == nil {
		dial = b.address.dial
	}
	nc, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	c, err := amqp.NewConn(ctx, wire.NewConn(nc), &amqp.ConnOptions{
		SASLType: amqp.SASLTypeAnonymous(), MaxSessions: 65535, HostName: b.address.host,
		Properties: map[string]any{"product": "orderworker"},
	})
	if err != nil {
		_ = nc.Close()
	}
	return c, err
}

// dial opens TCP, and TLS over it where the address asks for that.
func (a address) dial(ctx context.Context) (net.Conn, error) {
	host, port, err := net.SplitHostPort(a.host)
	if err != nil {
		host, port = a.host, map[bool]string{true: "5671", false: "5672"}[a.tls]
	}
	var d interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if a.tls {
		d = &tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
	}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
}

// node returns the management links of a path, and opens them first when there are none.
func (c *connection) node(ctx context.Context, path string) (*rpc, error) {
	if err := c.authorize(ctx, path, path+management); err != nil {
		return nil, err
	}
	if n := c.nodes[path]; n != nil {
		return n, nil
	}
	n, err := openRPC(ctx, c.conn, path+management)
	if err == nil {
		c.nodes[path] = n
	}
	return n, err
}

// close drops the connection without a word on its links; the broker ends them with it.
func (c *connection) close() {
	for _, n := range c.nodes {
		n.stop()
	}
	_ = c.conn.Close()
	for _, n := range c.nodes {
		<-n.ended
	}
}

// authorize puts tokens for the paths that have none, or an old one. A connection may have one pair of $cbs links at a time,
// so they are closed again.
func (c *connection) authorize(ctx context.Context, paths ...string) error {
	now := time.Now()
	var due []string
	for _, path := range paths {
		if c.tokens[path].Before(now) {
			due = append(due, path)
		}
	}
	if len(due) == 0 {
		return nil
	}
	cbs, err := openRPC(ctx, c.conn, "$cbs")
	if err != nil {
		return err
	}
	defer cbs.close(ctx)
	for _, path := range due {
		if err := c.putToken(ctx, cbs, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *connection) putToken(ctx context.Context, cbs *rpc, path string) error {
	audience := c.address.audience(path)
	t, err := c.address.token(ctx, audience)
	if err != nil {
		return fmt.Errorf("sign in to Service Bus: %w", err)
	}
	_, err = cbs.call(ctx, &amqp.Message{Value: t.text, ApplicationProperties: map[string]any{
		"operation": "put-token", "type": t.kind, "name": audience, "expiration": t.expiry(),
	}})
	if e, ok := asStatus(err); ok {
		e.Entity = path
	}
	if err == nil {
		c.tokens[path] = t.renewAt(time.Now())
	}
	return err
}
