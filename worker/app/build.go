package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/tracing/azotel"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
)

// quiet is where commands report to that a person waits for: nowhere.
func quiet() (*telemetry, *slog.Logger) { return &telemetry{}, slog.New(slog.DiscardHandler) }

// inboxRecords tells whether each message gets an inbox record of its own: when that was asked for, and when the effects of a
// message are in a partition that it shares, or on documents that are not its own, or when it is claimed.
func (c config) inboxRecords() bool {
	return c.store.InboxRecords || c.program.Changes || c.program.Claim.Lease > 0 || !c.worker.Admission.Partition.IsKey()
}

// workerConfig is the whole configuration of the worker.
func (c config) workerConfig(t *telemetry, log *slog.Logger) worker.Config {
	w := c.worker
	w.Program, w.Version, w.ServerAddress = c.program.Name, c.program.Version, c.brokerHost()
	w.Logger, w.TracerProvider, w.MeterProvider = log, t.tracers, t.meters
	return w
}

// storeOptions are all options of the store.
func (k *connector) storeOptions(t *telemetry, log *slog.Logger) cosmosstore.Options {
	o := k.config.store
	o.Types, o.InboxRecords = k.config.program.Types, k.config.inboxRecords()
	o.Lifetime.Lock, o.Lifetime.Deliveries = k.config.worker.LockDuration, k.config.worker.MaxDeliveryCount
	o.ApplicationID, o.Logger = applicationID(k.config.program.Name), log
	if t.tracers != nil {
		o.Tracing = azotel.NewTracingProvider(t.tracers, nil)
	}
	if o.Key == "" {
		o.Credential = k.credential
	}
	return o
}

// openTimeout bounds the first look at the store. One that is silent is asked again later, and must not keep the health
// endpoint from coming up.
const openTimeout = 5 * time.Second

// openStore opens the store. It fails only for what no waiting can fix.
func (k *connector) openStore(ctx context.Context, t *telemetry, log *slog.Logger) (*cosmosstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return cosmosstore.Open(ctx, k.storeOptions(t, log))
}

// outbox adds the sender to where messages go, if they go anywhere.
func (k *connector) outbox(c worker.OutboxConfig) worker.OutboxConfig {
	if len(c.Destinations) > 0 {
		c.Sender = worker.NewSender(k.serviceBus)
	}
	return c
}

// broker opens receivers on the queue, each with a client of its own.
func (k *connector) broker() worker.Broker {
	if k.config.topic != "" {
		return worker.NewSubscriptionBroker(k.serviceBus, k.config.topic, k.config.subscription)
	}
	return worker.NewBroker(k.serviceBus, k.config.queue)
}

// receiver opens a receiver on the queue or the subscription.
func (k *connector) receiver(client *azservicebus.Client) (*azservicebus.Receiver, error) {
	if k.config.topic != "" {
		return client.NewReceiverForSubscription(k.config.topic, k.config.subscription, nil)
	}
	return client.NewReceiverForQueue(k.config.queue, nil)
}
