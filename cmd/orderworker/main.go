// Command orderworker turns the messages of an Azure Service Bus queue into documents in Azure Cosmos DB, each once, and
// helps people with those that it had to dead-letter.
package main

import (
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

// version is set by the linker when an image is built, where there is no repository to ask.
var version string

func main() {
	app.Main(app.Program{Name: "orderworker", Version: version, Handler: worker.HandlerFunc(order), Types: orderTypes[:]})
}
