// Command shop-charge charges a card at a payment provider over HTTP, and stores the payment with its receipt. The message is claimed
// before the card is charged. With a provider that keeps idempotency keys another attempt takes over and asks what became of the
// first; with one that keeps none (PROVIDER_KEYS=none) every doubtful case is left to a person.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

func main() { app.Main(program(os.Getenv)) }

// program is the program for the provider that the environment names.
func program(getenv func(string) string) app.Program {
	lease, _ := time.ParseDuration(cmp.Or(getenv("CHARGE_LEASE"), "1m"))
	p := provider{url: getenv("PROVIDER_URL"), client: &http.Client{Timeout: 30 * time.Second}}
	if getenv("PROVIDER_KEYS") == "none" {
		return chargeProgram(charges{p}, worker.ClaimConfig{Lease: lease, OnExpired: worker.Intervene})
	}
	return chargeProgram(keyed{charges{p}}, worker.ClaimConfig{Lease: lease})
}

func chargeProgram(h worker.Handler, claim worker.ClaimConfig) app.Program {
	return app.Program{
		Name: "shop-charge", Summary: "Charge cards, and store payments with their receipts",
		Handler: h, Types: []string{"payment", "receipt"},
		Claim: claim,
	}
}

// payment is what this program reads of a message. Amount is in cents.
type payment struct {
	Card   string `json:"card"`
	Amount int64  `json:"amount"`
}

// charges is the handler.
type charges struct{ provider provider }

// Handle implements [worker.Handler]. An error of the provider that leaves it open whether the card was charged is one in doubt.
func (h charges) Handle(ctx context.Context, m worker.Message) (worker.Effects, error) {
	var p payment
	if err := json.Unmarshal(m.Body, &p); err != nil || p.Card == "" || p.Amount <= 0 {
		return worker.Effects{}, worker.Reject("InvalidPayment", errors.New("a payment has a card and a positive amount in cents"))
	}
	id, err := h.provider.charge(ctx, m.IdempotencyKey("charge"), p)
	if err != nil {
		return worker.Effects{}, err
	}
	return paid(m, id), nil
}

// keyed is the handler for a provider that keeps keys, and can be asked about them.
type keyed struct{ charges }

// Reconcile implements [worker.Reconciler]: it asks the provider whether an earlier attempt has charged the card.
func (h keyed) Reconcile(ctx context.Context, m worker.Message) (worker.Reconciliation, error) {
	id, err := h.provider.find(ctx, m.IdempotencyKey("charge"))
	switch {
	case err != nil:
		return worker.Unknown(), err
	case id == "":
		return worker.NotDone(), nil
	}
	return worker.Done(paid(m, id)), nil
}

// paid are the effects of a payment that the provider knows by this id.
func paid(m worker.Message, id string) worker.Effects {
	outcome, _ := json.Marshal(map[string]string{"charge": id})
	effects := worker.Create(
		worker.Document{Type: "payment", Content: m.Body},
		worker.Document{Name: "receipt", Type: "receipt", Content: outcome})
	effects.Outcome = outcome
	return effects
}
