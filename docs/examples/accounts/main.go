// Command accounts debits accounts. Each message reads its account and replaces it, or is rejected when the money does not
// suffice. Run it with WORKER_PARTITION=property:accountId.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

func main() { app.Main(program(worker.HandlerFunc(debit))) }

func program(h worker.Handler) app.Program {
	return app.Program{Name: "accounts", Summary: "Debit accounts", Handler: h, Changes: true}
}

// account is a stored document, and order what a message says. Amounts are in cents.
type account struct {
	Balance int64 `json:"balance"`
	Debits  int   `json:"debits"`
}

type order struct {
	Amount int64 `json:"amount"`
}

// debit decides on the balance that it has read. The ETag holds it to that: when another message was faster, nothing is
// committed and debit runs again on the new balance. That is no fault of the message, however often it happens.
func debit(ctx context.Context, m worker.Message) (worker.Effects, error) {
	var o order
	if err := json.Unmarshal(m.Body, &o); err != nil || o.Amount <= 0 {
		return worker.Effects{}, worker.Reject("InvalidDebit", errors.New("a debit has a positive amount in cents"))
	}
	state, err := m.Read(ctx, m.Partition)
	if errors.Is(err, worker.ErrNotFound) {
		return worker.Effects{}, worker.Reject("UnknownAccount", errors.New("the account is not stored"))
	}
	if err != nil {
		return worker.Effects{}, err // the store's: an outage of it is no fault of this message
	}
	var a account
	if err := json.Unmarshal(state.Content, &a); err != nil {
		return worker.Effects{}, fmt.Errorf("the account: %w", err)
	}
	if a.Balance < o.Amount {
		return worker.Effects{}, worker.Reject("InsufficientFunds", fmt.Errorf("the balance is %d and the debit %d cents", a.Balance, o.Amount))
	}
	content, err := json.Marshal(account{Balance: a.Balance - o.Amount, Debits: a.Debits + 1})
	return worker.Apply(worker.Replace(m.Partition, content, state.ETag)), err
}
