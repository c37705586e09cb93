package cosmosstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

const (
	database  = "shop"
	container = "orders"
)

// hosts makes every test talk to a host of its own, since azcosmos keeps caches per endpoint for the whole process.
var hosts atomic.Int64

// sequences gives each commit the sequence number of a message of its own.
var sequences atomic.Int64

// env is an embedded account with one container, and a store over it, inside a bubble.
type env struct {
	t       *testing.T
	account *cosmosdb.Account
	faults  *fault.Plan
	history *history.Log
	store   *cosmosstore.Store
	options cosmosstore.Options
	logged  *strings.Builder
}

// setup changes how an environment is made.
type setup struct {
	account   func(*cosmosdb.Options)
	container func(*cosmosdb.ContainerSpec)
	options   func(*cosmosstore.Options)
	prepare   func(*cosmosdb.Account)
	unopened  bool
}

// inBubble runs f in a bubble with an embedded account, and checks at the end that nothing unknown was asked of it.
func inBubble(t *testing.T, s setup, f func(e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, s)
		f(e)
		require.Empty(t, e.account.Refusals(), "the store must use only what the embedded account implements")
	})
}

func newEnv(t *testing.T, s setup) *env {
	t.Helper()
	e := &env{t: t, faults: fault.Script(), history: history.New(), logged: &strings.Builder{}}
	ao := cosmosdb.Options{Faults: e.faults, History: e.history}
	if s.account != nil {
		s.account(&ao)
	}
	var err error
	e.account, err = cosmosdb.New(ao)
	require.NoError(t, err)
	require.NoError(t, e.account.CreateDatabase(database))
	spec := cosmosdb.ContainerSpec{ID: container, PartitionKey: []string{"/pk"}, DefaultTTL: -1, IndexNothing: true}
	if s.container != nil {
		s.container(&spec)
	}
	if spec.ID != "" {
		require.NoError(t, e.account.CreateContainer(database, spec))
	}
	if s.prepare != nil {
		s.prepare(e.account)
	}
	e.options = cosmosstore.Options{
		Endpoint: fmt.Sprintf("https://account-%d.documents.test/", hosts.Add(1)),
		Key:      cosmosstore.Key(e.account.Key()), Database: database, Container: container,
		Transport: e.account.Transport(), Logger: slog.New(slog.NewTextHandler(e.logged, nil)),
	}
	if s.options != nil {
		s.options(&e.options)
	}
	t.Cleanup(func() {
		if e.store != nil {
			require.NoError(t, e.store.Close())
		}
		require.NoError(t, e.account.Close())
	})
	if !s.unopened {
		e.open()
	}
	return e
}

func (e *env) open() {
	e.t.Helper()
	var err error
	e.store, err = cosmosstore.Open(e.t.Context(), e.options)
	require.NoError(e.t, err)
}

// requests counts the requests of one operation that reached the account, answered or not.
func (e *env) requests(op string) int {
	return e.history.Count(func(ev history.Event) bool { return ev.Op == op })
}

// document returns the stored JSON of a document.
func (e *env) document(id string) map[string]any {
	e.t.Helper()
	d, ok := e.account.Document(database, container, id)
	require.True(e.t, ok, "document %q", id)
	var m map[string]any
	require.NoError(e.t, json.Unmarshal([]byte(d.Body), &m))
	return m
}

// commit is a commit of one order, whose attempt is unique unless the test sets it.
func commit(key, body string, parts ...worker.Document) worker.Commit {
	k := identity.Text(key)
	f, err := fingerprint.Compute([]byte(body), parameters())
	if err != nil {
		panic(err)
	}
	return worker.Commit{
		Key: k, DocumentID: k.DocumentID(), Attempt: fmt.Sprintf("attempt-%d", hosts.Add(1)), Fingerprint: f,
		MessageID: key, SequenceNumber: sequences.Add(1), EnqueuedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Documents: append([]worker.Document{{Type: "order", Content: []byte(body)}}, parts...),
	}
}

func parameters() fingerprint.Parameters {
	return fingerprint.Parameters{Version: fingerprint.Version1, Algorithm: fingerprint.SHA256, Form: fingerprint.FormJSON}
}

// lines are further documents of an order.
func lines(n int) []worker.Document {
	var docs []worker.Document
	for i := range n {
		docs = append(docs, worker.Document{Name: fmt.Sprintf("line-%d", i+1), Type: "line", Content: fmt.Appendf(nil, `{"sku":%d}`, i+1)})
	}
	return docs
}

// judge is the judgement that the engine would come to.
func judge(c worker.Commit, o worker.Outcome, body string) worker.Judgement {
	return worker.Judge(c, o, rehash(body))
}

func rehash(body string) worker.Rehash {
	return func(r fingerprint.Parameters) (fingerprint.Fingerprint, error) {
		return fingerprint.Compute([]byte(body), r)
	}
}

// within returns a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// ctx is the context of the test inside the bubble.
func (e *env) ctx() context.Context { return e.t.Context() }

// commit commits c and expects no error.
func (e *env) commit(c worker.Commit) worker.Outcome {
	e.t.Helper()
	o, err := e.store.Commit(e.ctx(), c)
	require.NoError(e.t, err)
	return o
}
