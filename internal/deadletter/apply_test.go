package deadletter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// plan writes a plan and reads it back, as a person does who applies it later.
func (w *world) plan(p deadletter.Planning) (deadletter.PlanHeader, []deadletter.PlanStep, deadletter.PlanSummary) {
	w.t.Helper()
	var b bytes.Buffer
	plan, s, err := w.review.Plan(w.t.Context(), deadletter.PlanHeader{ID: "p1", CreatedAt: time.Now(), CreatedBy: "ann"}, p)
	require.NoError(w.t, err)
	require.NoError(w.t, plan.Write(&b))
	plan, err = deadletter.ReadPlan(&b)
	require.NoError(w.t, err)
	return plan.PlanHeader, plan.Steps, s
}

func application(steps []deadletter.PlanStep) deadletter.Application {
	return deadletter.Application{Command: deadletter.Command{Actor: "ann", Why: "ticket 7", Plan: "p1"}, Steps: steps}
}

func (w *world) applyPlan(a deadletter.Application) deadletter.Summary {
	w.t.Helper()
	s, err := w.review.Apply(w.t.Context(), a)
	require.NoError(w.t, err)
	return s
}

// mixed buries twelve messages of four kinds.
func (w *world) mixed() {
	for i := range 3 {
		w.apply(fmt.Sprint("applied", i), `{"a":1}`)
		w.apply(fmt.Sprint("taken", i), `{"a":1}`)
		w.bury("MaxDeliveryCountExceeded", message(fmt.Sprint("applied", i), `{"a":1}`))
		w.bury("ContentConflict", message(fmt.Sprint("taken", i), `{"a":2}`))
		w.bury("MaxDeliveryCountExceeded", message(fmt.Sprint("never", i), `{"a":3}`))
		w.bury("NotJSON", message(fmt.Sprint("broken", i), `no`))
	}
}

func TestAPlanSaysWhatWouldBeDoneAndDoesNothing(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.mixed()
		before := w.count(dead)
		_, steps, s := w.plan(deadletter.Planning{})
		require.Len(t, steps, 6)
		require.Equal(t, deadletter.PlanSummary{Seen: 12, Steps: 6, Counts: []deadletter.PlanCount{
			{Verdict: deadletter.AlreadyApplied, Action: deadletter.Discard, Count: 3},
			{Verdict: deadletter.Conflict, LeftOut: "a person must decide", Count: 3},
			{Verdict: deadletter.NeverApplied, Action: deadletter.Reprocess, Count: 3},
			{Verdict: deadletter.Unreadable, LeftOut: "a person must decide", Count: 3},
		}}, s)
		require.Equal(t, before, w.count(dead))
		require.Empty(t, w.ledger.entries)
	})
}

func TestAPlanForOneActionLeavesOutWhatWouldBeRefused(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.mixed()
		count := func(p deadletter.Planning) map[string]int {
			_, steps, s := w.plan(p)
			require.Len(t, steps, s.Steps)
			got := map[string]int{}
			for _, c := range s.Counts {
				got[string(c.Verdict)+" "+c.LeftOut] += c.Count
			}
			return got
		}
		require.Equal(t, map[string]int{"never-applied ": 3, "already-applied the action would be refused": 3, "conflict the action would be refused": 3, "unreadable the action would be refused": 3},
			count(deadletter.Planning{Action: deadletter.Resubmit}))
		warned := "the action carries a warning that was not acknowledged"
		discards := deadletter.Planning{Action: deadletter.Discard, Filter: deadletter.Filter{Kinds: []deadletter.Kind{deadletter.Conflict}}}
		require.Equal(t, map[string]int{"conflict " + warned: 3}, count(discards))
		discards.Choice.Acknowledged = true
		require.Equal(t, map[string]int{"conflict ": 3}, count(discards))
		require.Equal(t, map[string]int{"already-applied ": 1, "already-applied the plan is as long as it may be": 2, "never-applied ": 1, "never-applied the plan is as long as it may be": 2,
			"conflict a person must decide": 3, "unreadable a person must decide": 3}, count(deadletter.Planning{Most: 2}))
	})
}

func TestApplyDoesWhatThePlanSaysAndASecondTimeNothing(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.mixed()
		_, steps, _ := w.plan(deadletter.Planning{})
		w.bury("MaxDeliveryCountExceeded", message("later", `{"a":1}`))
		var last deadletter.Summary
		a := application(steps)
		a.Progress = func(p deadletter.Summary) { last = p }
		s := w.applyPlan(a)
		require.Equal(t, map[deadletter.Result]int{deadletter.Discarded: 3, deadletter.Applied: 3}, s.Counts)
		require.Equal(t, 6, s.Settled())
		require.Equal(t, deadletter.Summary{Steps: 6, Counts: s.Counts}, last)
		require.Equal(t, 7, w.count(dead).Active, "conflicts, unreadable ones and what came later")
		require.Len(t, w.ledger.entries, 12)
		for _, e := range w.ledger.entries {
			require.Equal(t, []string{"p1", "ann", "ticket 7"}, []string{e.Plan, e.Actor, e.Why})
		}
		s = w.applyPlan(application(steps))
		require.Equal(t, map[deadletter.Result]int{deadletter.Absent: 6}, s.Counts)
		require.Len(t, w.ledger.entries, 12)
	})
}

