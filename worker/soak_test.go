package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// shortMemory is a store that remembers only its newest keys, so that the memory of a long run is the worker's.
type shortMemory struct {
	mu      sync.Mutex
	records map[string]worker.Record
	order   []string
	created int
}

func (s *shortMemory) Commit(_ context.Context, c worker.Commit) (worker.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.records[c.DocumentID]; ok {
		return worker.Outcome{Existing: &r, Calls: 2}, nil
	}
	s.created++
	s.records[c.DocumentID] = worker.Record{DocumentID: c.DocumentID, Key: c.Key.String(), Attempt: c.Attempt, Fingerprint: &c.Fingerprint, Content: c.Documents[0].Content}
	if s.order = append(s.order, c.DocumentID); len(s.order) > 500 {
		delete(s.records, s.order[0])
		s.order = s.order[1:]
	}
	return worker.Outcome{Created: true, Calls: 1}, nil
}

func (s *shortMemory) Find(context.Context, string, string) (worker.Record, error) {
	return worker.Record{}, worker.ErrNotFound
}
func (s *shortMemory) Claim(context.Context, worker.Commit) (worker.Outcome, error) {
	return worker.Outcome{}, errors.ErrUnsupported
}
func (s *shortMemory) Ready(context.Context) error { return nil }

func TestHoursOfSmallFaultsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := fault.Seed(7,
			fault.Choice{Op: history.Complete, Phase: fault.Before, Probability: 0.01, Action: fault.Reject(lockLost)},
			fault.Choice{Op: history.Complete, Phase: fault.After, Probability: 0.002, Action: fault.DetachLink("amqp:link:detach-forced")},
		)
		b, err := servicebus.New(servicebus.Options{Faults: faults, Config: servicebus.Config{Queues: []servicebus.Queue{{
			Name: "orders", LockDuration: 30 * time.Second, DefaultMessageTimeToLive: servicebus.Forever,
		}}}})
		require.NoError(t, err)
		defer b.Close()
		client := func() (*azservicebus.Client, error) {
			return azservicebus.NewClientFromConnectionString(b.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
				NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return b.Dial(ctx) },
			})
		}
		store := &shortMemory{records: map[string]worker.Record{}}
		w, err := worker.New(worker.Config{LockDuration: 30 * time.Second}, worker.NewBroker(client, "orders"), store, worker.HandlerFunc(order))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()

		id := 0
		round := func(minutes int) (goroutines int, heap uint64) {
			for range minutes {
				for range 60 {
					id++
					body := fmt.Sprintf(`{"n":%d}`, id)
					if id%100 == 0 {
						body = "not json"
					}
					sendRaw(t, b, fmt.Sprint(id), body)
					time.Sleep(time.Second)
				}
				if id/60%5 == 0 {
					b.DropConnections()
				}
			}
			time.Sleep(2 * time.Minute)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), m.HeapAlloc
		}
		goroutines, heap := round(20)
		moreGoroutines, moreHeap := round(100)
		// The goroutines that are kept for calls of the store grow to the number of messages that ever were in work at once.
		require.LessOrEqual(t, moreGoroutines, goroutines+16)
		require.Less(t, int64(moreHeap)-int64(heap), int64(4<<20))
		c, err := b.Counts("orders")
		require.NoError(t, err)
		require.Zero(t, c.Active+c.Locked)
		require.Equal(t, id/100, c.DeadLettered)
		require.Equal(t, id-id/100, store.created)
		require.LessOrEqual(t, b.Connections(), 1)
		stop()
		require.NoError(t, <-done)
		time.Sleep(time.Hour)
	})
}

func (s *shortMemory) Read(context.Context, string, string) (worker.State, error) {
	return worker.State{}, worker.ErrNotFound
}
