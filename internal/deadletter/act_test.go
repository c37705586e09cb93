package deadletter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

func TestReprocessAppliesAndThenRemoves(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("MaxDeliveryCountExceeded", message("m1", `{"a":1}`))
		out := w.act(command(deadletter.Reprocess), n)
		require.Equal(t, []deadletter.Outcome{{Sequence: n, MessageID: "m1", Action: deadletter.Reprocess, Verdict: deadletter.NeverApplied, Result: deadletter.Applied}}, out)
		require.Equal(t, 1, w.mem.Creations("m1"))
		require.Zero(t, w.count("orders").Total(), "nothing was sent, and the dead letter is gone")
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Done}, w.ledger.states(n))
		e := w.ledger.entries[1]
		require.Equal(t, "m1", e.DocumentID)
		require.Equal(t, "applied", e.Result)
		require.Equal(t, deadletter.NeverApplied, e.Verdict)
		require.NotEmpty(t, e.ArrivedHash)
		require.Equal(t, "MaxDeliveryCountExceeded", e.Reason)
		again := w.act(command(deadletter.Reprocess), n)
		require.Equal(t, deadletter.Absent, again[0].Result)
	})
}

func TestReprocessOfAnAppliedMessageOnlyRemoves(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.apply("m1", `{"a":1}`)
		n := w.bury("X", message("m1", `{"a":1.0}`))
		require.Equal(t, deadletter.Duplicate, w.act(command(deadletter.Reprocess), n)[0].Result)
		require.Equal(t, 1, w.mem.Creations("m1"))
		require.Zero(t, w.count(dead).Total())
	})
}

func TestWhatTheWorkerWouldNotApplyStays(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.apply("taken", `{"a":1}`)
		taken := w.bury("ContentConflict", message("taken", `{"a":2}`))
		broken := w.bury("NotJSON", message("broken", `no`))
		rejected := w.bury("TestRejects", message("rejected", `{"Reject":"for the test"}`))
		for _, out := range w.act(command(deadletter.Reprocess), taken, broken) {
			require.Equal(t, deadletter.Refused, out.Result)
			require.NotEmpty(t, out.Detail)
		}
		out := w.act(command(deadletter.Reprocess), rejected)[0]
		require.Equal(t, deadletter.Rejected, out.Result)
		require.Equal(t, "TestRejects: for the test", out.Detail)
		require.Equal(t, servicebus.Counts{Active: 3, Bytes: w.count(dead).Bytes}, w.count(dead), "each is free for others again")
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Failed}, w.ledger.states(rejected))
		require.Empty(t, w.ledger.states(taken), "what is refused was never begun")
		require.Equal(t, 1, w.mem.Len())
	})
}

func TestDiscardRecordsFirst(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.apply("m1", `{"a":1}`)
		n := w.bury("X", message("m1", `{"a":1}`))
		w.ledger.fail = func(deadletter.Entry) error { return errTest }
		out := w.act(command(deadletter.Discard), n)[0]
		require.Equal(t, deadletter.Broken, out.Result)
		require.Equal(t, 1, w.count(dead).Active, "what cannot be recorded is not done")
		w.ledger.fail = nil
		require.Equal(t, deadletter.Discarded, w.act(command(deadletter.Discard), n)[0].Result)
		require.Zero(t, w.count(dead).Total())
	})
}

func TestDiscardOfWhatWasNotAppliedNeedsAnAcknowledgement(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		out := w.act(command(deadletter.Discard), n)[0]
		require.Equal(t, deadletter.Refused, out.Result)
		require.Contains(t, out.Detail, "lost for good")
		o := command(deadletter.Discard)
		o.Choice.Acknowledged = true
		require.Equal(t, deadletter.Discarded, w.act(o, n)[0].Result)
		require.Zero(t, w.mem.Len())
	})
}

func TestNothingIsDoneWithoutALedger(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		review := deadletter.NewReviewer(w.broker(), w.pipeline, nil, w.settings)
		out, err := review.Act(t.Context(), command(deadletter.Reprocess), n)
		require.NoError(t, err)
		require.Equal(t, deadletter.Broken, out.Result)
		require.Zero(t, w.mem.Len())
	})
}

