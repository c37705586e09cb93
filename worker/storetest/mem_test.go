package storetest_test

import (
	"context"
	"errors"
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

func TestMemEvaluatesNoConditionsAndSaysSo(t *testing.T) {
	m := storetest.NewMem()
	m.Put("p", "e", []byte(`{"n":1}`))
	_, err := m.Commit(t.Context(), worker.Commit{Key: identity.Text("7"), DocumentID: "7", Partition: "p",
		Changes: []worker.Change{worker.Patch("e", worker.Set("/n", 2)).If("from c where c.n = 0")}})
	require.ErrorContains(t, err, "evaluates no conditions")
	state, err := m.Read(t.Context(), "p", "e")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(state.Content))
}

// TestMemPatchesAsCosmosDBDoes holds the patches of the store in memory against what the service makes of them.
func TestMemPatchesAsCosmosDBDoes(t *testing.T) {
	for name, tt := range map[string]struct {
		operation    worker.PatchOperation
		before, want string // no want: it is refused
	}{
		"set a member":                      {worker.Set("/a", 2), `{"a":1}`, `{"a":2}`},
		"set a new member":                  {worker.Set("/b/c", 2), `{"b":{}}`, `{"b":{"c":2}}`},
		"set below nothing":                 {worker.Set("/b/c", 2), `{}`, ``},
		"set an element":                    {worker.Set("/l/1", 9), `{"l":[1,2,3]}`, `{"l":[1,9,3]}`},
		"add inserts an element":            {worker.Add("/l/1", 9), `{"l":[1,2,3]}`, `{"l":[1,9,2,3]}`},
		"add appends an element":            {worker.Add("/l/-", 9), `{"l":[1,2,3]}`, `{"l":[1,2,3,9]}`},
		"add beyond the end":                {worker.Add("/l/7", 9), `{"l":[1,2,3]}`, ``},
		"add a member":                      {worker.Add("/a", "x"), `{}`, `{"a":"x"}`},
		"remove a member":                   {worker.Remove("/a"), `{"a":1,"b":1}`, `{"b":1}`},
		"remove an element":                 {worker.Remove("/l/0"), `{"l":[1,2,3]}`, `{"l":[2,3]}`},
		"remove nothing":                    {worker.Remove("/a"), `{}`, ``},
		"replace a member":                  {worker.PatchOperation{Kind: worker.PatchReplace, Path: "/a", Value: 2}, `{"a":1}`, `{"a":2}`},
		"replace nothing":                   {worker.PatchOperation{Kind: worker.PatchReplace, Path: "/a", Value: 2}, `{}`, ``},
		"increment":                         {worker.Increment("/a", 2), `{"a":40}`, `{"a":42}`},
		"increment nothing":                 {worker.Increment("/a", 2), `{}`, `{"a":2}`},
		"increment a text":                  {worker.Increment("/a", 2), `{"a":"40"}`, ``},
		"a number that is left alone stays": {worker.Set("/a", 2), `{"a":1,"n":12345678901234567890,"p":1.10}`, `{"a":2,"n":12345678901234567890,"p":1.10}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.NewMem()
			m.Put("p", "e", []byte(tt.before))
			_, err := m.Commit(t.Context(), worker.Commit{Key: identity.Text("7"), DocumentID: "7", Partition: "p", Changes: []worker.Change{worker.Patch("e", tt.operation)}})
			state, readErr := m.Read(t.Context(), "p", "e")
			require.NoError(t, readErr)
			if tt.want == "" {
				require.Error(t, err)
				require.Equal(t, tt.before, string(state.Content))
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, string(state.Content))
		})
	}
}

func TestFaultySaysWhetherAFaultHasItsEffect(t *testing.T) {
	for _, applied := range []bool{false, true} {
		m := storetest.NewMem()
		f := storetest.NewFaulty(m)
		lost := errors.New("the answer is lost")
		f.OnCommit(func(n int, _ worker.Commit) *storetest.Fault {
			if n > 1 {
				return nil
			}
			return &storetest.Fault{Err: lost, Applied: applied}
		})
		c := worker.Commit{Key: identity.Text("7"), DocumentID: "7", Attempt: "a", Documents: []worker.Document{{Type: "order", Content: []byte(`{}`)}}}
		_, err := f.Commit(t.Context(), c)
		require.ErrorIs(t, err, lost)
		require.Equal(t, applied, m.Len() == 1)
		o, err := f.Commit(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, applied, o.Existing != nil)
	}
}

func TestMemSharesNoMemoryWithItsCallers(t *testing.T) {
	m := storetest.NewMem()
	content := []byte(`{"n":1}`)
	m.Put("p", "e", content)
	content[5] = '9'
	state, err := m.Read(t.Context(), "p", "e")
	require.NoError(t, err)
	state.Content[5] = '8'
	state, err = m.Read(t.Context(), "p", "e")
	require.NoError(t, err)
	require.Equal(t, `{"n":1}`, string(state.Content))
}
