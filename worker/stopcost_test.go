package worker_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// TestAStopCostsAMessageAtMostOneDelivery stops workers at many moments, over a network that takes time, while their
// messages keep waiting for a retry. A message that was abandoned must not come back to the worker that stops.
func TestAStopCostsAMessageAtMostOneDelivery(t *testing.T) {
	handlers := []struct {
		name   string
		handle worker.HandlerFunc
	}{
		{"asks for a retry after three seconds", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.RetryAfter(3*time.Second, errors.New("later"))
		}},
		{"asks for a retry at once", func(context.Context, worker.Message) (worker.Effects, error) {
			time.Sleep(10 * time.Millisecond)
			return worker.Effects{}, worker.RetryAfter(50*time.Millisecond, errors.New("now"))
		}},
		{"takes its time and asks for a retry", func(context.Context, worker.Message) (worker.Effects, error) {
			time.Sleep(900 * time.Millisecond)
			return worker.Effects{}, worker.RetryAfter(3*time.Second, errors.New("later"))
		}},
	}
	networks := []struct {
		name    string
		latency time.Duration // of one way
	}{{"at once", 0}, {"after 60 ms", 30 * time.Millisecond}, {"after 150 ms", 75 * time.Millisecond}}
	for _, h := range handlers {
		for _, network := range networks {
			t.Run(h.name+", and the broker answers "+network.name, func(t *testing.T) {
				bubble(t, servicebus.Queue{MaxDeliveryCount: 100}, func(e *env) {
					e.handler = h.handle
					e.sendOrders("o-", 20)
					for stop := range 8 {
						// Half of the time there are more slots than messages, and half of the time fewer.
						config := worker.Config{MaxDeliveryCount: 100, Concurrency: 3 + 40*(stop%2)}
						w := e.startOver(config, worker.NewBroker(e.slowClient(network.latency), "orders"))
						time.Sleep(3*time.Second + time.Duration(stop)*433*time.Millisecond)
						w.stop()
						time.Sleep(2*time.Second + 32*network.latency)
						require.Equal(e, 20, e.counts().Active, "free for another worker within two seconds, and the sixteen round trips of a new connection")
						e.end(w)
						require.LessOrEqual(e, e.maxDeliveries(), stop+1, "one stop costs one delivery at most")
					}
				})
			})
		}
	}
}

// slowClient returns clients over a network that delays every byte by d.
func (e *env) slowClient(d time.Duration) func() (*azservicebus.Client, error) {
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(e.broker.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := e.broker.Dial(ctx)
				if err != nil {
					return nil, err
				}
				near, far := net.Pipe()
				go carry(far, conn, d)
				go carry(conn, far, d)
				return near, nil
			},
		})
	}
}

// carry brings what it reads from one end to the other, each piece d later, until one end is closed. Then it closes both.
func carry(from, to net.Conn, d time.Duration) {
	type piece struct {
		at    time.Time
		bytes []byte
	}
	pieces := make(chan piece, 10_000)
	go func() {
		for p := range pieces {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.bytes); err != nil {
				break
			}
		}
		_, _ = from.Close(), to.Close()
	}()
	defer close(pieces)
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		pieces <- piece{time.Now().Add(d), b[:n]}
	}
}