func TestAStepWhoseTruthHasChangedIsSkipped(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.mixed()
		_, steps, _ := w.plan(deadletter.Planning{})
		w.apply("never0", `{"a":99}`)
		w.apply("never1", `{"a":3}`)
		var outcomes []deadletter.Outcome
		a := application(steps)
		a.Outcome = func(o deadletter.Outcome) { outcomes = append(outcomes, o) }
		var dryRun []deadletter.Outcome
		require.NoError(t, w.review.DryRun(t.Context(), a, func(o deadletter.Outcome) { dryRun = append(dryRun, o) }))
		s := w.applyPlan(a)
		require.Equal(t, map[deadletter.Result]int{deadletter.Discarded: 3, deadletter.Applied: 1, deadletter.Duplicate: 1, deadletter.Skipped: 1}, s.Counts,
			"one was applied otherwise, and one as it should be, which leaves only the dead letter to remove")
		would := map[deadletter.Result]int{}
		for _, o := range dryRun {
			would[o.Result]++
		}
		require.Equal(t, map[deadletter.Result]int{deadletter.WouldAct: 5, deadletter.Skipped: 1}, would)
		require.Zero(t, s.Failed())
	})
}

func TestAQueueThatWasMadeAgainIsNotTakenForTheOldOne(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("new", `{"a":1}`))
		s := w.applyPlan(application([]deadletter.PlanStep{{Sequence: n, Action: deadletter.Reprocess, Verdict: deadletter.NeverApplied, MessageID: "old", EnqueuedAt: noon}}))
		require.Equal(t, map[deadletter.Result]int{deadletter.Skipped: 1}, s.Counts)
		require.Zero(t, w.mem.Len())
	})
}

func (w *world) many(n int, body func(int) string) {
	w.t.Helper()
	for i := range n {
		_, err := w.SendEncoded("orders", encode(w.t, message(fmt.Sprint("m", i), body(i))))
		require.NoError(w.t, err)
	}
	w.buryAll("X")
}

func plain(int) string { return `{"a":1}` }

func TestTheRateAndTheCanaryAreKept(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.many(130, plain)
		_, steps, _ := w.plan(deadletter.Planning{})
		var times []time.Time
		a := application(steps)
		a.Pace = deadletter.Pace{Rate: 10, Canary: []int{1, 5, 20, 100}}
		a.Outcome = func(deadletter.Outcome) { times = append(times, time.Now()) }
		begun := time.Now()
		s := w.applyPlan(a)
		require.Equal(t, map[deadletter.Result]int{deadletter.Applied: 130}, s.Counts)
		require.InDelta(t, 12.9, time.Since(begun).Seconds(), 1)
		for i := 10; i < len(times); i++ {
			require.GreaterOrEqual(t, times[i].Sub(times[i-10]), 900*time.Millisecond)
		}
	})
}

func TestTheCanaryShrinksAndStopsWhenSomethingFails(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.many(200, func(i int) string {
			if i >= 6 {
				return `{"Reject":"for the test"}`
			}
			return `{"a":1}`
		})
		_, steps, _ := w.plan(deadletter.Planning{})
		a := application(steps)
		a.Pace = deadletter.Pace{MaxFailures: 30}
		s := w.applyPlan(a)
		require.Equal(t, "30 failed", s.Stopped)
		require.Equal(t, map[deadletter.Result]int{deadletter.Applied: 6, deadletter.Rejected: 30}, s.Counts,
			"groups of 1 and 5 are clean, one of 20 is not, and from there on every group is of one")
		require.Equal(t, 194, w.count(dead).Active)
	})
}

func TestResubmittedMessagesThatComeBackStopTheRest(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.many(60, plain)
		_, steps, _ := w.plan(deadletter.Planning{Action: deadletter.Resubmit})
		a := application(steps)
		a.Pace = deadletter.Pace{MaxFailures: 5, Rate: 5}
		back := make(chan struct{})
		stop := make(chan struct{})
		go func() {
			defer close(back)
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
					w.buryAll("AgainAndAgain")
				}
			}
		}()
		s := w.applyPlan(a)
		close(stop)
		<-back
		require.Contains(t, s.Stopped, "came back")
		require.Less(t, s.Counts[deadletter.Resubmitted], 30)
	})
}

func TestApplyPausesWhileTheStoreIsThrottledAndThenGoesOn(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.many(100, plain)
		_, steps, _ := w.plan(deadletter.Planning{})
		var paused string
		a := application(steps)
		a.Progress = func(p deadletter.Summary) {
			if p.Settled() == 40 {
				w.store.Down(&worker.UnavailableError{RetryAfter: 7 * time.Second, Cause: errors.New("429")})
				time.AfterFunc(30*time.Minute, w.store.Up)
			}
			if p.Paused != "" {
				paused = p.Paused
			}
		}
		begun := time.Now()
		s := w.applyPlan(a)
		require.Equal(t, map[deadletter.Result]int{deadletter.Applied: 100}, s.Counts)
		require.Contains(t, paused, "the store cannot be used now")
		require.Greater(t, time.Since(begun), 30*time.Minute)
		require.Equal(t, 100, w.mem.Len())
		require.Zero(t, w.history.Count(func(e history.Event) bool { return e.Op == history.LockExpired }))
	})
}

