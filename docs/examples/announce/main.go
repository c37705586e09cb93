// Command announce stores orders, announces each to a topic and reserves stock for it at a queue. Both messages are committed in
// one transaction with the order, and sent when it is. Run it with WORKER_DESTINATIONS=order-events,stock.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

func main() { app.Main(program()) }

func program() app.Program {
	return app.Program{
		Name: "announce", Summary: "Store orders, announce them and reserve stock",
		Handler: worker.HandlerFunc(accept), Types: []string{"order"},
	}
}

// order is what this program reads of a message.
type order struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// accept makes an order, an event and a command of a message. The names of the messages never change: their MessageIds are made of
// them, by which each receiver recognises a message that comes again.
func accept(_ context.Context, m worker.Message) (worker.Effects, error) {
	var o order
	if err := json.Unmarshal(m.Body, &o); err != nil || o.SKU == "" || o.Quantity < 1 {
		return worker.Effects{}, worker.Reject("InvalidOrder", errors.New("an order has a sku and a quantity of at least 1"))
	}
	effects := worker.Create(worker.Document{Type: "order", Content: m.Body}).Send(
		worker.Outgoing{Name: "accepted", To: "order-events", Subject: "OrderAccepted", ContentType: "application/json", Body: m.Body},
		worker.Outgoing{Name: "reserve", To: "stock", Subject: "ReserveStock", ContentType: "application/json",
			Body: fmt.Appendf(nil, `{"sku":%q,"quantity":%d}`, o.SKU, o.Quantity)},
	)
	if m.ReplyTo != "" { // whoever asks again within the hour gets the same answer
		effects = effects.Send(worker.Reply(m, []byte(`{"accepted":true}`))).ReplayReply(time.Hour)
	}
	return effects, nil
}
