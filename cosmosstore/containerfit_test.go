package cosmosstore_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

func keyed(path string) func(*cosmosdb.ContainerSpec) {
	return func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{path} }
}

func types(names ...string) func(*cosmosstore.Options) {
	return func(o *cosmosstore.Options) { o.Types = names }
}

// replaceContainer deletes the container as a person would, and creates one with another partition key.
func (e *env) replaceContainer(path string) {
	e.t.Helper()
	key, err := azcosmos.NewKeyCredential(e.account.Key())
	require.NoError(e.t, err)
	client, err := azcosmos.NewClientWithKey(e.options.Endpoint, key, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: e.account.Transport()},
	})
	require.NoError(e.t, err)
	defer client.Close()
	c, err := client.NewContainer(database, container)
	require.NoError(e.t, err)
	_, err = c.Delete(e.ctx(), nil)
	require.NoError(e.t, err)
	spec := cosmosdb.ContainerSpec{ID: container, PartitionKey: []string{path}, DefaultTTL: -1, IndexNothing: true}
	require.NoError(e.t, e.account.CreateContainer(database, spec))
}

func TestAContainerThatCannotHoldTheTypesIsRefusedAtTheStart(t *testing.T) {
	for path, tt := range map[string]struct {
		types []string
		says  string
	}{
		"/id":      {[]string{"order", "line"}, "every document is alone"},
		"/order":   {[]string{"order"}, `documents of type "order"`},
		"/line/id": {[]string{"order", "line"}, `documents of type "line"`},
	} {
		t.Run(path, func(t *testing.T) {
			inBubble(t, setup{unopened: true, container: keyed(path), options: types(tt.types...)}, func(e *env) {
				_, err := cosmosstore.Open(e.ctx(), e.options)
				require.ErrorContains(e.t, err, tt.says)
				requireAs[*worker.MisconfiguredError](e.t, err)
				require.Contains(e.t, texts(cosmosstore.Findings(err)), "/pk")
			})
		})
	}
	for path, names := range map[string][]string{"/id": {"order"}, "/pk": {"order", "line"}, "/tenant/order": {"order", "line"}} {
		t.Run(path+" fits", func(t *testing.T) {
			inBubble(t, setup{container: keyed(path), options: types(names...)}, func(e *env) {
				require.True(e.t, e.commit(commit("1", `{}`)).Created)
			})
		})
	}
}

// TestAMessageThatDoesNotFitTheContainerHoldsTheStore tells the store no types, so that only messages show what it must hold.
func TestAMessageThatDoesNotFitTheContainerHoldsTheStore(t *testing.T) {
	for path, parts := range map[string]int{"/id": 2, "/order": 0, "/order/id": 0, "/line": 1, "/line/id": 2} {
		t.Run(path, func(t *testing.T) {
			inBubble(t, setup{container: keyed(path)}, func(e *env) {
				require.NoError(e.t, e.store.Ready(e.ctx()))
				for range 2 {
					_, err := e.store.Commit(e.ctx(), commit("1", `{}`, lines(parts)...))
					require.Contains(e.t, requireAs[*worker.MisconfiguredError](e.t, err).Fix, "/pk")
					requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))
					require.Equal(e.t, cosmosstore.Fault, e.store.Check(e.ctx())[0].Severity)
					time.Sleep(10 * time.Minute)
				}
				e.replaceContainer("/pk")
				require.NoError(e.t, e.store.Ready(e.ctx()))
				require.True(e.t, e.commit(commit("1", `{}`, lines(parts)...)).Created)
				require.Empty(e.t, e.store.Check(e.ctx()))
			})
		})
	}
}

// TestAContainerThatIsReplacedByOneThatFitsNoMessageHoldsTheStore replaces the container of a store that is in use, by one
// whose other key only the service's refusal shows.
func TestAContainerThatIsReplacedByOneThatFitsNoMessageHoldsTheStore(t *testing.T) {
	for _, path := range []string{"/id", "/order", "/line/id", "/tenant", "/type"} {
		for name, set := range map[string]func(*cosmosstore.Options){"types are known": types("order", "line"), "types are not known": types()} {
			t.Run(path+", "+name, func(t *testing.T) {
				inBubble(t, setup{options: set}, func(e *env) {
					e.commit(commit("1", `{}`, lines(2)...))
					e.replaceContainer(path)
					var err error
					for range 3 {
						_, err = e.store.Commit(e.ctx(), commit("2", `{}`, lines(2)...))
						if path == "/tenant" && err == nil {
							return // the store writes into any member that is nobody's
						}
						requireAs[*worker.MisconfiguredError](e.t, err)
					}
					require.NotEqual(e.t, "/tenant", path)
					requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))
				})
			})
		}
	}
}

func TestATimeToLiveThatTheContainerIgnoresHoldsTheStoreUntilItIsOn(t *testing.T) {
	inBubble(t, setup{container: func(s *cosmosdb.ContainerSpec) { s.DefaultTTL = 0 }}, func(e *env) {
		c := commit("1", `{}`)
		c.Documents[0].TTL = time.Hour
		_, err := e.store.Commit(e.ctx(), c)
		requireAs[*worker.MisconfiguredError](e.t, err)
		requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))
		e.faults.Add(fault.On(history.ReadContainer).Always().Before(fault.Action{Kind: fault.Refuse, Status: 200,
			Body: `{"id":"orders","_rid":"x","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1}`}))
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.True(e.t, e.commit(c).Created)
	})
}