func TestWhatChangedSinceItWasSeenIsSkipped(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		w.apply("m1", `{"a":2}`)
		o := command(deadletter.Reprocess)
		o.Expect = deadletter.NeverApplied
		out := w.act(o, n)[0]
		require.Equal(t, deadletter.Skipped, out.Result)
		require.Equal(t, "It was never-applied when this was decided and is conflict now.", out.Detail)
		o = command(deadletter.Discard)
		o.Expect = deadletter.AlreadyApplied
		require.Equal(t, deadletter.Skipped, w.act(o, n)[0].Result)
		require.Equal(t, 1, w.count(dead).Active)
	})
}

// resubmittable has every field that a message can have.
func resubmittable(id string, body func(*amqp.Message)) *amqp.Message {
	m := full()
	m.Header.DeliveryCount, m.DeliveryAnnotations = 0, nil
	m.Annotations = amqp.Annotations{"own": int32(1), "x-opt-partition-key": "s1"}
	m.Properties.MessageID, m.Properties.AbsoluteExpiryTime, m.Properties.CreationTime = id, nil, nil
	m.ApplicationProperties = map[string]any{"tenant": "t1", "a": nil, "b": "", "c": "x", "int": int32(1), "bool": true}
	m.Data = nil
	body(m)
	return m
}

func TestResubmitSendsTheSameMessage(t *testing.T) {
	bodies := map[string]func(*amqp.Message){
		"r1": func(m *amqp.Message) { m.Data = [][]byte{[]byte(`{"a":1}`)} },
		"r2": func(m *amqp.Message) { m.Data = [][]byte{[]byte("\ufeff{\"a\":1}")} },
		"r3": func(m *amqp.Message) { m.Value = `{"a":1}` },
		"r4": func(m *amqp.Message) { m.Data = [][]byte{[]byte(`{"a"`), []byte(`:1}`)} },
		"r5": func(m *amqp.Message) { m.Value = []byte(`{"a":1}`) },
	}
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		var sequences []int64
		for id, body := range bodies {
			sequences = append(sequences, w.bury("BodyNotObject", resubmittable(id, body)))
		}
		for _, out := range w.act(command(deadletter.Resubmit), sequences...) {
			require.Equal(t, deadletter.Resubmitted, out.Result, out.Detail)
			require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Sent, deadletter.Done}, w.ledger.states(out.Sequence))
		}
		require.Zero(t, w.count(dead).Total())
		got := w.messages("orders")
		require.Len(t, got, len(bodies))
		for _, l := range got {
			m := l.Message
			id, _ := l.MessageID()
			want := deadletter.Parse(encode(t, resubmittable(id, bodies[id]))).Message
			at := m.ApplicationProperties[deadletter.PropertyResubmitAt]
			want.ApplicationProperties[deadletter.PropertyResubmitCount], want.ApplicationProperties[deadletter.PropertyResubmitAt] = int32(1), at
			require.IsType(t, time.Time{}, at)
			require.Equal(t, want.ApplicationProperties, m.ApplicationProperties)
			require.Equal(t, want.Properties, m.Properties)
			require.Equal(t, []any{want.Data, want.Value, want.Sequence, want.Footer}, []any{m.Data, m.Value, m.Sequence, m.Footer})
			require.Equal(t, want.Header.TTL, m.Header.TTL)
			require.Equal(t, "s1", m.Annotations["x-opt-partition-key"])
			require.Equal(t, int32(1), m.Annotations["own"])
		}
	})
}

func TestResubmitIsRefusedWhileDuplicateDetectionRemembers(t *testing.T) {
	detect := func(q *servicebus.Queue) {
		q.RequiresDuplicateDetection, q.DuplicateDetectionHistoryTimeWindow = true, 10*time.Minute
	}
	inBubble(t, setup{queue: detect, settings: func(s *deadletter.Settings) { s.Duplicates = tenMin }}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		time.Sleep(5 * time.Minute)
		out := w.act(command(deadletter.Resubmit), n)[0]
		require.Equal(t, deadletter.Refused, out.Result)
		require.Contains(t, out.Detail, "Duplicate detection remembers")
		require.Equal(t, 1, w.count(dead).Active)
		time.Sleep(5*time.Minute + time.Second)
		require.Equal(t, deadletter.Resubmitted, w.act(command(deadletter.Resubmit), n)[0].Result)
		require.Equal(t, 1, w.count("orders").Active, "the broker has taken it")
	})
}

