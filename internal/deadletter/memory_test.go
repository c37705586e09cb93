package deadletter_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// endless is a broker with any number of dead letters, made as they are peeked.
type endless struct {
	deadletter.Broker
	messages int64
	body     []byte
}

func (e endless) Peek(_ context.Context, from int64, most int) ([]*deadletter.DeadLetter, error) {
	var out []*deadletter.DeadLetter
	for n := from; n <= e.messages && len(out) < most; n++ {
		m := amqp.NewMessage(append([]byte(nil), e.body...))
		m.Properties = &amqp.MessageProperties{MessageID: fmt.Sprint("m", n)}
		m.Annotations = amqp.Annotations{"x-opt-sequence-number": n, "x-opt-enqueued-time": noon}
		b, err := m.MarshalBinary()
		if err != nil {
			return nil, err
		}
		out = append(out, deadletter.Parse(b))
	}
	return out, nil
}

// peak lists n messages of 10 KB and returns the most live heap that was seen on the way.
func peak(t *testing.T, n int64) uint64 {
	t.Helper()
	p, err := worker.NewPipeline(worker.Config{}, storetest.NewMem(), worker.HandlerFunc(handle))
	require.NoError(t, err)
	body := []byte(`{"text":"` + fmt.Sprintf("%010000d", 0) + `"}`)
	r := deadletter.NewReviewer(endless{messages: n, body: body}, p, nil, deadletter.Settings{Queue: "orders"})
	groups := deadletter.NewGroups(deadletter.ByVerdict)
	var most uint64
	for item, err := range r.List(t.Context(), deadletter.Filter{}) {
		require.NoError(t, err)
		groups.Add(item.DeadLetter, item.Verdict)
		if groups.All()[0].Count%250 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	require.EqualValues(t, n, groups.All()[0].Count)
	return most
}

func TestAListingOfAnyLengthTakesTheSameMemory(t *testing.T) {
	few, many := peak(t, 1_000), peak(t, 4_000)
	require.Less(t, many, few+8<<20, "3,000 messages more are 30 MB more, and none of it stays")
}
