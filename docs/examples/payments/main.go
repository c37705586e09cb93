// Command shop-payments is a complete program around a handler of its own: each payment becomes one document with two ledger
// entries, all or none. Copy this folder to begin a program.
package main

import (
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

// version is set by the linker: go build -ldflags "-X main.version=v1.2.0".
var version string

func main() { app.Main(program(payments{accountOpen: accountOpen})) }

// program is what this program is called and what it does.
func program(h worker.Handler) app.Program {
	return app.Program{
		Name: "shop-payments", Version: version, Summary: "Book payments with their ledger entries",
		Handler: h, Types: []string{"payment", "entry"},
	}
}
