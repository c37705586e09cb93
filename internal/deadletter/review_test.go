package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func TestEveryDeadLetterGetsItsVerdictAndIsNotTouched(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.apply("applied", `{"amount":40}`)
		w.apply("taken", `{"amount":40,"note":"a"}`)
		w.mem.Plant("foreign", worker.Record{Type: "order", Content: []byte(`{}`)})
		w.bury("MaxDeliveryCountExceeded", message("applied", `{"amount":4e1}`))
		w.bury("MaxDeliveryCountExceeded", message("never", `{"amount":1}`))
		w.bury("ContentConflict", message("taken", `{"amount":50,"extra":true}`))
		w.bury("NotJSON", message("broken", `not json`))
		w.bury("MissingMessageId", message("", `{}`))
		w.bury("StoredHashMissing", message("foreign", `{}`))
		before := w.count(dead)
		got := map[string]deadletter.Kind{}
		items := w.list(deadletter.Filter{})
		for _, item := range items {
			id, _ := item.DeadLetter.MessageID()
			got[id] = item.Verdict.Kind
		}
		require.Equal(t, map[string]deadletter.Kind{
			"applied": deadletter.AlreadyApplied, "never": deadletter.NeverApplied, "taken": deadletter.Conflict,
			"broken": deadletter.Unreadable, "": deadletter.Unreadable, "foreign": deadletter.HashMissing,
		}, got)
		require.Equal(t, before, w.count(dead))
		require.Equal(t, []deadletter.Change{
			{Path: "/amount", Kind: "changed", Stored: "40", Arrived: "50"},
			{Path: "/extra", Kind: "added", Arrived: "true"},
			{Path: "/note", Kind: "removed", Stored: `"a"`},
		}, items[2].Changes())
		require.Empty(t, items[0].Changes())
		require.Empty(t, w.ledger.entries)
	})
}

func TestAListingReadsToTheEndAndTellsEqualMessageIdsApart(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		const n = 250
		for range n {
			_, err := w.SendEncoded("orders", encode(t, message("same", `{"a":1}`)))
			require.NoError(t, err)
		}
		w.buryAll("X")
		seen := map[int64]bool{}
		for _, item := range w.list(deadletter.Filter{}) {
			seen[item.DeadLetter.Sequence] = true
		}
		require.Len(t, seen, n)
	})
}

func TestAListingStopsAtAnErrorAndSaysSo(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for i := range 150 {
			_, err := w.SendEncoded("orders", encode(t, message(fmt.Sprint(i), `{}`)))
			require.NoError(t, err)
		}
		w.buryAll("X")
		w.faults.Add(fault.On(history.Peek).Nth(2).Always().Before(fault.Reply(401, 0)))
		n := 0
		var failed error
		for item, err := range w.review.List(t.Context(), deadletter.Filter{}) {
			if failed = err; err == nil {
				require.NotNil(t, item.DeadLetter)
				n++
			}
		}
		require.Error(t, failed)
		require.Equal(t, 100, n)
	})
}

func TestAListingThatIsCutOffDoesNotLookWhole(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.many(1000, plain)
		for _, at := range []int{1, 50, 100, 150, 999} {
			ctx, cancel := context.WithCancel(t.Context())
			n, failed := 0, error(nil)
			for _, err := range w.review.List(ctx, deadletter.Filter{}) {
				if failed = err; err == nil {
					n++
				}
				if n == at {
					cancel()
				}
			}
			cancel()
			require.True(t, n == 1000 || errors.Is(failed, context.Canceled), "cut at %d, %d were listed: %v", at, n, failed)
		}
	})
}

func TestAListingMayBeLeftAtAnyPoint(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for i := range 150 {
			_, err := w.SendEncoded("orders", encode(t, message(fmt.Sprint(i), `{}`)))
			require.NoError(t, err)
		}
		w.buryAll("X")
		for range w.review.List(t.Context(), deadletter.Filter{}) {
			break
		}
		_, err := w.review.Find(t.Context(), 1)
		require.NoError(t, err)
	})
}

func TestFilters(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.apply("a", `{"n":1}`)
		w.bury("One", message("a", `{"n":1}`))
		time.Sleep(time.Hour)
		middle := time.Now()
		w.bury("Two", message("b", `{"n":2}`))
		last := w.bury("Two", message("c", `{"n":3}`))
		for name, tt := range map[string]struct {
			f    deadletter.Filter
			want string
		}{
			"all": {deadletter.Filter{}, "a b c"}, "by verdict": {deadletter.Filter{Kinds: []deadletter.Kind{deadletter.NeverApplied}}, "b c"},
			"by reason": {deadletter.Filter{Reasons: []string{"One", "Three"}}, "a"}, "by id": {deadletter.Filter{MessageID: "b"}, "b"},
			"before": {deadletter.Filter{Before: middle}, "a"}, "after": {deadletter.Filter{After: middle}, "b c"},
			"from a number": {deadletter.Filter{FirstSequence: last}, "c"}, "to a number": {deadletter.Filter{LastSequence: last - 1}, "a b"},
			"both": {deadletter.Filter{Reasons: []string{"Two"}, Kinds: []deadletter.Kind{deadletter.AlreadyApplied}}, ""},
		} {
			var got []string
			for _, item := range w.list(tt.f) {
				id, _ := item.DeadLetter.MessageID()
				got = append(got, id)
			}
			require.Equal(t, tt.want, strings.Join(got, " "), name)
		}
	})
}

