// Command shop is the program that torture runs beside orderworker: its messages create and change documents in every way.
// Run it with WORKER_PARTITION=property:entity.
package main

import (
	"github.com/orderworker/orderworker/internal/shop"
	"github.com/orderworker/orderworker/worker/app"
)

func main() {
	app.Main(app.Program{Name: "shop", Summary: "Create and change documents in every way", Handler: shop.Handler(), Types: []string{"order", "line"}, Changes: true})
}
