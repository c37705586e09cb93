package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/orderworker/orderworker/worker"
)

// order is the handler of this worker, and the file to change when you adopt it: it says which documents a message stands
// for. It must not do anything else, since it may run twice for one message and only one run gets its documents
// committed.
//
// An order is one JSON object. Where it has an array named lines, each line becomes a document of its own in the same
// logical partition, created together with the order or not at all.
func order(_ context.Context, m worker.Message) (worker.Effects, error) {
	lines, err := orderLines(m.Body)
	if err != nil {
		return worker.Effects{}, worker.Reject("InvalidOrder", err)
	}
	documents := []worker.Document{{Type: "order", Content: m.Body}}
	for i, line := range lines {
		documents = append(documents, worker.Document{Name: fmt.Sprintf("line-%d", i+1), Type: "line", Content: line})
	}
	return worker.Create(documents...), nil
}

// orderTypes are the types of the documents that the handler returns. A container that cannot hold them is refused at the
// start.
var orderTypes = [...]string{"order", "line"}

// orderLines returns the lines when every one of them is an object. Any other array, and a member named lines that is no
// array, stays in the order alone: what it means is the sender's business. A map, and not a struct, since the fields of a
// struct match a member such as Lines too.
func orderLines(body []byte) ([]json.RawMessage, error) {
	var order map[string]json.RawMessage
	if err := json.Unmarshal(body, &order); err != nil {
		return nil, fmt.Errorf("the order cannot be read: %w", err)
	}
	raw := order["lines"]
	if len(raw) == 0 || raw[0] != '[' {
		return nil, nil
	}
	var lines []json.RawMessage
	if err := json.Unmarshal(raw, &lines); err != nil {
		return nil, fmt.Errorf("the lines of the order cannot be read: %w", err)
	}
	for _, line := range lines {
		if line[0] != '{' {
			return nil, nil
		}
	}
	return lines, nil
}
