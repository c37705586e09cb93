package worker_test

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

func noClient() (*azservicebus.Client, error) { return nil, nil }

func noDocuments(context.Context, worker.Message) (worker.Effects, error) {
	return worker.Effects{}, nil
}

func TestWhatIsMissingIsSaidBeforeTheFirstMessage(t *testing.T) {
	broker, store, handler := worker.NewBroker(noClient, "orders"), storetest.NewMem(), worker.HandlerFunc(noDocuments)
	for _, tt := range []struct {
		name    string
		broker  worker.Broker
		store   worker.Store
		handler worker.Handler
		says    string
	}{
		{"no broker", nil, store, handler, "a broker is needed"},
		{"no store", broker, nil, handler, "a store and a handler are needed"},
		{"the store of an open that failed", broker, (*storetest.Mem)(nil), handler, "a store and a handler are needed"},
		{"no handler", broker, store, nil, "a store and a handler are needed"},
		{"a function that is nil", broker, store, worker.HandlerFunc(nil), "a store and a handler are needed"},
		{"no queue", worker.NewBroker(noClient, ""), store, handler, "name of a queue"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := worker.New(worker.Config{}, tt.broker, tt.store, tt.handler)
			require.ErrorContains(t, err, tt.says)
		})
	}
	_, err := worker.New(worker.Config{Observer: worker.ObserverFunc(nil)}, broker, store, handler)
	require.NoError(t, err, "there may be no observer")
}

func TestABrokerSaysWhatIsWrongWithItsClients(t *testing.T) {
	shared, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true", nil)
	require.NoError(t, err)
	for _, tt := range []struct {
		name   string
		client func() (*azservicebus.Client, error)
		says   string
	}{
		{"no function", nil, "given no function"},
		{"no client and no error", noClient, "neither a client nor an error"},
		{"one client for all receivers", func() (*azservicebus.Client, error) { return shared, nil }, "a new client each time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := worker.NewBroker(tt.client, "orders")
			r, err := b.Open(t.Context())
			if err == nil {
				require.NoError(t, r.Close(t.Context()))
				_, err = b.Open(t.Context())
			}
			require.ErrorContains(t, err, tt.says)
		})
	}
}
