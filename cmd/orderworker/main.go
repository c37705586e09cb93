// Command orderworker turns the messages of an Azure Service Bus queue into documents in Azure Cosmos DB, each once, and
// helps people with those that it had to dead-letter.
package main

import (
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

func main() {
	app.Main(app.Program{Name: "orderworker", Handler: worker.HandlerFunc(order), Types: orderTypes[:]})
}
