// Command captured sets orders to PAID. A message PaymentCaptured names an order that exists already. In the order's partition
// the inbox record of the message is created and the order is patched, in one transaction. Run it with
// WORKER_PARTITION=property:orderId.
package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

func main() { app.Main(program()) }

func program() app.Program {
	return app.Program{
		Name: "captured", Summary: "Set orders to PAID when their payments are captured",
		Handler: worker.HandlerFunc(captured), Changes: true,
	}
}

// payment is what this program reads of a message. Amount is in cents.
type payment struct {
	PaymentID string `json:"paymentId"`
	Amount    int64  `json:"amount"`
}

// captured patches the order without a read. It need not look whether the order is PAID already: the inbox record keeps a copy
// of the message from the order. An order that is not stored yet is waited for, delivery by delivery.
func captured(_ context.Context, m worker.Message) (worker.Effects, error) {
	var p payment
	if err := json.Unmarshal(m.Body, &p); err != nil || p.PaymentID == "" {
		return worker.Effects{}, worker.Reject("InvalidPayment", errors.New("a payment has a paymentId and an amount in cents"))
	}
	effects := worker.Apply(worker.Patch(m.Partition,
		worker.Set("/status", "PAID"),
		worker.Add("/history/-", p.PaymentID+" captured"),
		worker.Increment("/paid", p.Amount)))
	effects.Outcome = []byte(`{"status":"PAID"}`)
	return effects, nil
}
