package workertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/workertest"
)

// payment is the handler under test: a payment becomes a document of its own and two ledger entries.
func payment(_ context.Context, m worker.Message) (worker.Effects, error) {
	var p struct {
		Amount   int    `json:"amount"`
		Currency string `json:"currency"`
	}
	if err := json.Unmarshal(m.Body, &p); err != nil {
		return worker.Effects{}, worker.Reject("PaymentInvalid", err)
	}
	if p.Currency != "EUR" {
		return worker.Effects{}, worker.Reject("CurrencyUnknown", errors.New("only EUR is taken"))
	}
	return worker.Create(
		worker.Document{Type: "payment", Content: m.Body},
		worker.Document{Name: "debit", Type: "ledgerEntry", Content: fmt.Appendf(nil, `{"amount":%d}`, -p.Amount)},
		worker.Document{Name: "credit", Type: "ledgerEntry", Content: fmt.Appendf(nil, `{"amount":%d}`, p.Amount)},
	), nil
}

// A handler is tested end to end, with the real clients and without anything to install. In a test, t is its *testing.T.
func Example() {
	t := &exampleTest{}
	defer t.end()

	env := workertest.Start(t)
	env.Work(worker.Config{Program: "shop-payments"}, worker.HandlerFunc(payment), "payment", "ledgerEntry")
	env.Send("pay-1", `{"amount":40,"currency":"EUR"}`)
	env.WaitUntilSettled(time.Minute) // two at once are worked on side by side, and either may be first
	env.Send("pay-1", `{"currency": "EUR", "amount": 40}`)
	env.Send("pay-2", `{"amount":1,"currency":"XXX"}`)
	env.WaitUntilSettled(time.Minute)

	stored, err := env.Store().Inspect(context.Background(), "", "pay-1")
	fmt.Println(stored.Record.Program, err)
	for _, d := range stored.Documents {
		fmt.Println(d.Type, string(d.Content))
	}
	for _, d := range env.DeadLetters() {
		fmt.Println(d.MessageID, d.Reason)
	}
	// Output:
	// shop-payments <nil>
	// payment {"amount":40,"currency":"EUR"}
	// ledgerEntry {"amount":-40}
	// ledgerEntry {"amount":40}
	// pay-2 CurrencyUnknown
}

// exampleTest is a *testing.T for an example, which has none.
type exampleTest struct{ cleanups []func() }

func (*exampleTest) Helper()                           {}
func (*exampleTest) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (*exampleTest) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (*exampleTest) Context() context.Context          { return context.Background() }
func (t *exampleTest) Cleanup(end func())              { t.cleanups = append(t.cleanups, end) }

func (t *exampleTest) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
