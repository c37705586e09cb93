package cosmosstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	for name, s := range map[string]setup{
		"the first document carries the inbox record": {},
		"the inbox record is a document of its own":   withInboxRecords(0),
		"replies are slow and reads lag": {
			account: func(o *cosmosdb.Options) {
				o.Faults.Add(fault.On("cosmosdb.*").Always().After(fault.Wait(time.Millisecond)))
			},
			prepare: func(a *cosmosdb.Account) { a.SetLag(cosmosdb.Lag{By: 30 * time.Millisecond}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var accounts sync.Map
			open := func(t *testing.T) worker.Store {
				e := newEnv(t, s)
				accounts.Store(e.store, e.account)
				return e.store
			}
			remove := func(s worker.Store, id string) {
				a, _ := accounts.Load(s)
				a.(*cosmosdb.Account).DeleteDocument(database, container, id)
			}
			// With inbox records a key is remembered for as long as its inbox record, whatever the documents ask for: see TestInboxRecords.
			ttl := s.options == nil
			storetest.Run(t, open, storetest.Options{Bubble: true, TTL: ttl, Changes: !ttl, TTLDelay: time.Second, Remove: remove})
		})
	}
}

func TestTheStoreKeepsTheContractOverSockets(t *testing.T) {
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			open := func(t *testing.T) worker.Store {
				e := newEnv(t, setup{unopened: true})
				e.options.Transport = nil
				door(t, e.account, &e.options)
				e.open()
				return e.store
			}
			storetest.Run(t, open, storetest.Options{})
		})
	}
}

// The variables with which the contract runs against a real account, or one of Microsoft's emulators.
const (
	endpointVariable  = "COSMOSSTORE_TEST_ENDPOINT"
	keyVariable       = "COSMOSSTORE_TEST_KEY"
	databaseVariable  = "COSMOSSTORE_TEST_DATABASE"
	containerVariable = "COSMOSSTORE_TEST_CONTAINER"
)

func TestTheStoreKeepsTheContractOnARealAccount(t *testing.T) {
	o := cosmosstore.Options{
		Endpoint: os.Getenv(endpointVariable), Key: cosmosstore.Key(os.Getenv(keyVariable)),
		Database: cmp.Or(os.Getenv(databaseVariable), database), Container: cmp.Or(os.Getenv(containerVariable), container),
	}
	if o.Endpoint == "" || o.Key == "" {
		t.Skipf("set %s and %s to run the contract against a real account", endpointVariable, keyVariable)
	}
	open := func(t *testing.T) worker.Store {
		s, err := cosmosstore.Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	storetest.Run(t, open, storetest.Options{})
}

// TestRandomFaultsLoseAndDoubleNothing sends messages through a store whose requests are lost, delayed and refused by a
// seed, each until it is settled. Every message must end created once or recognised, and its documents complete.
func TestRandomFaultsLoseAndDoubleNothing(t *testing.T) {
	choices := []fault.Choice{
		{Op: "cosmosdb.*", Phase: fault.Before, Probability: 0.05, Action: fault.DropReply()},
		{Op: "cosmosdb.*", Phase: fault.After, Probability: 0.1, Action: fault.DropReply()},
		{Op: "cosmosdb.*", Phase: fault.After, Probability: 0.05, Action: fault.Action{Kind: fault.Drop, Condition: cosmosdb.StreamReset}},
		{Op: "cosmosdb.*", Phase: fault.Before, Probability: 0.05, Action: fault.Reply(503, 0)},
		{Op: "cosmosdb.*", Phase: fault.After, Probability: 0.05, Action: fault.Reply(408, 0)},
		{Op: "cosmosdb.*", Phase: fault.Before, Probability: 0.05, Action: fault.Throttle(20 * time.Millisecond)},
		{Op: "cosmosdb.create", Phase: fault.Before, Probability: 0.05, Action: fault.Reply(449, 0)},
		{Op: "cosmosdb.read", Phase: fault.Before, Probability: 0.2, Action: fault.Action{Kind: fault.Lag}},
		{Op: "cosmosdb.*", Phase: fault.After, Probability: 0.1, Action: fault.Wait(30 * time.Millisecond)},
	}
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			inBubble(t, setup{unopened: true, account: func(o *cosmosdb.Options) { o.Faults = fault.Seed(seed, choices...) }}, func(e *env) {
				e.open()
				done := make(chan error)
				const copies, keys = 3, 10
				for i := range copies * keys {
					go func() { done <- e.settle(i%keys, i) }()
				}
				for range copies * keys {
					require.NoError(e.t, <-done)
				}
				require.Equal(e.t, keys+keys/2*2, e.account.Count(database, container), "each order once, half of them with two lines")
			})
		})
	}
}

// settle delivers one copy of a message until the store knows it as committed.
func (e *env) settle(key, delivery int) error {
	body := fmt.Sprintf(`{"n":%d}`, key)
	var parts []worker.Document
	if key%2 == 1 {
		parts = lines(2)
	}
	for range 50 {
		c := commit(fmt.Sprintf("m-%d", key), body, parts...)
		o, err := e.store.Commit(e.ctx(), c)
		if err == nil {
			if j := judge(c, o, body); !j.Committed() {
				return fmt.Errorf("delivery %d of m-%d is judged %v", delivery, key, j)
			}
			return nil
		}
		if !passing(err) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-e.ctx().Done():
			return context.Cause(e.ctx())
		}
	}
	return fmt.Errorf("delivery %d of m-%d was never committed", delivery, key)
}

// passing reports whether an error may pass with another delivery.
func passing(err error) bool {
	if _, ok := errors.AsType[*worker.UnavailableError](err); ok {
		return true
	}
	_, ok := errors.AsType[*worker.UncertainError](err)
	return ok
}
