package snapshots_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/infra/snapshots"
)

func TestContainerEnvironmentIsThatOfTheTemplate(t *testing.T) {
	variables, err := snapshots.ContainerEnvironment()
	require.NoError(t, err)
	require.Equal(t, "ManagedIdentityCredential", variables["AZURE_TOKEN_CREDENTIALS"])
	require.Equal(t, "orders", variables["SERVICEBUS_QUEUE"])
	require.Equal(t, "60s", variables["WORKER_LOCK_DURATION"])
	for name, value := range variables {
		require.NotEmpty(t, value, name)
	}
}
