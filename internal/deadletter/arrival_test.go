package deadletter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

func detectsTenMinutes(q *servicebus.Queue) {
	q.RequiresDuplicateDetection, q.DuplicateDetectionHistoryTimeWindow = true, 10*time.Minute
}

func TestACopyThatDuplicateDetectionDropsCostsNothing(t *testing.T) {
	inBubble(t, setup{queue: detectsTenMinutes}, func(t *testing.T, w *world) {
		require.True(t, w.settings.Duplicates.Known, "the settings say that it is off")
		n := w.bury("X", message("m1", `{"a":1}`))
		for range 2 { // the second time its send is on record
			out := w.act(command(deadletter.Resubmit), n)[0]
			require.Equal(t, deadletter.NotSeen, out.Result)
			require.False(t, out.Result.Removed())
			require.Contains(t, out.Detail, "duplicate detection")
			require.Equal(t, 1, w.count(dead).Total())
		}
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Sent, deadletter.Failed}, w.ledger.states(n))
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result)
	})
}

func TestACopyIsSeenWhereverItIs(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world){
		"in a queue with others":       func(w *world) { w.send(300) },
		"stored by a worker":           func(w *world) { w.apply("m1", `{"a":1}`) },
		"among the dead letters again": func(w *world) { w.buryAll("X") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, w *world) {
				n := w.bury("X", message("m1", `{"a":1}`))
				w.send(250)
				broker := &sendHook{Broker: w.broker(), after: func() { meanwhile(w) }}
				w.review = deadletter.NewReviewer(broker, w.pipeline, w.ledger, w.settings)
				out := w.act(command(deadletter.Resubmit), n)[0]
				require.Equal(t, deadletter.Resubmitted, out.Result, out.Detail)
			})
		})
	}
}

// send fills the queue.
func (w *world) send(n int) {
	w.t.Helper()
	for range n {
		_, err := w.SendEncoded("orders", encode(w.t, message("other", `{}`)))
		require.NoError(w.t, err)
	}
}

// A message under the same id that came before is not the copy.
func TestWithoutTheEndOfTheQueueNothingIsSent(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		_, err := w.SendEncoded("orders", encode(t, message("m1", `{"a":2}`)))
		require.NoError(t, err)
		broker := &blindBroker{Broker: w.broker()}
		w.review = deadletter.NewReviewer(broker, w.pipeline, w.ledger, w.settings)
		_, err = w.review.Act(t.Context(), command(deadletter.Resubmit), n)
		require.ErrorIs(t, err, errBlind)
		require.Zero(t, broker.sent)
		require.Equal(t, 1, w.count(dead).Total())
	})
}

var errBlind = errors.New("the queue cannot be peeked now")

// blindBroker cannot peek the queue the first time, and takes copies that nobody sees again.
type blindBroker struct {
	deadletter.Broker
	peeked bool
	sent   int
}

func (b *blindBroker) PeekQueue(ctx context.Context, from int64, most int) ([]*deadletter.DeadLetter, error) {
	if !b.peeked {
		b.peeked = true
		return nil, errBlind
	}
	return b.Broker.PeekQueue(ctx, from, most)
}

func (b *blindBroker) Send(context.Context, []byte) error {
	b.sent++
	return nil
}
