package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/tracing/azotel"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

// admissionConfig is what the settings say of keys, bodies and fingerprints.
func (c config) admissionConfig() (admission.Config, error) {
	source, err := admission.ParseKeySource(c.keySource)
	partition, partitionErr := admission.ParsePartitionSource(c.partition)
	a := admission.Config{
		KeySource:        source,
		Partition:        partition,
		Consumer:         c.consumer,
		Body:             body.Options{MaxBytes: c.bodyMaxBytes, RefuseDataContract: c.legacyBodies == "reject"},
		CloudEventData:   c.cloudEventData,
		UnwrapJSONString: c.unwrapStrings,
		Form:             c.hashForm,
		Ignore:           c.hashIgnore,
		Only:             c.hashOnly,
	}
	return a, errors.Join(err, partitionErr)
}

// inboxRecords tells whether each message gets an inbox record of its own: when that was asked for, and when the effects of a
// message are in a partition that it shares, or on documents that are not its own.
func (c config) inboxRecords() bool {
	partition, err := admission.ParsePartitionSource(c.partition)
	return c.markers || c.program.Changes || err == nil && !partition.IsKey()
}

// workerConfig is what the settings say of the work.
func (c config) workerConfig(t *telemetry, log *slog.Logger) (worker.Config, error) {
	a, err := c.admissionConfig()
	return worker.Config{
		Concurrency:      c.concurrency,
		LockDuration:     c.lockDuration,
		MaxDeliveryCount: c.maxDeliveries,
		HandlerTimeout:   c.handlerTimeout,
		StoreTimeout:     c.storeTimeout,
		LookFirst:        c.lookFirst == "always",
		DrainTimeout:     c.drainTimeout,
		Retry:            c.retry,
		Breaker:          c.breaker,
		Watchdog:         c.watchdog,
		Admission:        a,
		Program:          c.program.Name,
		Version:          c.program.Version,
		ServerAddress:    c.brokerHost(),
		Logger:           log,
		TracerProvider:   t.tracers,
		MeterProvider:    t.meters,
	}, err
}

// storeOptions is what the settings say of the store.
func (k *connector) storeOptions(t *telemetry, log *slog.Logger) cosmosstore.Options {
	c := k.config
	o := cosmosstore.Options{
		Endpoint:       c.cosmosEndpoint,
		Key:            cosmosstore.Key(c.cosmosKey),
		Database:       c.database,
		Container:      c.container,
		Types:          c.program.Types,
		InboxRecords:   c.inboxRecords(),
		InboxRecordTTL: c.markerTTL,
		Lifetime: cosmosstore.Lifetime{
			Lock: c.lockDuration, Deliveries: c.maxDeliveries, TimeToLive: c.messageTTL, Review: c.reviewWindow,
		},
		ApplicationID: applicationID(c.program.Name),
		Logger:        log,
	}
	if t.tracers != nil {
		o.Tracing = azotel.NewTracingProvider(t.tracers, nil)
	}
	if c.cosmosKey == "" {
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

// broker opens receivers on the queue, each with a client of its own.
func (k *connector) broker() worker.Broker { return worker.NewBroker(k.serviceBus, k.config.queue) }
