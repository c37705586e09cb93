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
	letters string // the path of the dead letters
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
	return &Broker{options: o, address: a, letters: o.letters(), turn: make(chan struct{}, 1)}, nil
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

// with runs use with the connection, and opens one when there is none. Nobody else uses it meanwhile.
func (b *Broker) with(ctx context.Context, use func(*connection) error) error {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.turn }()
	if b.closed {
		return ErrClosed
	}
	if b.link == nil {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		b.link = c
	}
	return use(b.link)
}

// drop gives a connection up after an error that is not an answer, so that the next call opens another. A caller who has
// given up himself proves nothing about the connection, and others may be using it.
func (b *Broker) drop(ctx context.Context, broken *connection, err error) {
	if _, answered := asStatus(err); broken == nil || answered || ctx.Err() != nil {
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

// manage makes a request at the management node of a path. Requests run at the same time. When the connection is
// lost under a request that may be repeated, it is made again on a new one.
func (b *Broker) manage(ctx context.Context, path string, repeat bool, operation string, body map[string]any) (*amqp.Message, error) {
	for try := 1; ; try++ {
		reply, c, err := b.manageOnce(ctx, path, operation, body)
		if err != nil {
			b.drop(ctx, c, err)
		}
		if err == nil || !repeat || try >= tries || !again(ctx, c, err) {
			return reply, err
		}
	}
}

func (b *Broker) manageOnce(ctx context.Context, path, operation string, body map[string]any) (*amqp.Message, *connection, error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
	defer cancel()
	var c *connection
	var node *rpc
	err := b.with(ctx, func(open *connection) (err error) {
		c = open
		node, err = c.node(ctx, path)
		return err
	})
	var reply *amqp.Message
	if err == nil {
		m := &amqp.Message{Value: body, ApplicationProperties: map[string]any{"operation": "com.microsoft:" + operation, "server-timeout": serverTimeout(ctx)}}
		reply, err = node.call(ctx, m)
	}
	return reply, c, err
}
