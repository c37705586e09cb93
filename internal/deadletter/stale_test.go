package deadletter_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

// project keeps the newest state of a customer.
func project(_ context.Context, m worker.Message) (worker.Effects, error) {
	var e struct{ Version int64 }
	if err := json.Unmarshal(m.Body, &e); err != nil {
		return worker.Effects{}, err
	}
	effects := worker.Apply(worker.Upsert(m.Partition, m.Body)).SetVersion(m.Partition, "/version", e.Version)
	effects.Outcome = []byte(`{"state":"kept"}`)
	return effects, nil
}

func TestAStaleMessageIsToldFromAnAppliedOne(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		partition, err := admission.ParsePartitionSource("property:customer")
		require.NoError(t, err)
		w.pipeline, err = worker.NewPipeline(worker.Config{Admission: admission.Config{Partition: partition}}, w.store, worker.HandlerFunc(project))
		require.NoError(t, err)
		w.review = w.reviewer()
		event := func(id, body string) *amqp.Message {
			m := message(id, body)
			m.ApplicationProperties = map[string]any{"customer": "C7"}
			return m
		}
		process := func(id, body string) worker.Result {
			return w.pipeline.Process(t.Context(), deadletter.Parse(encode(t, event(id, body))).Received())
		}
		require.Equal(t, worker.Created, process("e2", `{"version":2}`).Judgement)
		require.Equal(t, worker.Stale, process("e1", `{"version":1}`).Judgement)
		newest := w.bury("X", event("e2", `{"version":2}`))
		processed := w.bury("X", event("e1", `{"version":1}`))
		other := w.bury("X", event("e1", `{"version":9}`))
		unseen := w.bury("X", event("e0", `{"version":0}`))

		items := w.list(deadletter.Filter{})
		kinds := map[int64]deadletter.Kind{}
		for _, i := range items {
			kinds[i.DeadLetter.Sequence] = i.Verdict.Kind
		}
		require.Equal(t, map[int64]deadletter.Kind{newest: deadletter.AlreadyApplied, processed: deadletter.Stale, other: deadletter.Conflict, unseen: deadletter.NeverApplied}, kinds)
		require.JSONEq(t, `{"state":"kept"}`, string(items[0].Verdict.Outcome))
		require.Contains(t, items[0].Absence, "holds no document")
		require.Contains(t, items[1].Verdict.Meaning(), "changed nothing, since an equal or newer version was stored")

		_, steps, _ := w.plan(deadletter.Planning{Filter: deadletter.Filter{Sequences: []int64{processed}}})
		require.Equal(t, deadletter.Discard, steps[0].Action, "what is known to be stale is not reprocessed")
		require.Equal(t, deadletter.Refused, w.act(command(deadletter.Resubmit), processed)[0].Result)
		require.Equal(t, deadletter.Refused, w.act(command(deadletter.Reprocess), other)[0].Result)
		require.Equal(t, deadletter.Discarded, w.act(command(deadletter.Discard), processed)[0].Result)

		out := w.act(command(deadletter.Reprocess), unseen)[0]
		require.Equal(t, deadletter.Outdated, out.Result, "only its handler knows its version")
		require.Contains(t, out.Detail, "nothing but the record")
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Done}, w.ledger.states(unseen))
		require.Equal(t, 2, w.count(dead).Total())
	})
}
