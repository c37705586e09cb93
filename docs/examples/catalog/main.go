// Command catalog stores the prices of articles. Each message carries the whole state of an article, so that to store it twice
// is to store it once: no inbox record is kept. Run it with WORKER_PARTITION=property:sku.
package main

import (
	"context"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

func main() { app.Main(program()) }

func program() app.Program {
	return app.Program{
		Name: "catalog", Summary: "Store the prices of articles",
		Handler: worker.HandlerFunc(priced), Changes: true,
	}
}

// priced stores the body as it is: one write and one settle. The last one to arrive wins; where that must be the newest one, set
// a version as the program projection does.
func priced(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Apply(worker.Upsert(m.Partition, m.Body)).WithoutRecord(), nil
}