func TestResubmitOfAnExpiredMessageNeedsANewTimeToLive(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		m := message("m1", `{"a":1}`)
		m.Header = &amqp.MessageHeader{TTL: 2 * time.Minute}
		n, err := w.SendEncoded("orders", encode(t, m))
		require.NoError(t, err)
		time.Sleep(24 * time.Hour)
		require.Equal(t, "TTLExpiredException", w.list(deadletter.Filter{})[0].DeadLetter.Reason())
		require.Equal(t, deadletter.Refused, w.act(command(deadletter.Resubmit), n)[0].Result)
		o := command(deadletter.Resubmit)
		o.Choice.NewTTL = time.Hour
		require.Equal(t, deadletter.Resubmitted, w.act(o, n)[0].Result)
		time.Sleep(30 * time.Minute)
		require.Equal(t, 1, w.count("orders").Active, "it lives its new life")
	})
}

func TestAMessageThatGrewTooLargeLosesWhatWasAdded(t *testing.T) {
	const limit = 64 << 10
	for name, tt := range map[string]struct {
		body    int
		want    deadletter.Result
		counted bool
	}{
		"there is room": {limit - 2000, deadletter.Resubmitted, true},
		"there is room without the own additions": {limit - 90, deadletter.Resubmitted, false},
		"there is no room":                        {limit - 30, deadletter.Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{broker: func(o *servicebus.Options) { o.MaxMessageSize = limit }}, func(t *testing.T, w *world) {
				n := w.bury(strings.Repeat("r", 4096), message("m1", `{"a":"`+strings.Repeat("x", tt.body-8)+`"}`))
				out := w.act(command(deadletter.Resubmit), n)[0]
				require.Equal(t, tt.want, out.Result, out.Detail)
				for _, m := range w.messages("orders") {
					_, counted := m.Message.ApplicationProperties[deadletter.PropertyResubmitCount]
					require.Equal(t, tt.counted, counted)
				}
				if tt.want == deadletter.Refused {
					require.Contains(t, out.Detail, "Reprocess it in place")
					require.Equal(t, 1, w.count(dead).Active)
					require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result)
				}
			})
		})
	}
}

func TestASendWithoutAnAnswerRemovesNothing(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		w.faults.Add(fault.On(history.Send).After(fault.DropReply()))
		out := w.act(command(deadletter.Resubmit), n)[0]
		require.Equal(t, deadletter.Broken, out.Result)
		require.Equal(t, 1, w.count("orders").Active, "the copy was taken")
		require.Equal(t, 1, w.count(dead).Total())
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Failed}, w.ledger.states(n))
	})
}

func TestALostAnswerToTheRemovalIsFoundOut(t *testing.T) {
	for name, rule := range map[string]*fault.Rule{
		"after the effect":  fault.On(history.Complete).After(fault.DropReply()),
		"before the effect": fault.On(history.Complete).Before(fault.DropReply()),
		"no answer":         fault.On(history.Complete).After(fault.Action{Kind: fault.Silence}),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, w *world) {
				n := w.bury("X", message("m1", `{"a":1}`))
				w.faults.Add(rule)
				require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result)
				require.Zero(t, w.count(dead).Total())
				require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Done}, w.ledger.states(n))
			})
		})
	}
}

func TestARemovalThatDoesNotWorkIsSaidToBeUndone(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		w.faults.Add(fault.On(history.Complete).Always().Before(fault.Reply(500, 0)))
		out := w.act(command(deadletter.Reprocess), n)[0]
		require.Equal(t, deadletter.Broken, out.Result)
		require.Contains(t, out.Detail, "The documents are stored, but the dead letter is still there")
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Failed}, w.ledger.states(n))
		w.faults.Clear()
		require.Equal(t, deadletter.Duplicate, w.act(command(deadletter.Reprocess), n)[0].Result, "doing it again only finishes")
	})
}

