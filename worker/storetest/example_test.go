package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// A handler is tested without a broker and without a database: a pipeline takes messages through it to a judgement.
func Example() {
	handler := worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		var order struct {
			Customer string `json:"customer"`
		}
		if err := json.Unmarshal(m.Body, &order); err != nil || order.Customer == "" {
			return worker.Effects{}, worker.Reject("CustomerMissing", errors.New("the order names no customer"))
		}
		return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
	})
	store := storetest.NewMem()
	pipeline, err := worker.NewPipeline(worker.Config{}, store, handler)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, body := range []string{`{"customer":"Ada","amount":40}`, `{"amount":40.0,"customer":"Ada"}`, `{"customer":"Ada","amount":41}`, `{"amount":1}`, `<order/>`} {
		result := pipeline.Process(context.Background(), &azservicebus.ReceivedMessage{MessageID: "1042", Body: []byte(body)})
		fmt.Printf("%v, committed: %t, refused as %q\n", result.Judgement, result.Committed(), result.Reason)
	}
	record, err := store.Find(context.Background(), "", "1042")
	fmt.Println(string(record.Content), err)
	// Output:
	// created, committed: true, refused as ""
	// duplicate, committed: true, refused as ""
	// conflict, committed: false, refused as "ContentConflict"
	// not judged, committed: false, refused as "CustomerMissing"
	// not judged, committed: false, refused as "NotJSON"
	// {"customer":"Ada","amount":40} <nil>
}
