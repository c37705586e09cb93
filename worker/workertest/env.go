// Package workertest tests a handler end to end: the real clients of Service Bus and Cosmos DB, the worker and the store of
// package cosmosstore, against the embedded environment in the same process.
//
//	func TestPayments(t *testing.T) {
//		env := workertest.Start(t)
//		env.Work(worker.Config{}, worker.HandlerFunc(payment), "payment", "ledgerEntry")
//		env.Send("pay-1", `{"amount":40}`)
//		env.WaitUntilSettled(time.Minute)
//		stored, err := env.Store().Inspect(t.Context(), "", "pay-1")
//		...
//		if dead := env.DeadLetters(); len(dead) > 0 { ... }
//	}
//
// All connections are in memory, so it works in a testing/synctest bubble, where waiting takes no time, and outside of one. What
// can go wrong on the way is planned with the Faults of [Env.Services]. To test a handler without a broker and a database, see
// package storetest.
package workertest

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// TB is what an environment needs of a [testing.TB].
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(end func())
	Context() context.Context
}

// Env is an embedded environment with one queue and one container. Make one with [Start]. Its methods are safe for concurrent
// use, but for those that fail the test, which belong to the goroutine of the test.
type Env struct {
	// Services are the embedded Service Bus and Cosmos DB, their plan of faults and their history.
	Services *testenv.Env

	t        TB
	endpoint string
}

// Start makes an environment that ends with the test. The queue has no duplicate detection, so that repeats reach the worker;
// each adjust may change that and any other option.
func Start(t TB, adjust ...func(*testenv.Options)) *Env {
	t.Helper()
	o := testenv.Options{Adjust: func(q *servicebus.Queue) { q.RequiresDuplicateDetection = false }}
	for _, a := range adjust {
		a(&o)
	}
	services, err := testenv.New(o)
	if err != nil {
		t.Fatalf("workertest: %v", err)
	}
	// azcosmos keeps caches for each endpoint, so no two environments share one.
	e := &Env{Services: services, t: t, endpoint: "https://" + strings.ToLower(rand.Text()) + ".workertest/"}
	t.Cleanup(func() {
		if err := services.Close(); err != nil {
			t.Errorf("workertest: close: %v", err)
		}
	})
	return e
}

// Client returns a new client of Service Bus that is connected to the environment. The caller closes it.
func (e *Env) Client() (*azservicebus.Client, error) {
	return azservicebus.NewClientFromConnectionString(e.Services.Broker.ConnectionString("servicebus.workertest"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return e.Services.Dial(ctx)
		},
	})
}

// Broker returns the queue as a worker wants it.
func (e *Env) Broker() worker.Broker {
	if topic, subscription, ok := strings.Cut(e.Services.Queue.Name, "/Subscriptions/"); ok {
		return worker.NewSubscriptionBroker(e.Client, topic, subscription)
	}
	return worker.NewBroker(e.Client, e.Services.Queue.Name)
}

// StoreOptions are options for [cosmosstore.Open] that lead to the container of the environment. The types are those of the
// documents that the handler returns.
func (e *Env) StoreOptions(types ...string) cosmosstore.Options {
	return cosmosstore.Options{
		Endpoint: e.endpoint, Key: cosmosstore.Key(e.Services.Account.Key()), Transport: e.Services.Account.Transport(),
		Database: e.Services.Database, Container: e.Services.Container, Types: types,
	}
}

// Store opens a store over the container of the environment, which is closed at the end of the test.
func (e *Env) Store(types ...string) *cosmosstore.Store {
	e.t.Helper()
	store, err := cosmosstore.Open(e.t.Context(), e.StoreOptions(types...))
	if err != nil {
		e.t.Fatalf("workertest: open the store: %v", err)
	}
	e.t.Cleanup(func() { _ = store.Close() }) // it has nothing to say
	return store
}

// Work runs a worker with this handler until the end of the test. The lock duration and the maximum delivery count of c default
// to those of the queue. It may be called several times, for several workers.
func (e *Env) Work(c worker.Config, h worker.Handler, types ...string) {
	e.t.Helper()
	if c.LockDuration == 0 {
		c.LockDuration = e.Services.Queue.LockDuration
	}
	if c.MaxDeliveryCount == 0 {
		c.MaxDeliveryCount = e.Services.Queue.MaxDeliveryCount
	}
	w, err := worker.New(c, e.Broker(), e.Store(types...), h)
	if err != nil {
		e.t.Fatalf("workertest: %v", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(e.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	e.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			e.t.Errorf("workertest: the worker ended with: %v", err)
		}
	})
}
