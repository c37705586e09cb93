package worker_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// A line carries what the broker sends at a bounded rate, over all its connections together.
type line struct {
	e    *env
	rate int // bytes a second

	mu   sync.Mutex
	free time.Time // when what is on the line has passed
}

// pass waits until n more bytes have passed.
func (l *line) pass(n int) {
	l.mu.Lock()
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
	until := l.free
	l.mu.Unlock()
	time.Sleep(time.Until(until))
}

// widen changes the rate.
func (l *line) widen(rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
}

func (l *line) client() (*azservicebus.Client, error) {
	return azservicebus.NewClientFromConnectionString(l.e.broker.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			conn, err := l.e.broker.Dial(ctx)
			if err != nil {
				return nil, err
			}
			near, far := net.Pipe()
			go carry(far, conn, 0)
			go l.carry(conn, far)
			return near, nil
		},
	})
}

func (l *line) carry(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	b := make([]byte, 16<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		l.pass(n)
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// sendLarge sends messages with bodies of about size bytes.
func (e *env) sendLarge(n, size int) {
	e.Helper()
	messages := make([]*azservicebus.Message, n)
	for i := range messages {
		id := fmt.Sprintf("large-%d", i)
		messages[i] = &azservicebus.Message{MessageID: &id, Body: fmt.Appendf(nil, `{"orderId":%q,"filler":%q}`, id, strings.Repeat("x", size))}
	}
	e.sendAll(messages...)
}

func TestAThinLineDeadLettersNothing(t *testing.T) {
	const second, mb = time.Second, 1_000_000
	tests := []struct {
		name                        string
		lock                        time.Duration
		slots, messages, size, rate int
		handle                      worker.HandlerFunc
		within                      time.Duration
	}{
		{name: "each message takes half the shortest lock", lock: 5 * second, slots: 16, messages: 40, size: mb, rate: 400_000, within: 5 * time.Minute},
		{name: "each message takes half the shortest lock, and its handler takes a second", lock: 5 * second, slots: 16, messages: 40, size: mb, rate: 400_000,
			handle: pausing(second), within: 6 * time.Minute},
		{name: "what all slots ask for takes longer than a lock of 30 seconds", lock: 30 * second, slots: 10, messages: 40, size: 400_000, rate: 100_000, within: 6 * time.Minute},
		{name: "a lock of a minute and many slots", lock: 60 * second, slots: 100, messages: 300, size: 100_000, rate: 200_000, within: 6 * time.Minute},
		{name: "small messages, and many slots", lock: 30 * second, slots: 200, messages: 600, size: 20_000, rate: 100_000, within: 5 * time.Minute},
		{name: "a line that is wide enough", lock: 30 * second, slots: 10, messages: 40, size: 400_000, rate: 4_000_000, within: 15 * second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := servicebus.Queue{LockDuration: tt.lock, MaxDeliveryCount: 10}
			bubbleWith(t, servicebus.Options{MaxMessageSize: 2 * mb, Config: servicebus.Config{Queues: []servicebus.Queue{q}}}, func(e *env) {
				if tt.handle != nil {
					e.handler = tt.handle
				}
				e.sendLarge(tt.messages, tt.size)
				l := &line{e: e, rate: tt.rate}
				w := e.startOver(worker.Config{LockDuration: tt.lock, Concurrency: tt.slots}, worker.NewBroker(l.client, "orders"))
				begun := time.Now()
				e.await(time.Hour, "drained", e.drained)
				require.Equal(e, tt.messages, e.mem.Len())
				require.Empty(e, e.deadLetters())
				require.LessOrEqual(e, e.maxDeliveries(), 3)
				require.Less(e, time.Since(begun), tt.within)
				e.end(w)
			})
		})
	}
}

func TestAThinLineIsSaidOnceAndAWiderOneIsUsedAgain(t *testing.T) {
	q := servicebus.Queue{LockDuration: 5 * time.Second, MaxDeliveryCount: 10}
	bubbleWith(t, servicebus.Options{MaxMessageSize: 2_000_000, Config: servicebus.Config{Queues: []servicebus.Queue{q}}}, func(e *env) {
		e.handler = pausing(500 * time.Millisecond)
		e.sendLarge(60, 1_000_000)
		l := &line{e: e, rate: 400_000}
		w := e.startOver(worker.Config{LockDuration: 5 * time.Second}, worker.NewBroker(l.client, "orders"))
		e.await(time.Hour, "20 stored", func() bool { return e.mem.Len() >= 20 })
		lines := e.logs.lines("thin_line")
		require.Len(e, lines, 1, "one line per incident")
		require.Contains(e, lines[0]["detail"], "a lock of 5s arrives with 2.4")
		require.Regexp(e, `messages of 100\d{4} bytes come at (39|40)\d{4} bytes a second`, lines[0]["detail"])
		begun := time.Now()
		l.widen(100_000_000)
		e.await(time.Minute, "drained", e.drained)
		require.Less(e, time.Since(begun), 15*time.Second)
		most := 0
		for _, ev := range e.seen(worker.EventReceived) {
			most = max(most, ev.InFlight)
		}
		require.Greater(e, most, 4, "more at once when locks arrive fresh")
		require.Empty(e, e.deadLetters())
		e.end(w)
	})
}
