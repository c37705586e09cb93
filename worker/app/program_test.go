package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/orderworker/orderworker/worker"
)

// testProgram stores each message as one document, and each element of its array "lines" as another.
func testProgram() Program {
	return Program{Name: "orderworker", Types: []string{"order", "line"}, Handler: worker.HandlerFunc(
		func(_ context.Context, m worker.Message) (worker.Effects, error) {
			var order struct {
				Lines []json.RawMessage `json:"lines"`
			}
			if err := json.Unmarshal(m.Body, &order); err != nil {
				return worker.Effects{}, worker.Reject("InvalidOrder", err)
			}
			documents := []worker.Document{{Type: "order", Content: m.Body}}
			for i, line := range order.Lines {
				documents = append(documents, worker.Document{Name: fmt.Sprintf("line-%d", i+1), Type: "line", Content: line})
			}
			return worker.Create(documents...), nil
		})}
}
