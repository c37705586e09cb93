package app

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/deadletter"
)

// ledger keeps the actions on dead-lettered messages in the journal of the store's container.
type ledger struct{ journal *cosmosstore.Journal }

var _ deadletter.Ledger = ledger{}

// Append implements [deadletter.Ledger].
func (l ledger) Append(ctx context.Context, e deadletter.Entry) error {
	content, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("the record of an action cannot be written: %w", err)
	}
	return l.journal.Append(ctx, cosmosstore.JournalEntry{ID: e.ID, At: e.At, Content: content})
}

// Entries implements [deadletter.Ledger].
func (l ledger) Entries(ctx context.Context, q deadletter.Query) iter.Seq2[deadletter.Entry, error] {
	return func(yield func(deadletter.Entry, error) bool) {
		for found, err := range l.journal.Entries(ctx, cosmosstore.JournalQuery{From: q.From, To: q.To, Most: q.Most, Equal: q.Members()}) {
			var e deadletter.Entry
			if err == nil {
				err = json.Unmarshal(found.Content, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