func TestAnInterruptedApplicationGivesEverythingBackAndGoesOnLater(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.many(100, plain)
		_, steps, _ := w.plan(deadletter.Planning{})
		ctx, cancel := context.WithCancel(t.Context())
		a := application(steps)
		a.Pace = deadletter.Pace{Concurrency: 1}
		a.Outcome = func(deadletter.Outcome) {
			if w.mem.Len() == 50 {
				cancel()
			}
		}
		s, err := w.review.Apply(ctx, a)
		require.NoError(t, err)
		require.Equal(t, "it was interrupted", s.Stopped)
		require.Equal(t, map[deadletter.Result]int{deadletter.Applied: 50}, s.Counts)
		require.Equal(t, servicebus.Counts{Active: 50, Bytes: w.count(dead).Bytes}, w.count(dead))
		s = w.applyPlan(application(steps))
		require.Equal(t, map[deadletter.Result]int{deadletter.Applied: 50, deadletter.Absent: 50}, s.Counts)
		require.Equal(t, 100, w.mem.Len())
	})
}

func TestAPurgeTakesOnlyWhatWasSelectedAndCanBeCutOff(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for i := range 40 {
			w.bury([]any{"BodyNotObject", "Other"}[i%2], message(fmt.Sprint("old", i), `[]`))
		}
		time.Sleep(7 * 24 * time.Hour)
		_, steps, _ := w.plan(deadletter.Planning{
			Action: deadletter.Discard, Choice: deadletter.Choice{Acknowledged: true},
			Filter: deadletter.Filter{Reasons: []string{"BodyNotObject"}, Before: time.Now().Add(-7*24*time.Hour + time.Second)},
		})
		require.Len(t, steps, 20)
		w.bury("BodyNotObject", message("new", `[]`))
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		a := application(steps)
		a.Command.Choice.Acknowledged, a.Pace.Concurrency = true, 1
		a.Outcome = func(deadletter.Outcome) {
			if n++; n == 10 {
				w.bury("BodyNotObject", message("newer", `[]`))
				cancel()
			}
		}
		s, err := w.review.Apply(ctx, a)
		require.NoError(t, err)
		require.Equal(t, map[deadletter.Result]int{deadletter.Discarded: 10}, s.Counts)
		s = w.applyPlan(a)
		require.Equal(t, map[deadletter.Result]int{deadletter.Discarded: 10, deadletter.Absent: 10}, s.Counts)
		left := map[string]int{}
		for _, l := range w.messages(dead) {
			left[l.Reason()]++
		}
		require.Equal(t, map[string]int{"Other": 20, "BodyNotObject": 2}, left)
	})
}

func TestALostConnectionIsOutlived(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.many(100, plain)
		_, steps, _ := w.plan(deadletter.Planning{})
		a := application(steps)
		n := 0
		a.Outcome = func(deadletter.Outcome) {
			if n++; n%20 == 0 {
				w.CloseConnections("amqp:connection:forced")
			}
		}
		s := w.applyPlan(a)
		require.Equal(t, 100, s.Counts[deadletter.Applied]+s.Counts[deadletter.Duplicate], "%v", s.Counts)
		require.Zero(t, w.count(dead).Total())
		for i := range 100 {
			require.Equal(t, 1, w.mem.Creations(fmt.Sprint("m", i)))
		}
	})
}

func TestOfSeveralVersionsTheFirstIsTheOneThatStands(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for i := range 20 {
			for version := 1; version <= 3; version++ {
				w.bury("Timeout", message(fmt.Sprint("m", i), fmt.Sprintf(`{"version":%d}`, version)))
			}
		}
		_, steps, _ := w.plan(deadletter.Planning{})
		require.Len(t, steps, 60)
		// The first versions meet a store that is slow or away, and the others could overtake them.
		w.store.OnCommit(func(n int, c worker.Commit) *storetest.Fault {
			switch {
			case !bytes.Contains(c.Documents[0].Content, []byte(`"version":1`)):
				return nil
			case n <= 20:
				return &storetest.Fault{Err: &worker.UnavailableError{Cause: errors.New("throttled")}}
			}
			return &storetest.Fault{Before: func(context.Context) { time.Sleep(time.Second) }}
		})
		a := application(steps)
		a.Pace = deadletter.Pace{Canary: []int{60}, Concurrency: 16}
		s := w.applyPlan(a)
		require.Equal(t, map[deadletter.Result]int{deadletter.Applied: 20, deadletter.Skipped: 40}, s.Counts)
		for _, l := range w.messages(dead) {
			require.NotContains(t, string(l.Message.Data[0]), `"version":1`)
		}
	})
}
