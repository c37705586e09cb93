package servicebus_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// BenchmarkReceiveAndComplete measures one receiver of the client library that completes 64 messages at once.
func BenchmarkReceiveAndComplete(b *testing.B) {
	for _, door := range []string{"memory", "socket"} {
		b.Run(door, func(b *testing.B) { receiveAndComplete(b, door == "memory") })
	}
}

func receiveAndComplete(b *testing.B, memory bool) {
	q := servicebus.Queue{Name: "orders", LockDuration: 5 * 60e9}
	broker, err := servicebus.New(servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{q}}})
	require.NoError(b, err)
	defer broker.Close()
	client := benchClient(b, broker, memory)
	defer func() { _ = client.Close(context.Background()) }()
	encoded, err := amqp.AppendMessage(nil, amqp.Message{
		Properties: &amqp.Properties{MessageID: "m"}, BodyKind: amqp.BodyData, Data: [][]byte{make([]byte, 500)},
	})
	require.NoError(b, err)
	for range b.N {
		_, err := broker.SendEncoded("orders", encoded)
		require.NoError(b, err)
	}
	r, err := client.NewReceiverForQueue("orders", nil)
	require.NoError(b, err)
	b.ResetTimer()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for left := b.N; left > 0; {
		ms, err := r.ReceiveMessages(context.Background(), min(left, 64), nil)
		require.NoError(b, err)
		left -= len(ms)
		for _, m := range ms {
			slots <- struct{}{}
			wg.Go(func() {
				if err := r.CompleteMessage(context.Background(), m, nil); err != nil {
					b.Error(err)
				}
				<-slots
			})
		}
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func benchClient(b *testing.B, broker *servicebus.Broker, memory bool) *azservicebus.Client {
	b.Helper()
	address, options := "embedded.example", &azservicebus.ClientOptions{}
	if memory {
		options.NewWebSocketConn = func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return broker.Dial(ctx)
		}
	} else {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		go func() { _ = broker.Serve(context.Background(), l) }()
		address = l.Addr().String()
	}
	c, err := azservicebus.NewClientFromConnectionString(broker.ConnectionString(address), options)
	require.NoError(b, err)
	return c
}

// BenchmarkStore measures what it takes to store a message that nobody receives.
func BenchmarkStore(b *testing.B) {
	broker, err := servicebus.New(servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{{Name: "orders"}}}})
	require.NoError(b, err)
	defer broker.Close()
	var buf []byte
	for i := range b.N {
		buf, err = amqp.AppendMessage(buf[:0], amqp.Message{Properties: &amqp.Properties{MessageID: fmt.Sprint(i)}, BodyKind: amqp.BodyData, Data: [][]byte{make([]byte, 100)}})
		require.NoError(b, err)
		_, err := broker.SendEncoded("orders", buf)
		require.NoError(b, err)
	}
}
