package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/orderworker/orderworker/worker"
)

// payments is the handler. What it depends on are its fields, so that a test gives it others.
type payments struct {
	// accountOpen reports why nothing can be booked on an account now, nil when it can.
	accountOpen func(ctx context.Context, account string) error
}

// payment is what this program reads of a message. Amount is in cents.
type payment struct {
	From, To, Currency string
	Amount             int64
}

// entry is one side of the ledger.
type entry struct {
	Account  string `json:"account"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Handle implements [worker.Handler]. What can never pass is rejected: the message is dead-lettered now, under that reason. Any
// other error is tried again, and after the last delivery the message is dead-lettered as HandlerError.
func (h payments) Handle(ctx context.Context, m worker.Message) (worker.Effects, error) {
	var p payment
	if err := json.Unmarshal(m.Body, &p); err != nil {
		return worker.Effects{}, worker.Reject("InvalidPayment", err)
	}
	switch {
	case p.Amount <= 0 || p.From == "" || p.To == "":
		return worker.Effects{}, worker.Reject("InvalidPayment", errors.New("a payment has a positive amount in cents and two accounts, from and to"))
	case !slices.Contains([]string{"EUR", "USD"}, p.Currency):
		return worker.Effects{}, worker.Reject("CurrencyUnknown", errors.New("the currency is none of EUR and USD"))
	}
	documents := []worker.Document{{Type: "payment", Content: m.Body}}
	for _, e := range []struct {
		name string
		entry
	}{{"debit", entry{p.From, -p.Amount, p.Currency}}, {"credit", entry{p.To, p.Amount, p.Currency}}} {
		if err := h.accountOpen(ctx, e.Account); err != nil {
			return worker.Effects{}, fmt.Errorf("the %s account: %w", e.name, err)
		}
		content, err := json.Marshal(e.entry)
		if err != nil {
			return worker.Effects{}, err
		}
		documents = append(documents, worker.Document{Name: e.name, Type: "entry", Content: content})
	}
	return worker.Create(documents...), nil
}

// accountOpen stands for a question to the service that keeps the accounts.
func accountOpen(_ context.Context, account string) error {
	if account == "acc-closed" {
		return errors.New("it is closed")
	}
	return nil
}
