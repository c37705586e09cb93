package worker_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// gate is the way to the broker: open, or refusing every connection.
type gate struct {
	e    *env
	shut atomic.Bool
}

func (g *gate) client() (*azservicebus.Client, error) {
	return azservicebus.NewClientFromConnectionString(g.e.broker.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			if g.shut.Load() {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return g.e.broker.Dial(ctx)
		},
	})
}

func TestABrokerThatRefusesConnectionsShowsWithinTenSeconds(t *testing.T) {
	tests := []struct {
		name    string
		atStart bool
		handle  worker.HandlerFunc
	}{
		{"from the start", true, nil},
		{"under an idle worker", false, nil},
		{"under a worker with messages in work", false, pausing(3 * time.Minute)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				g := &gate{e: e}
				if tt.handle != nil {
					e.handler = tt.handle
				}
				g.shut.Store(tt.atStart)
				start := e.startOver
				if !tt.atStart {
					start = e.startProvenOver
				}
				w := start(worker.Config{HandlerTimeout: 5 * time.Minute}, worker.NewBroker(g.client, "orders"))
				if !tt.atStart {
					e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
					e.sendOrders("o-", 5)
					time.Sleep(11 * time.Second)
					g.shut.Store(true)
					e.broker.DropConnections()
				}
				time.Sleep(10 * time.Second)
				require.Equal(e, 503, ready(w, "/readyz"))
				require.Equal(e, []string{"broker"}, parts(w.Health()))
				lines := e.logs.lines("not_ready")
				require.Len(e, lines, 1)
				require.Contains(e, lines[0]["detail"], "cannot be reached")
				require.NotContains(e, lines[0]["detail"], "lost")
				time.Sleep(20 * time.Minute)
				require.Equal(e, []string{"broker"}, parts(w.Health()), "and stays so")
				require.Len(e, e.logs.lines("not_ready"), 1, "one line for one incident")
				g.shut.Store(false)
				e.await(time.Minute, "ready again", func() bool { return w.Health().Ready })
				e.await(10*time.Minute, "drained", e.drained)
				require.Len(e, e.logs.lines("not_ready"), 1)
				e.end(w)
			})
		})
	}
}
