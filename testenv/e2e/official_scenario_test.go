//go:build official

package e2e_test

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
)

// TestOfficialScenarioThroughThePublicClients runs the scenario against Microsoft's emulators, or against a real namespace and account, as the worker's own
// variables say. See testenv/compose.yaml. Against an emulator it makes the database and the container where they are
// missing; in Azure the templates have made them.
func TestOfficialScenarioThroughThePublicClients(t *testing.T) {
	connection, namespace := os.Getenv("SERVICEBUS_CONNECTION_STRING"), os.Getenv("SERVICEBUS_NAMESPACE_FQDN")
	endpoint, key := os.Getenv("COSMOS_ENDPOINT"), os.Getenv("COSMOS_KEY")
	if endpoint == "" || (connection == "" && namespace == "") {
		t.Skip("SERVICEBUS_CONNECTION_STRING or SERVICEBUS_NAMESPACE_FQDN, and COSMOS_ENDPOINT, say where to run this")
	}
	store := cosmosstore.Options{
		Endpoint: endpoint, Key: cosmosstore.Key(key),
		Database: cmp.Or(os.Getenv("COSMOS_DATABASE"), "orders"), Container: cmp.Or(os.Getenv("COSMOS_CONTAINER"), "orders"),
	}
	if key == "" {
		store.Credential = credential(t)
	}
	client := cosmosClient(t, store)
	if os.Getenv("ORDERWORKER_EMULATOR") != "" {
		makeContainer(t, client, store)
	}
	serviceBus, queue := func() (*azservicebus.Client, error) {
		if connection != "" {
			return azservicebus.NewClientFromConnectionString(connection, nil)
		}
		return azservicebus.NewClient(namespace, credential(t), nil)
	}, cmp.Or(os.Getenv("SERVICEBUS_QUEUE"), "orders")
	first, err := serviceBus()
	require.NoError(t, err)
	requireEmpty(t, first, queue)
	require.NoError(t, first.Close(t.Context()))
	perform(t, site{serviceBus: serviceBus, queue: queue, cosmos: client, store: store})
}

func credential(t *testing.T) azcore.TokenCredential {
	t.Helper()
	c, err := azidentity.NewDefaultAzureCredential(nil)
	require.NoError(t, err)
	return c
}

func cosmosClient(t *testing.T, o cosmosstore.Options) *azcosmos.Client {
	t.Helper()
	if o.Key == "" {
		client, err := azcosmos.NewClient(o.Endpoint, o.Credential, nil)
		require.NoError(t, err)
		return client
	}
	key, err := azcosmos.NewKeyCredential(string(o.Key))
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(o.Endpoint, key, nil)
	require.NoError(t, err)
	return client
}

// makeContainer makes what the templates make in Azure.
func makeContainer(t *testing.T, client *azcosmos.Client, o cosmosstore.Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: o.Database}, nil)
	tolerateExisting(t, err)
	database, err := client.NewDatabase(o.Database)
	require.NoError(t, err)
	never := int32(-1)
	_, err = database.CreateContainer(ctx, azcosmos.ContainerProperties{
		ID: o.Container, DefaultTimeToLive: &never,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Kind: azcosmos.PartitionKeyKindHash, Version: 2},
	}, nil)
	tolerateExisting(t, err)
}

func tolerateExisting(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	refused := new(azcore.ResponseError)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.StatusCode, "%v", err)
}
