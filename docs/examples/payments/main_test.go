package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

// newShop is an environment in which pay-1 is good and was sent twice, pay-2 was rejected, and pay-4 failed at every delivery.
func newShop(t *testing.T, p app.Program) *apptest.Env {
	t.Helper()
	env := apptest.Start(t, func(o *testenv.Options) {
		o.Adjust = func(q *servicebus.Queue) { q.MaxDeliveryCount, q.RequiresDuplicateDetection = 2, false }
	}, "WORKER_RETRY_ATTEMPTS=1", "WORKER_RETRY_BASE=1ms")
	env.Run(p, "check")
	const good = `{"message_id":"pay-1","body":{"from":"acc-1","to":"acc-2","currency":"EUR","amount":4000}}` + "\n"
	code, _, stderr := env.Command(p, good+good+
		`{"message_id":"pay-2","body":{"from":"acc-1","to":"acc-2","currency":"XXX","amount":4000}}`+"\n"+
		`{"message_id":"pay-4","body":{"from":"acc-1","to":"acc-closed","currency":"EUR","amount":700}}`, "send")
	require.Zero(t, code, stderr)
	worker := env.Work(p)
	env.WaitUntilSettled(time.Minute)
	counts := worker.Stop()
	require.Equal(t, []int{1, 1, 2}, []int{counts["created"], counts["duplicate"], counts["dead_lettered"]})
	return env
}

// deadLetters are the dead-lettered messages of the queue, by their message ids, as list shows them.
func deadLetters(t *testing.T, env *apptest.Env, p app.Program) map[string]map[string]any {
	t.Helper()
	var listed []map[string]any
	text := env.Run(p, "deadletter", "list", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(text), &listed), text)
	byID := map[string]map[string]any{}
	for _, l := range listed {
		byID[l["messageId"].(string)] = l
	}
	return byID
}

func TestShopPaymentsRunsAndReviewsItsDeadLetters(t *testing.T) {
	t.Parallel()
	p := program(payments{accountOpen: accountOpen})
	env := newShop(t, p)
	shown := env.Run(p, "get", "pay-1")
	for _, want := range []string{`program +shop-payments`, `type +payment`, `name +debit`, `"amount": -4000`, `name +credit`} {
		require.Regexp(t, want, shown)
	}
	dead := deadLetters(t, env, p)
	require.Len(t, dead, 2)
	require.Equal(t, "CurrencyUnknown", dead["pay-2"]["reason"])
	require.Equal(t, "HandlerError", dead["pay-4"]["reason"])

	open := program(payments{accountOpen: func(context.Context, string) error { return nil }})
	env.Run(open, "deadletter", "reprocess", number(dead["pay-4"]), "--reason", "the account is open again")
	require.Regexp(t, `name +credit`, env.Run(p, "get", "pay-4"))
	env.Run(p, "deadletter", "discard", number(dead["pay-2"]), "--reason", "agreed with the sender", "--accept-warning",
		"--archive", filepath.Join(t.TempDir(), "discarded.jsonl"))
	require.Empty(t, deadLetters(t, env, p))
	stored := slices.DeleteFunc(env.Services.Stored(), func(id string) bool { return strings.HasPrefix(id, "~action.") })
	require.ElementsMatch(t, []string{"pay-1", "pay-1~part.debit", "pay-1~part.credit", "pay-4", "pay-4~part.debit", "pay-4~part.credit"}, stored,
		"two payments with two entries each, beside the journal of the review")
}

// TestAnotherProgramDoesNotTouchTheDeadLettersOfShopPayments is an accident that happened: the program orderworker stored the
// failed payment as an order without its ledger entries and removed the dead letter, so that nobody could make them any more.
func TestAnotherProgramDoesNotTouchTheDeadLettersOfShopPayments(t *testing.T) {
	t.Parallel()
	p := program(payments{accountOpen: accountOpen})
	env := newShop(t, p)
	orders := app.Program{Name: "orderworker", Types: []string{"order"}, Handler: worker.HandlerFunc(
		func(_ context.Context, m worker.Message) (worker.Effects, error) {
			return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
		})}
	for _, d := range deadLetters(t, env, p) {
		code, stdout, stderr := env.Command(orders, "", "deadletter", "reprocess", number(d), "--reason", "by mistake")
		require.NotZero(t, code)
		require.Contains(t, stdout+stderr, "It belongs to the program shop-payments, and this is orderworker. Run:  shop-payments deadletter reprocess "+number(d))
		require.NotContains(t, stderr, "client library", "nothing is wrong with the broker")
	}
	_, stdout, stderr := env.Command(orders, "", "deadletter", "plan", "--file", filepath.Join(t.TempDir(), "plan.jsonl"))
	require.Contains(t, stdout+stderr, "0 of 2 dead letters are in the plan")
	own := filepath.Join(t.TempDir(), "own.jsonl")
	env.Run(p, "deadletter", "plan", "--file", own)
	code, stdout, stderr := env.Command(orders, "", "deadletter", "apply", own, "--execute", "--reason", "by mistake")
	require.NotZero(t, code, stdout+stderr)
	require.Len(t, deadLetters(t, env, p), 2, "nothing was removed")
	for _, id := range []string{"pay-2", "pay-4"} {
		code, _, _ := env.Command(p, "", "get", id)
		require.Equal(t, 4, code, "nothing was stored")
	}
	require.Regexp(t, `program +shop-payments`, env.Run(orders, "get", "pay-1"), "looking is allowed")
}

// number is the sequence number of a dead letter, as an argument.
func number(letter map[string]any) string {
	text, _ := json.Marshal(letter["sequence"])
	return string(text)
}

func TestAPaymentBecomesItsDocuments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, want string }{
		{"a payment", `{"from":"a","to":"b","currency":"USD","amount":1}`, ""},
		{"another currency", `{"from":"a","to":"b","currency":"GBP","amount":1}`, "CurrencyUnknown"},
		{"no amount", `{"from":"a","to":"b","currency":"USD"}`, "InvalidPayment"},
		{"an amount in words", `{"from":"a","to":"b","currency":"USD","amount":"one"}`, "InvalidPayment"},
		{"no account", `{"from":"a","currency":"USD","amount":1}`, "InvalidPayment"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			effects, err := payments{accountOpen: accountOpen}.Handle(t.Context(), worker.Message{Body: []byte(tt.body)})
			if tt.want != "" {
				var reject *worker.RejectError
				require.ErrorAs(t, err, &reject)
				require.Equal(t, tt.want, reject.Reason)
				return
			}
			require.NoError(t, err)
			require.Len(t, effects.Documents, 3)
		})
	}
}