func TestMessagesThatTheSDKPanicsAtAreListedAndMayBeReprocessed(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		var poison []int64
		for i, reason := range []any{int32(1), true, nil} {
			poison = append(poison, w.bury(reason, message(fmt.Sprintf("pn-%d", i+1), `{"orderId":1}`)))
		}
		fine := w.bury("X", message("ok-1", `{"orderId":2}`))
		items := w.list(deadletter.Filter{})
		require.Len(t, items, 4)
		require.Equal(t, "int(1)", items[0].DeadLetter.Reason())
		require.Equal(t, "true", items[1].DeadLetter.Reason())
		require.Equal(t, "", items[2].DeadLetter.Reason())
		for _, out := range w.act(command(deadletter.Reprocess), append(poison, fine)...) {
			require.Equal(t, deadletter.Applied, out.Result, out.Detail)
		}
		require.Zero(t, w.count(dead).Total())
		require.Equal(t, 4, w.mem.Len())
	})
}

func TestFindSaysWhenAMessageIsGone(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("a", `{}`))
		item, err := w.review.Find(t.Context(), n)
		require.NoError(t, err)
		require.Equal(t, n, item.DeadLetter.Sequence)
		for _, absent := range []int64{n - 1, n + 1} {
			_, err = w.review.Find(t.Context(), absent)
			require.ErrorIs(t, err, deadletter.ErrAbsent)
		}
	})
}

func TestWhenTheStoreIsDownNobodyKnows(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.bury("X", message("a", `{}`))
		w.bury("X", message("b", `no`))
		down := deadletter.NewReviewer(nil, downPipeline{Pipeline: w.pipeline}, w.ledger, w.settings)
		items := w.list(deadletter.Filter{})
		require.Equal(t, deadletter.Undecided, down.Examine(t.Context(), items[0].DeadLetter).Verdict.Kind)
		require.True(t, down.Examine(t.Context(), items[0].DeadLetter).Verdict.Retry)
		require.Equal(t, deadletter.Unreadable, down.Examine(t.Context(), items[1].DeadLetter).Verdict.Kind, "that takes no store")
	})
}

func TestAMessageOlderThanTheMemoryIsWarnedAbout(t *testing.T) {
	memory := func(s *deadletter.Settings) { s.KeyMemory = 30 * time.Minute }
	inBubble(t, setup{settings: memory}, func(t *testing.T, w *world) {
		w.apply("m1", `{"a":1}`)
		n := w.bury("MaxDeliveryCountExceeded", message("m1", `{"a":1}`))
		require.Equal(t, deadletter.AlreadyApplied, w.list(deadletter.Filter{})[0].Verdict.Kind)
		time.Sleep(31 * time.Minute)
		w.mem.Remove("m1")
		item := w.list(deadletter.Filter{})[0]
		require.Equal(t, deadletter.KeyForgotten, item.Verdict.Kind)
		for _, a := range []deadletter.Action{deadletter.Reprocess, deadletter.Resubmit} {
			out := w.act(command(a), n)
			require.Equal(t, deadletter.Refused, out[0].Result)
			require.Contains(t, out[0].Detail, "second time")
		}
		require.Equal(t, 0, w.mem.Len())
		o := command(deadletter.Reprocess)
		o.Choice.Acknowledged = true
		require.Equal(t, deadletter.Applied, w.act(o, n)[0].Result)
	})
}

func TestAHugeBodyIsShownInPart(t *testing.T) {
	inBubble(t, setup{broker: func(o *servicebus.Options) { o.MaxMessageSize = 8 << 20 }}, func(t *testing.T, w *world) {
		w.bury("X", message("a", strings.Repeat("x", 4<<20)))
		item := w.list(deadletter.Filter{})[0]
		b := deadletter.BodyOf(item.DeadLetter.Message, 4096)
		require.Equal(t, 4<<20, b.Bytes)
		require.Len(t, b.Text, 4096)
		require.True(t, b.Cut)
	})
}

var errTest = errors.New("planned")

func TestAnUnreadableMessageTellsWhetherItsOrderStands(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.apply("1", `{"n":1}`)
		w.bury("NotJSON", message("1", `{"n":`))
		w.bury("NotJSON", message("2", `{"n":`))
		items := w.list(deadletter.Filter{})
		require.Len(t, items, 2)
		for _, i := range items {
			require.Equal(t, deadletter.Unreadable, i.Verdict.Kind)
			require.Empty(t, i.Changes(), "nothing of it can be compared")
		}
		require.Equal(t, "1", items[0].Key)
		require.Contains(t, items[0].Verdict.Detail, "a document is stored")
		require.False(t, items[0].Verdict.CommittedAt.IsZero())
		require.Contains(t, items[1].Verdict.Detail, "Nothing is stored under its key")

		item := deadletter.NewReviewer(nil, downPipeline{Pipeline: w.pipeline}, w.ledger, w.settings).Examine(t.Context(), items[0].DeadLetter)
		require.Equal(t, deadletter.Unreadable, item.Verdict.Kind, "no store can change that")
		require.Contains(t, item.Verdict.Detail, "is not known")
	})
}
