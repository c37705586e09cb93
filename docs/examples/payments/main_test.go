package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

// The messages of issue 11's accident: pay-1 is good, pay-2 is rejected, pay-4 fails at every delivery.
const (
	good     = `{"message_id":"pay-1","body":{"from":"acc-1","to":"acc-2","currency":"EUR","amount":4000}}`
	rejected = `{"message_id":"pay-2","body":{"from":"acc-1","to":"acc-2","currency":"XXX","amount":4000}}`
	failing  = `{"message_id":"pay-4","body":{"from":"acc-1","to":"acc-closed","currency":"EUR","amount":700}}`
)

// shop is an embedded environment with the programs that work on its queue.
type shop struct {
	*testing.T
	env *testenv.Env
}

func newShop(t *testing.T) shop {
	t.Helper()
	env, err := testenv.New(testenv.Options{Adjust: func(q *servicebus.Queue) { q.MaxDeliveryCount, q.RequiresDuplicateDetection = 2, false }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, env.Close()) })
	_, err = env.Serve(t.Context(), testenv.Addresses{})
	require.NoError(t, err)
	return shop{t, env}
}

// run executes one command line of a program.
func (s shop) run(ctx context.Context, p app.Program, stdin string, args ...string) (code int, stdout, stderr string) {
	s.Helper()
	var out, errs bytes.Buffer
	environ := append(s.env.Environ(), "WORKER_HEALTH_ADDRESS=off", "WORKER_RETRY_ATTEMPTS=1", "WORKER_RETRY_BASE=1ms")
	code = app.Run(ctx, p, app.Process{Args: args, Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

// ok is run of a command that must succeed.
func (s shop) ok(p app.Program, stdin string, args ...string) string {
	s.Helper()
	code, stdout, stderr := s.run(s.Context(), p, stdin, args...)
	require.Zero(s, code, "%v\n%s\n%s", args, stdout, stderr)
	return stdout
}

// work runs the worker until so many messages are dead-lettered and none waits, and returns its log.
func (s shop) work(p app.Program, deadLettered int) string {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	type ended struct {
		code           int
		stdout, stderr string
	}
	done := make(chan ended, 1)
	go func() {
		code, stdout, stderr := s.run(ctx, p, "", "run")
		done <- ended{code, stdout, stderr}
	}()
	require.Eventually(s, func() bool {
		c, err := s.env.Broker.Counts("orders")
		return err == nil && c.DeadLettered == deadLettered && c.Active == 0
	}, time.Minute, 10*time.Millisecond)
	stop()
	e := <-done
	require.Zero(s, e.code, e.stderr)
	return e.stdout
}

// letters are the dead letters of the queue, by their message ids, as list shows them.
func (s shop) letters(p app.Program) map[string]map[string]any {
	s.Helper()
	var listed []map[string]any
	text := s.ok(p, "", "deadletter", "list", "-o", "json")
	require.NoError(s, json.Unmarshal([]byte(text), &listed), text)
	byID := map[string]map[string]any{}
	for _, l := range listed {
		byID[l["messageId"].(string)] = l
	}
	return byID
}

func TestShopPaymentsRunsAndReviewsItsDeadLetters(t *testing.T) {
	t.Parallel()
	s, p := newShop(t), program(payments{accountOpen: accountOpen})
	s.ok(p, "", "check")
	s.ok(p, strings.Join([]string{good, rejected, failing, good}, "\n"), "send")
	log := s.work(p, 2)
	require.Contains(t, log, `"reason":"CurrencyUnknown"`)
	require.Contains(t, log, `"reason":"HandlerError"`)
	require.Regexp(t, `"event":"summary","received":[0-9]+,"created":1,.*"duplicate":1,.*"dead_lettered":2`, log)

	stored := s.ok(p, "", "get", "pay-1")
	for _, want := range []string{`program +shop-payments`, `type +payment`, `name +debit`, `"amount": -4000`, `name +credit`} {
		require.Regexp(t, want, stored)
	}
	letters := s.letters(p)
	require.Len(t, letters, 2)
	require.Equal(t, "CurrencyUnknown", letters["pay-2"]["reason"])
	require.Equal(t, "HandlerError", letters["pay-4"]["reason"])

	open := program(payments{accountOpen: func(context.Context, string) error { return nil }})
	s.ok(open, "", "deadletter", "reprocess", number(letters["pay-4"]), "--reason", "the account is open again")
	require.Regexp(t, `name +credit`, s.ok(p, "", "get", "pay-4"))
	s.ok(p, "", "deadletter", "discard", number(letters["pay-2"]), "--reason", "agreed with the sender", "--accept-warning")
	require.Empty(t, s.letters(p))
	require.Equal(t, 6, s.env.Account.Count("orders", "orders")-journal(s.env), "two payments with two entries each")
}

// TestAnotherProgramDoesNotTouchTheDeadLettersOfShopPayments is an accident that happened: the program orderworker stored the
// failed payment as an order without its ledger entries and removed the dead letter, so that nobody could make them any more.
func TestAnotherProgramDoesNotTouchTheDeadLettersOfShopPayments(t *testing.T) {
	t.Parallel()
	s, p := newShop(t), program(payments{accountOpen: accountOpen})
	s.ok(p, strings.Join([]string{good, rejected, failing}, "\n"), "send")
	s.work(p, 2)
	letters := s.letters(p)
	orders := app.Program{Name: "orderworker", Types: []string{"order"}, Handler: worker.HandlerFunc(
		func(_ context.Context, m worker.Message) (worker.Effects, error) {
			return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
		})}
	for _, letter := range letters {
		code, stdout, stderr := s.run(s.Context(), orders, "", "deadletter", "reprocess", number(letter), "--reason", "by mistake")
		require.NotZero(t, code)
		require.Contains(t, stdout+stderr, "It belongs to the program shop-payments, and this is orderworker. Run:  shop-payments deadletter reprocess "+number(letter))
		require.NotContains(t, stderr, "client library", "nothing is wrong with the broker")
	}
	plan := filepath.Join(t.TempDir(), "plan.jsonl")
	_, stdout, stderr := s.run(s.Context(), orders, "", "deadletter", "plan", "--file", plan)
	require.Contains(t, stdout+stderr, "0 of 2 dead letters are in the plan")
	own := filepath.Join(t.TempDir(), "own.jsonl")
	s.ok(p, "", "deadletter", "plan", "--file", own)
	code, stdout, stderr := s.run(s.Context(), orders, "", "deadletter", "apply", own, "--execute", "--reason", "by mistake")
	require.NotZero(t, code, stdout+stderr)
	require.Len(t, s.letters(p), 2, "nothing was removed")
	for _, id := range []string{"pay-2", "pay-4"} {
		code, _, _ := s.run(s.Context(), p, "", "get", id)
		require.Equal(t, 4, code, "nothing was stored")
	}
	require.Regexp(t, `program +shop-payments`, s.ok(orders, "", "get", "pay-1"), "looking is allowed")
}

// number is the sequence number of a dead letter, as an argument.
func number(letter map[string]any) string {
	text, _ := json.Marshal(letter["sequence"])
	return string(text)
}

// journal counts the records of the review's actions.
func journal(env *testenv.Env) int {
	n := 0
	for _, id := range env.Stored() {
		if !strings.HasPrefix(id, "pay-") {
			n++
		}
	}
	return n
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
