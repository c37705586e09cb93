// Command projection keeps the newest state of customers out of events that arrive in any order and more than once. Each event
// has the version of its customer; one that comes after a newer one is stale. Run it with
// WORKER_PARTITION=property:customerId.
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
		Name: "projection", Summary: "Keep the newest state of customers",
		Handler: worker.HandlerFunc(changed), Changes: true,
	}
}

// event is the whole state of a customer after its change number Version. It is what is stored, too.
type event struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

// changed stores the state, unless the customer has this version or a newer one already: then nothing but the inbox record is
// committed, and the message is completed and counted as stale.
func changed(_ context.Context, m worker.Message) (worker.Effects, error) {
	var e event
	if err := json.Unmarshal(m.Body, &e); err != nil || e.Name == "" {
		return worker.Effects{}, worker.Reject("InvalidEvent", errors.New("an event has a version and a name"))
	}
	content, err := json.Marshal(e)
	return worker.Apply(worker.Upsert(m.Partition, content)).SetVersion(m.Partition, "/version", e.Version), err
}
