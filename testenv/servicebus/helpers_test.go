package servicebus_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// env is a broker with one client of the unmodified SDK.
type env struct {
	*servicebus.Broker
	t       *testing.T
	client  *azservicebus.Client
	history *history.Log
}

const dlq = "orders/$DeadLetterQueue"

// orders is the queue of most tests.
func orders() servicebus.Queue { return servicebus.Queue{Name: "orders"} }

// start opens a broker behind the in-memory door.
func start(t *testing.T, o servicebus.Options) *env {
	t.Helper()
	w := open(t, o)
	w.client = w.dial()
	return w
}

func open(t *testing.T, o servicebus.Options) *env {
	t.Helper()
	if len(o.Config.Queues) == 0 {
		o.Config.Queues = []servicebus.Queue{orders()}
	}
	o.History = history.New()
	b, err := servicebus.New(o)
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return &env{Broker: b, t: t, history: o.History}
}

// dial returns another client over the in-memory door. Its retries are short, so that failures show.
func (w *env) dial() *azservicebus.Client {
	return w.dialRetrying(azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: 10 * time.Millisecond})
}

func (w *env) dialRetrying(o azservicebus.RetryOptions) *azservicebus.Client {
	w.t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(w.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return w.Dial(ctx) },
		RetryOptions:     o,
	})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// dialSocket returns a client over a loopback socket.
func (w *env) dialSocket() *azservicebus.Client { return w.dialAddress(w.listen()) }

// listen opens the socket door and returns its address.
func (w *env) listen() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, l) }()
	w.t.Cleanup(func() { cancel(); require.NoError(w.t, <-served) })
	return l.Addr().String()
}

func (w *env) dialAddress(addr string) *azservicebus.Client {
	w.t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(w.ConnectionString(addr), &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{RetryDelay: 10 * time.Millisecond},
	})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func text(s string) *string { return &s }

func message(id, body string) *azservicebus.Message {
	return &azservicebus.Message{MessageID: &id, Body: []byte(body)}
}

func (w *env) send(ms ...*azservicebus.Message) {
	w.t.Helper()
	s, err := w.client.NewSender("orders", nil)
	require.NoError(w.t, err)
	for _, m := range ms {
		require.NoError(w.t, s.SendMessage(within(w.t, time.Minute), m, nil))
	}
	require.NoError(w.t, s.Close(within(w.t, time.Minute)))
}

func (w *env) receiver() *azservicebus.Receiver {
	w.t.Helper()
	return receiverOf(w.t, w.client, nil)
}

func (w *env) deadLetterReceiver() *azservicebus.Receiver {
	w.t.Helper()
	return receiverOf(w.t, w.client, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
}

func receiverOf(t *testing.T, c *azservicebus.Client, o *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	t.Helper()
	r, err := c.NewReceiverForQueue("orders", o)
	require.NoError(t, err)
	return r
}

// receiving is a receiver of a queue, a subscription or a session.
type receiving interface {
	ReceiveMessages(ctx context.Context, maxMessages int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// take receives exactly n messages.
func take(t *testing.T, r receiving, n int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var all []*azservicebus.ReceivedMessage
	ctx := within(t, time.Minute)
	for len(all) < n {
		ms, err := r.ReceiveMessages(ctx, n-len(all), nil)
		require.NoError(t, err)
		all = append(all, ms...)
	}
	return all
}

func (w *env) counts() servicebus.Counts {
	w.t.Helper()
	c, err := w.Counts("orders")
	require.NoError(w.t, err)
	return c
}

// ops returns the operations of the history that had an effect, without the ones of connecting.
func (w *env) ops() []string {
	var ops []string
	for _, e := range w.history.Events() {
		switch e.Op {
		case history.Connect, history.PutToken, history.Attach:
			continue
		}
		if e.Effect {
			ops = append(ops, e.Op)
		}
	}
	return ops
}