func TestAnUnfinishedResubmitIsFinishedAndNotRepeated(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		w.faults.Add(fault.On(history.Complete).Always().Before(fault.Reply(500, 0)))
		require.Equal(t, deadletter.Broken, w.act(command(deadletter.Resubmit), n)[0].Result)
		w.faults.Clear()
		out := w.act(command(deadletter.Resubmit), n)[0]
		require.Equal(t, deadletter.Resubmitted, out.Result)
		require.Contains(t, out.Detail, "was sent at")
		require.Equal(t, 1, w.count("orders").Active, "one copy")
		require.Zero(t, w.count(dead).Total())
	})
}

func TestOneOfManyIsReachedAndTheOthersLoseNothing(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		const n = 600
		for i := range n {
			_, err := w.SendEncoded("orders", encode(t, message(fmt.Sprint(i), `{"a":1}`)))
			require.NoError(t, err)
		}
		w.buryAll("X")
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), 500)[0].Result)
		require.Equal(t, servicebus.Counts{Active: n - 1, Bytes: w.count(dead).Bytes}, w.count(dead))
		left, err := w.Messages(dead)
		require.NoError(t, err)
		for _, m := range left {
			require.Zero(t, m.DeliveryCount)
			require.NotEqual(t, int64(500), m.Sequence)
		}
		require.Equal(t, 1, w.mem.Len())
	})
}

func TestAScanThatWouldLockTooMuchStops(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		for i := range 300 {
			_, err := w.SendEncoded("orders", encode(t, message(fmt.Sprint(i), `{"a":1}`)))
			require.NoError(t, err)
		}
		w.buryAll("X")
		c := command(deadletter.Reprocess)
		c.LockLimit = 100
		_, err := w.review.Act(t.Context(), c, 290)
		require.ErrorIs(t, err, deadletter.ErrLockLimit)
		require.Equal(t, 300, w.count(dead).Active)
	})
}

func TestLocksAreKeptThroughASlowStore(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		first := w.bury("X", message("a", `{"a":1}`))
		n := w.bury("X", message("b", `{"a":1}`))
		w.store.Down(&worker.UnavailableError{Cause: errors.New("503")})
		w.patience = 20 * time.Minute
		done := make(chan []deadletter.Outcome)
		go func() { done <- w.act(command(deadletter.Reprocess), n) }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, w.count(dead).Locked, "it waits for the store with everything held")
		w.store.Up()
		require.Equal(t, deadletter.Applied, (<-done)[0].Result)
		require.Zero(t, w.history.Count(func(e history.Event) bool { return e.Op == history.LockExpired }))
		require.Equal(t, 1, w.count(dead).Active)
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), first)[0].Result)
	})
}

func TestAMessageThatSomebodyElseHoldsIsWaitedForAndThenLeft(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		other := w.broker()
		held, err := other.Lock(t.Context(), 1, time.Second)
		require.NoError(t, err)
		require.Len(t, held, 1)
		require.NoError(t, other.Unlock(t.Context()))
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result, "its lock ends within the patience")

		n = w.bury("X", message("m2", `{"a":1}`))
		held, err = other.Lock(t.Context(), 1, time.Second)
		require.NoError(t, err)
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Second):
					_ = other.Renew(t.Context(), []deadletter.LockToken{held[0].Lock})
				}
			}
		}()
		out := w.act(command(deadletter.Reprocess), n)[0]
		close(stop)
		require.Equal(t, deadletter.Locked, out.Result)
		require.Equal(t, 1, w.count(dead).Total())
	})
}

func TestTwoPeopleDoNotDoItTwice(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		results := make(chan deadletter.Result, 2)
		for range 2 {
			review := w.reviewer()
			go func() {
				out, err := review.Act(t.Context(), command(deadletter.Reprocess), n)
				if err != nil {
					out.Result = deadletter.Broken
				}
				results <- out.Result
			}()
		}
		got := []deadletter.Result{<-results, <-results}
		require.ElementsMatch(t, []deadletter.Result{deadletter.Applied, deadletter.Absent}, got)
		require.Equal(t, 1, w.mem.Creations("m1"))
	})
}
