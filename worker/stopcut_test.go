package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func TestRenewalsThatAStopCutsShortSayNothingOfTheLink(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		b := &fakeBroker{open: func(int) *fakeReceiver {
			return &fakeReceiver{renew: func(ctx context.Context, _ *azservicebus.ReceivedMessage) error {
				<-ctx.Done()
				return ctx.Err()
			}}
		}}
		w := e.startOver(worker.Config{Concurrency: 4}, b) // all of them, so that no credit is out
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		b.mu.Lock()
		for i := range 8 {
			b.queue = append(b.queue, fakeMessage(fmt.Sprintf("proof-%d", i), `{"n":1}`))
		}
		b.mu.Unlock()
		e.await(10*time.Minute, "proven", func() bool { return b.count("complete") == 8 && w.Health().Breaker == "closed" })
		b.mu.Lock()
		for i := range 4 {
			m := fakeMessage(string(rune('a'+i)), `{"n":1}`)
			m.LockedUntil = new(time.Now().Add(4 * time.Second)) // so little that it is renewed before any work
			b.queue = append(b.queue, m)
		}
		b.mu.Unlock()
		e.await(time.Minute, "received", func() bool { return w.Health().InFlight == 4 })
		w.stop()
		w.Abort()
		<-w.done
		require.Equal(e, 4, b.count("abandon"))
		require.Equal(e, 1, b.opens(), "a connection that is good is not given up at the very end")
		require.Zero(e, e.count(worker.EventReceiverReplaced))
	})
}
