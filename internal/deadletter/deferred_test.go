package deadletter_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// deferAll defers every dead letter, as another tool may.
func (w *world) deferAll() {
	w.t.Helper()
	c := w.connect()
	defer func() { _ = c.Close() }()
	session, err := c.NewSession(w.t.Context(), nil)
	require.NoError(w.t, err)
	r, err := session.NewReceiver(w.t.Context(), dead, &amqp.ReceiverOptions{Credit: 10, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
	require.NoError(w.t, err)
	for range w.count(dead).Active {
		m, err := r.Receive(w.t.Context(), nil)
		require.NoError(w.t, err)
		require.NoError(w.t, r.ModifyMessage(w.t.Context(), m, &amqp.ModifyMessageOptions{UndeliverableHere: true}))
	}
}

func TestDeferredMessagesAreReachedByTheirNumbers(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for _, id := range []string{"a", "b", "c", "d"} {
			w.bury("X", message(id, `{"a":1}`))
		}
		w.deferAll()
		front := w.bury("X", message("front", `{"a":1}`))
		require.Equal(t, deadletter.NoticeDeferred, deadletter.Notices(w.list(deadletter.Filter{})[0].DeadLetter, w.settings, time.Now())[0].Kind)

		began := time.Now()
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), 1)[0].Result)
		require.Less(t, time.Since(began), 30*time.Second, "nobody waits for a lock")
		require.Equal(t, deadletter.Refused, w.act(command(deadletter.Discard), 2)[0].Result)
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), 2)[0].Result, "the lock was released")

		_, steps, _ := w.plan(deadletter.Planning{})
		require.Len(t, steps, 3)
		require.Equal(t, map[deadletter.Result]int{deadletter.Applied: 3}, w.applyPlan(application(steps)).Counts)
		require.Zero(t, w.count(dead).Total())
		require.Equal(t, 1, w.mem.Creations("front"), "%d", front)
	})
}

func TestADeferredMessageThatSomebodyElseHoldsIsWaitedFor(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("a", `{"a":1}`))
		w.deferAll()
		_, err := w.broker().LockDeferred(t.Context(), n)
		require.NoError(t, err)
		_, err = w.broker().LockDeferred(t.Context(), n)
		require.ErrorIs(t, err, deadletter.ErrLockLost)
		w.patience = 20 * time.Second
		require.Equal(t, deadletter.Locked, w.act(command(deadletter.Reprocess), n)[0].Result)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = w.review.Act(ctx, command(deadletter.Reprocess), n)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.patience = 2 * time.Minute
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result, "the lock of the other one ends")
	})
}
