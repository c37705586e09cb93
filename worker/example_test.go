package worker_test

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
)

// A whole program around a handler of your own. This function is its main.
func Example() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := consume(ctx, log)
	stop()
	if err != nil {
		log.LogAttrs(ctx, slog.LevelError, "worker ended", slog.String("error", err.Error()))
		os.Exit(1)
	}
}

func consume(ctx context.Context, log *slog.Logger) error {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return err
	}
	store, err := cosmosstore.Open(ctx, cosmosstore.Options{
		Endpoint: "https://shop.documents.azure.com", Credential: credential, Database: "orders", Container: "orders",
		Types: []string{"order"}, Logger: log,
	})
	if err != nil {
		return err
	}
	defer store.Close()
	// The worker gives each receiver a client of its own, so it asks for clients rather than taking one.
	broker := worker.NewBroker(func() (*azservicebus.Client, error) {
		return azservicebus.NewClient("shop.servicebus.windows.net", credential, nil)
	}, "orders")
	handle := worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
	})
	w, err := worker.New(worker.Config{Logger: log}, broker, store, handle)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
