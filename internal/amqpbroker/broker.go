package amqpbroker

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// A Broker reaches one queue and its dead letters. It is safe for concurrent use, except that one goroutine at a time may
// lock.
type Broker struct {
	options Options
	address address
	source  string // the path of the dead letters
	// turn is held by the goroutine that uses the fields below and what is opened on the connection. A channel, so that waiting for
	// it can end.
	turn   chan struct{}
	link   *connection
	closed bool
}

var _ deadletter.Broker = (*Broker)(nil)

// ErrClosed is returned by a broker that was closed.
var ErrClosed = errors.New("amqpbroker: the broker was closed")

// New checks the options. It does no I/O: the first call connects.
func New(o Options) (*Broker, error) {
	a, err := o.address()
	if err != nil {
		return nil, err
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = 30 * time.Second
	}
	return &Broker{options: o, address: a, source: o.source(), turn: make(chan struct{}, 1)}, nil
}

// Close drops the connection. Locks that were not released end by themselves.
func (b *Broker) Close() {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	b.closed = true
	if b.link != nil {
		b.link.close()
		b.link = nil
	}
}

// with runs use with the connection, which it opens when there is none. Nobody else uses it meanwhile.
func (b *Broker) with(ctx context.Context, use func(*connection) error) (*connection, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-b.turn }()
	if b.closed {
		return nil, ErrClosed
	}
	if b.link == nil {
		c, err := b.connect(ctx)
		if err != nil {
			return nil, err
		}
		b.link = c
	}
	return b.link, use(b.link)
}

// drop gives a connection up after an error that is not an answer, so that the next call opens another. A caller who has
// given up himself proves nothing about the connection, and others may be using it.
func (b *Broker) drop(ctx context.Context, broken *connection, err error) {
	if _, answered := asStatus(err); broken == nil || err == nil || answered || ctx.Err() != nil {
		return
	}
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if b.link == broken {
		b.link.close()
		b.link = nil
	}
}

// tries is how often a request is made that may be made again.
const tries = 3

// attempt makes a request at most so many times, each on a new connection after the first was lost. The request returns the
// connection that it used.
func (b *Broker) attempt(ctx context.Context, most int, request func() (*connection, error)) (*connection, error) {
	for try := 1; ; try++ {
		c, err := request()
		b.drop(ctx, c, err)
		if err == nil || try >= most || !again(ctx, c, err) {
			return c, err
		}
	}
}

// manage makes a request at the management node of a path, at most so many times. Requests run at the same time.
func (b *Broker) manage(ctx context.Context, path string, most int, operation string, body map[string]any) (reply *amqp.Message, err error) {
	_, err = b.attempt(ctx, most, func() (*connection, error) {
		ctx, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
		defer cancel()
		var node *rpc
		c, err := b.with(ctx, func(c *connection) (err error) {
			node, err = c.node(ctx, path)
			return err
		})
		if err == nil {
			reply, err = node.call(ctx, &amqp.Message{Value: body, ApplicationProperties: map[string]any{
				"operation": "com.microsoft:" + operation, "server-timeout": serverTimeout(ctx),
			}})
		}
		return c, err
	})
	return reply, err
}
