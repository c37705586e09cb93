// Command router works on a queue with events of many types, of which two are its own: an order is registered at a carrier and
// stored, and a refund is stored. Anything else is ignored.
package main

import (
	"context"
	"fmt"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

func main() { app.Main(program(register)) }

func program(register func(ctx context.Context, order string) error) app.Program {
	return app.Program{
		Name: "router", Summary: "Store orders and refunds", Types: []string{"order", "refund"},
		Handler: worker.Route(worker.ByProperty("type"), map[string]worker.Handler{
			"OrderPlaced":   orders{register},
			"OrderRefunded": worker.HandlerFunc(refund),
		}, worker.IgnoreUnknown),
	}
}

// orders is a handler that calls another system.
type orders struct {
	register func(ctx context.Context, order string) error
}

// Handle implements [worker.Handler]. A message that is delivered again is looked up before its handler is called, so that the
// carrier is not called again once the order is stored.
func (h orders) Handle(ctx context.Context, m worker.Message) (worker.Effects, error) {
	if err := h.register(ctx, m.MessageID); err != nil {
		return worker.Effects{}, fmt.Errorf("the carrier: %w", err)
	}
	return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
}

func refund(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Create(worker.Document{Type: "refund", Content: m.Body}), nil
}

// register stands for a call of the carrier.
func register(context.Context, string) error { return nil }
