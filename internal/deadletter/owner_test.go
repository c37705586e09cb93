package deadletter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

func ofProgram(s *deadletter.Settings) { s.Program = "orderworker" }

// deadLettered buries a message with properties as a worker writes them.
func (w *world) deadLettered(id string, properties map[string]any) int64 {
	m := message(id, `{"a":1}`)
	m.ApplicationProperties = properties
	return w.bury("HandlerError", m)
}

func TestMessagesOfAnotherProgramAreLeftToIt(t *testing.T) {
	inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
		foreign := w.deadLettered("pay-4", map[string]any{worker.PropertyProgram: "shop-payments", worker.PropertyVersion: "2"})
		own := w.deadLettered("m1", map[string]any{worker.PropertyProgram: "orderworker"})
		for _, a := range []deadletter.Action{deadletter.Reprocess, deadletter.Resubmit, deadletter.Discard} {
			o := command(a)
			o.Choice = deadletter.Choice{Acknowledged: true, UnknownProgram: true}
			if a != deadletter.Discard {
				o.Choice.Program = "shop-payments"
			}
			out := w.act(o, foreign)[0]
			require.Equal(t, deadletter.Refused, out.Result)
			require.Contains(t, out.Detail, "It belongs to the program shop-payments")
			require.Contains(t, out.Detail, "shop-payments deadletter "+string(a)+" 1")
		}
		_, steps, s := w.plan(deadletter.Planning{Choice: deadletter.Choice{UnknownProgram: true}})
		require.Len(t, steps, 1, "%+v", s)
		require.Equal(t, own, steps[0].Sequence)
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), own)[0].Result)
		require.Equal(t, 1, w.mem.Len(), "nothing of the other program is stored")
		require.Equal(t, 1, w.count(dead).Total(), "and nothing of it is removed")
		item, err := w.review.Find(t.Context(), foreign)
		require.NoError(t, err)
		require.Equal(t, deadletter.OtherProgram, item.Verdict.Kind)
		require.Equal(t, deadletter.Export, item.Verdict.First())
	})
}

func TestMessagesOfAnotherProgramAreDiscardedByItsNameAlone(t *testing.T) {
	inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
		n := w.deadLettered("pay-4", map[string]any{worker.PropertyProgram: "shop-payments"})
		o := command(deadletter.Discard)
		for _, o.Choice = range []deadletter.Choice{{Acknowledged: true}, {Acknowledged: true, Program: "shop-refunds"}, {Program: "shop-payments"}} {
			require.Equal(t, deadletter.Refused, w.act(o, n)[0].Result, "%+v", o.Choice)
		}
		o.Choice = deadletter.Choice{Acknowledged: true, Program: "shop-payments"}
		require.Equal(t, deadletter.Discarded, w.act(o, n)[0].Result)
	})
}

func TestAMessageWithoutAProgram(t *testing.T) {
	for _, tt := range []struct {
		name     string
		neighbor map[string]any
		own      map[string]any
		want     deadletter.Result
	}{
		{"is this program's own where nothing speaks against it", nil, nil, deadletter.Applied},
		{"is this program's own beside others of this program", map[string]any{worker.PropertyProgram: "orderworker"}, nil, deadletter.Applied},
		{"is asked about beside one of another program", map[string]any{worker.PropertyProgram: "shop-payments"}, nil, deadletter.Refused},
		{"is asked about when an older worker dead-lettered it", nil, map[string]any{worker.PropertyDocumentID: "m1"}, deadletter.Refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
				if tt.neighbor != nil {
					w.deadLettered("first", tt.neighbor)
				}
				n := w.deadLettered("m1", tt.own)
				_, steps, _ := w.plan(deadletter.Planning{Filter: deadletter.Filter{MessageID: "m1"}})
				require.Equal(t, tt.want == deadletter.Applied, len(steps) == 1)
				out := w.act(command(deadletter.Reprocess), n)[0]
				require.Equal(t, tt.want, out.Result, out.Detail)
				if tt.want == deadletter.Refused {
					require.Contains(t, out.Detail, "--accept-unknown-program")
					require.Zero(t, w.mem.Len())
					o := command(deadletter.Reprocess)
					o.Choice.UnknownProgram = true
					require.Equal(t, deadletter.Applied, w.act(o, n)[0].Result)
				}
			})
		})
	}
}

func TestWhatAnotherProgramStoredUnderAKeyIsNoProof(t *testing.T) {
	inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
		payments, err := worker.NewPipeline(worker.Config{Program: "shop-payments"}, w.store, worker.HandlerFunc(handle))
		require.NoError(t, err)
		require.True(t, payments.Process(t.Context(), deadletter.Parse(encode(t, message("m1", `{"a":1}`))).Received()).Committed())
		n := w.bury("MaxDeliveryCountExceeded", message("m1", `{"a":1}`))
		out := w.act(command(deadletter.Discard), n)[0]
		require.Equal(t, deadletter.Refused, out.Result)
		require.Contains(t, out.Detail, "shop-payments")
		require.Equal(t, 1, w.count(dead).Total())
	})
}

