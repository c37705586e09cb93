package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

func TestAnActionWaitsForTheStoreNoLongerThanItMay(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		w.store.Down(&worker.UnavailableError{Cause: errors.New("503")})
		w.patience = 40 * time.Second
		began := time.Now()
		out := w.act(command(deadletter.Reprocess), n)
		require.Len(t, out, 1)
		require.Equal(t, deadletter.StoreDown, out[0].Result)
		require.InDelta(t, 40*time.Second, time.Since(began), float64(35*time.Second))
		require.Equal(t, 1, w.count(dead).Active, "it is free again")
	})
}

func TestAListingWaitsWhileTheStoreIsThrottled(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for i := range 30 {
			w.bury("X", message(fmt.Sprint("m", i), `{"a":1}`))
		}
		throttled := downPipeline{Pipeline: w.pipeline, until: time.Now().Add(2 * time.Second)}
		w.review = deadletter.NewReviewer(w.broker(), throttled, w.ledger, w.settings)
		for _, item := range w.list(deadletter.Filter{}) {
			require.Equal(t, deadletter.NeverApplied, item.Verdict.Kind)
		}
		throttled.until = time.Now().Add(time.Hour)
		w.review = deadletter.NewReviewer(w.broker(), throttled, w.ledger, w.settings)
		began := time.Now()
		for _, item := range w.list(deadletter.Filter{}) {
			require.Equal(t, deadletter.Undecided, item.Verdict.Kind)
		}
		require.Less(t, time.Since(began), 2*time.Minute, "a store that is down is not waited for once more for each")
	})
}

// shuffled hands out pages as a queue with partitions does.
type shuffled struct{ deadletter.Broker }

func (s shuffled) Peek(ctx context.Context, from int64, most int) ([]*deadletter.DeadLetter, error) {
	messages, err := s.Broker.Peek(ctx, from, most)
	if len(messages) > 2 {
		messages[0], messages[2] = messages[2], messages[0]
	}
	return messages, err
}

func TestPagesThatDoNotAscendAreAnErrorAndNoEnd(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for i := range 5 {
			w.bury("X", message(fmt.Sprint("m", i), `{"a":1}`))
		}
		review := deadletter.NewReviewer(shuffled{w.broker()}, w.pipeline, w.ledger, w.settings)
		var last error
		for _, err := range review.List(t.Context(), deadletter.Filter{}) {
			last = err
		}
		require.ErrorContains(t, last, "do not ascend")
	})
}

func TestALaterVersionOfAKeyIsNotReprocessedUnasked(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		var all []int64
		for i := range 3 {
			all = append(all, w.bury("X", message("multi-a", fmt.Sprintf(`{"a":%d}`, i))))
		}
		out := w.act(command(deadletter.Reprocess), all[2])[0]
		require.Equal(t, deadletter.Refused, out.Result)
		require.Contains(t, out.Detail, fmt.Sprintf("2 dead letter(s) of this key came before it, the first is %d", all[0]))
		item, err := w.review.Find(t.Context(), all[2])
		require.NoError(t, err)
		others, err := w.review.OfKey(t.Context(), item.DeadLetter, 0)
		require.NoError(t, err)
		require.Equal(t, all[:2], others)
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), all[0])[0].Result)
		o := command(deadletter.Reprocess)
		o.Choice.Acknowledged = true
		require.Equal(t, deadletter.Refused, w.act(o, all[2])[0].Result, "it is a conflict now")
	})
}

func TestWhatCannotBeArchivedIsNotRemoved(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		kept := &memoryArchive{fail: errTest}
		o := command(deadletter.Discard)
		o.Archive = kept
		require.Equal(t, deadletter.Refused, w.act(o, n)[0].Result)
		require.Empty(t, kept.calls, "what is refused is not archived")
		o.Choice.Acknowledged = true
		require.Equal(t, deadletter.Broken, w.act(o, n)[0].Result)
		require.Equal(t, []string{"keep 1"}, kept.calls[:1])
		require.Equal(t, 1, w.count(dead).Total())
	})
}

