package deadletter_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

// claims gives the review a program with claims whose handler ends as next says.
func (w *world) claims(t *testing.T, next *func(worker.Message) error) {
	t.Helper()
	var err error
	w.pipeline, err = worker.NewPipeline(worker.Config{Claim: worker.ClaimConfig{Lease: 30 * time.Second, OnExpired: worker.Intervene}}, w.store,
		worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			if err := (*next)(m); err != nil {
				return worker.Effects{}, err
			}
			return worker.Create(worker.Document{Type: "payment", Content: m.Body}), nil
		}))
	require.NoError(t, err)
	w.review = w.reviewer()
}

func inDoubt(worker.Message) error { return worker.InDoubt(errors.New("no answer")) }

func resolve(done bool, outcome string) deadletter.Command {
	c := command(deadletter.Resolve)
	c.Choice.Resolution = deadletter.Resolution{Done: done, Outcome: []byte(outcome)}
	return c
}

func TestAPersonResolvesAClaimThatHasExpired(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		next := inDoubt
		w.claims(t, &next)
		for _, id := range []string{"done", "not-done"} {
			require.Equal(t, worker.CauseClaimExpired, w.pipeline.Process(t.Context(), deadletter.Parse(encode(t, message(id, `{"amount":40}`))).Received()).Cause)
		}
		done, notDone := w.bury("ClaimExpired", message("done", `{"amount":40}`)), w.bury("ClaimExpired", message("not-done", `{"amount":40}`))
		copied := w.bury("X", message("done", `{"amount":40}`))
		for _, i := range w.list(deadletter.Filter{}) {
			require.Equal(t, deadletter.ClaimExpired, i.Verdict.Kind)
			require.Equal(t, deadletter.Resolve, i.Verdict.First())
			require.Contains(t, i.Verdict.Meaning(), "may have been done")
		}
		require.Contains(t, w.act(command(deadletter.Reprocess), done)[0].Detail, "half way")
		accepted := command(deadletter.Reprocess)
		accepted.Choice.Acknowledged = true
		require.Equal(t, deadletter.Rejected, w.act(accepted, done)[0].Result, "the program leaves it to a person")
		_, steps, _ := w.plan(deadletter.Planning{})
		require.Empty(t, steps, "no plan decides it")

		out := w.act(resolve(true, `{"charge":"ch_1"}`), done)[0]
		require.Equal(t, deadletter.Resolved, out.Result)
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Failed, deadletter.Intended, deadletter.Done}, w.ledger.states(done))
		item := w.list(deadletter.Filter{Sequences: []int64{copied}})[0]
		require.Equal(t, deadletter.AlreadyApplied, item.Verdict.Kind)
		require.JSONEq(t, `{"charge":"ch_1"}`, string(item.Verdict.Outcome))
		require.Empty(t, w.mem.Documents("done")[0].Content)

		out = w.act(resolve(false, ""), notDone)[0]
		require.Equal(t, deadletter.Freed, out.Result)
		require.Equal(t, []deadletter.State{deadletter.Intended, deadletter.Done}, w.ledger.states(notDone))
		require.Equal(t, deadletter.NeverApplied, w.list(deadletter.Filter{Sequences: []int64{notDone}})[0].Verdict.Kind, "the dead letter stays")
		require.Equal(t, deadletter.Refused, w.act(resolve(true, `1`), notDone)[0].Result, "what was resolved is not resolved again")
		next = func(m worker.Message) error {
			require.False(t, m.Claim.Previous)
			require.Equal(t, 2, m.Claim.Attempt)
			return nil
		}
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), notDone)[0].Result)
		require.Equal(t, 1, w.count(dead).Total())
	})
}

// overtaken is a pipeline whose claims are taken over as soon as somebody resolves them.
type overtaken struct {
	deadletter.Pipeline
	takeOver func()
}

func (p overtaken) Resolve(ctx context.Context, m *azservicebus.ReceivedMessage, done bool, outcome []byte) worker.Result {
	p.takeOver()
	return p.Pipeline.Resolve(ctx, m, done, outcome)
}

func TestNobodyResolvesWhatHeCannotKnow(t *testing.T) {
	inBubble(t, setup{settings: func(s *deadletter.Settings) { s.Program = "shop" }}, func(t *testing.T, w *world) {
		next := inDoubt
		w.claims(t, &next)
		received := deadletter.Parse(encode(t, message("m", `{"amount":40}`))).Received()
		unclaimed := w.bury("X", message("unclaimed", `{}`))
		require.Contains(t, w.act(resolve(false, ""), unclaimed)[0].Detail, "no claim to resolve")
		foreign := message("m", `{"amount":40}`)
		foreign.ApplicationProperties = map[string]any{worker.PropertyProgram: "billing"}
		other := w.bury("ClaimExpired", foreign)
		own := message("m", `{"amount":40}`)
		own.ApplicationProperties = map[string]any{worker.PropertyProgram: "shop"}
		sequence := w.bury("ClaimExpired", own)

		next = func(worker.Message) error {
			require.Equal(t, deadletter.InProgress, w.list(deadletter.Filter{Sequences: []int64{sequence}})[0].Verdict.Kind)
			for _, done := range []bool{true, false} {
				out := w.act(resolve(done, `1`), sequence)[0]
				require.Equal(t, deadletter.Refused, out.Result)
				require.Contains(t, out.Detail, "is at work")
			}
			require.Contains(t, w.act(command(deadletter.Reprocess), sequence)[0].Detail, "must wait")
			return inDoubt(worker.Message{})
		}
		w.pipeline.Process(t.Context(), received)
		require.Equal(t, deadletter.Refused, w.act(resolve(true, `1`), other)[0].Result, "another program's")

		for _, done := range []bool{true, false} {
			review := deadletter.NewReviewer(w.broker(), overtaken{w.pipeline, func() {
				record, err := w.mem.Find(t.Context(), "", "m")
				require.NoError(t, err)
				_, err = w.mem.Claim(t.Context(), worker.Commit{Key: identity.Text("m"), DocumentID: "m", Attempt: rand.Text(), Fingerprint: *record.Fingerprint,
					Claim: &worker.ClaimRecord{Number: record.Claim.Number + 1, Lease: time.Minute, ETag: record.Claim.ETag}})
				require.NoError(t, err)
			}}, w.ledger, w.settings)
			out, err := review.Act(t.Context(), resolve(done, `1`), sequence)
			require.NoError(t, err)
			require.Equal(t, deadletter.Rejected, out.Result)
			require.Contains(t, out.Detail, "is at work")
			record, err := w.mem.Find(t.Context(), "", "m")
			require.NoError(t, err)
			require.False(t, record.Claim.Over || record.Claim.Released)
			time.Sleep(2 * time.Minute)
		}
		require.Equal(t, 3, w.count(dead).Total())
	})
}
