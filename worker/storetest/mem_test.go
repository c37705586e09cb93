package storetest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/storetest"
)

func TestMemKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) worker.Store { return storetest.NewMem() }, storetest.Options{
		Bubble: true, TTL: true, Changes: true, Remove: func(s worker.Store, id string) { s.(*storetest.Mem).Remove(id) },
	})
}

// unbounded hides the bounds of a store, as a store that has none would.
type unbounded struct{ *storetest.Mem }

func (u unbounded) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	if len(c.Documents) > 50 {
		return worker.Outcome{Created: true, Calls: 1}, nil
	}
	return u.Mem.Commit(ctx, c)
}

func TestAStoreWithoutBoundsKeepsTheContractToo(t *testing.T) {
	storetest.Run(t, func(*testing.T) worker.Store { return unbounded{storetest.NewMem()} }, storetest.Options{Bubble: true, Unbounded: true})
}

func TestFaultyKeepsTheContractWhileNothingIsWrong(t *testing.T) {
	storetest.Run(t, func(*testing.T) worker.Store { return storetest.NewFaulty(storetest.NewMem()) }, storetest.Options{Changes: true})
}

func TestMemShowsWhatAnotherProgramDid(t *testing.T) {
	m := storetest.NewMem()
	order := worker.Commit{Key: identity.Text("7"), DocumentID: "7", Attempt: "a", Documents: []worker.Document{
		{Type: "order", Content: []byte(`{}`)}, {Name: "line-1", Type: "line", Content: []byte(`{}`)},
	}}
	line := identity.PartDocumentID("7", "line-1")
	m.Plant(line, worker.Record{})
	o, err := m.Commit(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, "line-1", o.Blocking)
	require.Nil(t, o.Existing)
	require.Equal(t, 1, m.Len(), "nothing was created beside the stray line")

	m.Remove(line)
	o, err = m.Commit(t.Context(), order)
	require.NoError(t, err)
	require.True(t, o.Created)
	m.Remove(line)
	r, err := m.Find(t.Context(), "", "7")
	require.NoError(t, err)
	require.Equal(t, []string{"line-1"}, r.MissingParts)
}

func TestMemRefusesWhatCosmosDBRefuses(t *testing.T) {
	for name, d := range map[string]worker.Document{
		"a reserved type":          {Type: "request", Content: []byte(`{}`)},
		"the type of the id":       {Type: "id", Content: []byte(`{}`)},
		"content that is no JSON":  {Type: "order", Content: []byte(`{"x":}`)},
		"a name twice":             {Type: "order", Content: []byte(`{"x":1,"x":2}`)},
		"a number beyond a double": {Type: "order", Content: []byte(`{"x":1e999}`)},
		"nesting beyond the limit": {Type: "order", Content: []byte(strings.Repeat(`{"a":`, 128) + "1" + strings.Repeat("}", 128))},
		"a text that is not UTF-8": {Type: "order", Content: []byte("{\"a\":\"\xff\"}")},
		"a first document by name": {Name: "a", Type: "order", Content: []byte(`{}`)},
		"a fraction of a second":   {Type: "order", Content: []byte(`{}`), TTL: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.NewMem()
			_, err := m.Commit(t.Context(), worker.Commit{Key: identity.Text("7"), DocumentID: "7", Documents: []worker.Document{d}})
			var refused *worker.UnstorableError
			require.ErrorAs(t, err, &refused)
			require.Zero(t, m.Len())
		})
	}
}

func TestMemShowsFurtherDocuments(t *testing.T) {
	m := storetest.NewMem()
	documents := []worker.Document{
		{Type: "payment", Content: []byte(`{"amount":40}`)},
		{Name: "debit", Type: "ledgerEntry", Content: []byte(`{"amount":-40}`)},
		{Name: "credit", Type: "ledgerEntry", Content: []byte(`{"amount":40}`)},
	}
	_, err := m.Commit(t.Context(), worker.Commit{Key: identity.Text("7"), DocumentID: "7", Documents: documents})
	require.NoError(t, err)
	require.Equal(t, documents, m.Documents("7"))
	m.Remove(identity.PartDocumentID("7", "debit"))
	require.Equal(t, []worker.Document{documents[0], documents[2]}, m.Documents("7"))
	require.Nil(t, m.Documents("8"))
}