func TestWhatIsArchivedAndNotRemovedIsTakenOutAgain(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		kept := &memoryArchive{}
		o := command(deadletter.Discard)
		o.Archive, o.Choice.Acknowledged = kept, true
		w.faults.Add(fault.On(history.Complete).Always().Before(fault.Reply(500, 0)))
		require.Equal(t, deadletter.Broken, w.act(o, n)[0].Result)
		require.Equal(t, []string{"keep 1", "drop 1"}, kept.calls)
		w.faults.Clear()
		require.Equal(t, deadletter.Discarded, w.act(o, n)[0].Result)
		require.Equal(t, []string{"keep 1", "drop 1", "keep 1"}, kept.calls)
		again := w.bury("X", message("m2", `{"a":1}`))
		o.Action = deadletter.Reprocess
		require.Equal(t, deadletter.Applied, w.act(o, again)[0].Result)
		require.Len(t, kept.calls, 3, "only what is discarded is archived")
	})
}

// memoryArchive records its calls, and fails to keep when told.
type memoryArchive struct {
	calls []string
	fail  error
}

func (a *memoryArchive) Keep(l *deadletter.DeadLetter) error {
	a.calls = append(a.calls, fmt.Sprint("keep ", l.Sequence))
	return a.fail
}

func (a *memoryArchive) Drop(n int64) { a.calls = append(a.calls, fmt.Sprint("drop ", n)) }

func TestForwardedDeadLettersAreReachedWhereTheyLie(t *testing.T) {
	inBubble(t, setup{settings: func(s *deadletter.Settings) { s.Forwarded = true }}, func(t *testing.T, w *world) {
		w.send(1)
		n, err := w.Send("orders", servicebus.Message{
			Properties: &servicebus.Properties{MessageID: "f-1"}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(`{"a":1}`)},
			ApplicationProperties: servicebus.Map{{Key: "DeadLetterReason", Value: "TooLarge"}},
		})
		require.NoError(t, err)
		w.send(1)
		hint := deadletter.NewReviewer(w.broker(), w.pipeline, w.ledger, deadletter.Settings{Queue: "orders"})
		forwarded, err := hint.Forwarded(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, forwarded)

		w.review = deadletter.NewReviewer(w.forwardedBroker(), w.pipeline, w.ledger, w.settings)
		items := w.list(deadletter.Filter{})
		require.Len(t, items, 1)
		require.Equal(t, n, items[0].DeadLetter.Sequence)
		require.Equal(t, "TooLarge", items[0].DeadLetter.Reason())
		require.Equal(t, deadletter.Refused, w.act(command(deadletter.Resubmit), n)[0].Result)
		require.Equal(t, deadletter.Absent, w.act(command(deadletter.Reprocess), n-1)[0].Result, "an ordinary message is none")
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result)
		require.Equal(t, 2, w.count("orders").Active)
	})
}

func TestAPlanLeavesOutWhatCanOnlyFail(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.bury(reason.DocumentConflict, message("m1", `{"a":1}`))
		_, steps, summary := w.plan(deadletter.Planning{})
		require.Empty(t, steps)
		require.Equal(t, 1, summary.Seen)
	})
}

// nameless hides the numbers of the first messages that it locks.
type nameless struct {
	deadletter.Broker
	hide int
}

func (b *nameless) Lock(ctx context.Context, most int, wait time.Duration) ([]deadletter.LockedMessage, error) {
	locked, err := b.Broker.Lock(ctx, most, wait)
	for i := range locked {
		if b.hide > 0 {
			b.hide--
			locked[i].Sequence = 0
		}
	}
	return locked, err
}

func TestMessagesThatDoNotSayTheirNumberAreReleasedToo(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.bury("X", message("a", `{}`))
		w.bury("X", message("b", `{}`))
		n := w.bury("X", message("c", `{"a":1}`))
		w.review = deadletter.NewReviewer(&nameless{Broker: w.broker(), hide: 2}, w.pipeline, w.ledger, w.settings)
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result)
		require.Equal(t, servicebus.Counts{Active: 2, Bytes: w.count(dead).Bytes}, w.count(dead))
	})
}