func TestADocumentIDThatDiffersFromTheWorkersIsSaid(t *testing.T) {
	for name, config := range map[string]func(*worker.Config){
		"another consumer": func(c *worker.Config) { c.Admission.Consumer = "billing" },
		"another key":      func(c *worker.Config) { c.Admission.KeySource = mustKey("property:x") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
				n := w.deadLettered("m5", map[string]any{worker.PropertyProgram: "orderworker", worker.PropertyDocumentID: "m5", worker.PropertyStoredHash: "ab"})
				w.apply("m5", `{"a":1}`)
				var c worker.Config
				config(&c)
				other, err := worker.NewPipeline(c, w.store, worker.HandlerFunc(handle))
				require.NoError(t, err)
				w.review = deadletter.NewReviewer(w.broker(), other, w.ledger, w.settings)
				item, err := w.review.Find(t.Context(), n)
				require.NoError(t, err)
				require.Equal(t, deadletter.OtherSettings, item.Verdict.Kind)
				require.Contains(t, item.Verdict.Meaning(), "document id m5")
				require.NotContains(t, item.Verdict.Meaning(), "deleted, moved")
				for _, a := range []deadletter.Action{deadletter.Reprocess, deadletter.Resubmit, deadletter.Discard} {
					require.Equal(t, deadletter.Refused, w.act(command(a), n)[0].Result, a)
				}
				_, steps, _ := w.plan(deadletter.Planning{})
				require.Empty(t, steps)
				require.Equal(t, 1, w.mem.Len())
			})
		})
	}
}

func TestAnImportKeepsToTheProgram(t *testing.T) {
	inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
		n := w.deadLettered("pay-4", map[string]any{worker.PropertyProgram: "shop-payments"})
		item, err := w.review.Find(t.Context(), n)
		require.NoError(t, err)
		line, err := deadletter.ExportLine(item.DeadLetter)
		require.NoError(t, err)
		l, err := deadletter.ImportLine(line)
		require.NoError(t, err)
		out := imported(t, w.review, command(deadletter.Reprocess), l)
		require.Equal(t, deadletter.Refused, out.Result)
		require.Zero(t, w.mem.Len())
	})
}

func TestAPlanAndTheLedgerNameTheProgram(t *testing.T) {
	inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
		n := w.bury("X", message("m1", `{"a":1}`))
		plan, _, err := w.review.Plan(t.Context(), deadletter.PlanHeader{ID: "p1", CreatedAt: time.Now()}, deadletter.Planning{})
		require.NoError(t, err)
		require.Equal(t, "orderworker", plan.Program)
		a, err := w.review.Application(plan, command(""))
		require.NoError(t, err)
		require.Equal(t, "p1", a.Command.Plan)
		other := plan
		other.Program = "shop-payments"
		_, err = w.review.Application(other, command(""))
		require.ErrorContains(t, err, "shop-payments deadletter apply")
		other = plan
		other.Queue = "returns"
		_, err = w.review.Application(other, command(""))
		require.ErrorContains(t, err, `"returns"`)
		w.act(command(deadletter.Reprocess), n)
		require.Equal(t, "orderworker", w.ledger.entries[0].Program)
	})
}

func TestACopyNamesNoProgram(t *testing.T) {
	l := messageOf(noon, map[string]any{worker.PropertyProgram: "orderworker", worker.PropertyVersion: "1", worker.PropertyDocumentID: "m1", "own": "stays"})
	encoded, err := deadletter.Copy(l, deadletter.Choice{}, noon, true)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"own": "stays"}, deadletter.Parse(encoded).Message.ApplicationProperties, "the next reader would take it for dead-lettered")
}

func TestAPartitionThatDiffersFromTheWorkersIsSaid(t *testing.T) {
	for name, tt := range map[string]struct{ worker, here string }{
		"the worker took it from a property": {worker: "R", here: "key"},
		"the worker took the key":            {worker: "", here: "property:x"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{settings: ofProgram}, func(t *testing.T, w *world) {
				properties := map[string]any{worker.PropertyProgram: "orderworker", worker.PropertyDocumentID: "m5", "x": "R"}
				if tt.worker != "" {
					properties[worker.PropertyPartition] = tt.worker
				}
				n := w.deadLettered("m5", properties)
				var c worker.Config
				var err error
				c.Admission.Partition, err = admission.ParsePartitionSource(tt.here)
				require.NoError(t, err)
				other, err := worker.NewPipeline(c, w.store, worker.HandlerFunc(handle))
				require.NoError(t, err)
				w.review = deadletter.NewReviewer(w.broker(), other, w.ledger, w.settings)
				item, err := w.review.Find(t.Context(), n)
				require.NoError(t, err)
				require.Equal(t, deadletter.OtherSettings, item.Verdict.Kind)
				require.Contains(t, item.Verdict.Meaning(), "WORKER_PARTITION")
				require.Equal(t, deadletter.Refused, w.act(command(deadletter.Reprocess), n)[0].Result)
				require.Zero(t, w.mem.Len())
			})
		})
	}
}
