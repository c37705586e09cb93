package app

import (
	"slices"
	"time"

	"github.com/orderworker/orderworker/worker/admission"
)

// settings is the table of all settings, in the order in which people meet them, each with the field of the configuration that it
// sets. The README's table is made from it.
func (c *config) settings() []setting {
	return slices.Concat(c.brokerSettings(), c.storeSettings(), c.workSettings(), c.retrySettings(), c.outboxSettings(), c.operationSettings())
}

func (c *config) brokerSettings() []setting {
	return []setting{
		{"SERVICEBUS_NAMESPACE_FQDN", "namespace", "", text(&c.namespace), "Service Bus namespace, such as shop.servicebus.windows.net; used with a managed identity or your own sign-in"},
		{"SERVICEBUS_CONNECTION_STRING", "", "", text(&c.connectionString), "connection string, instead of the namespace; only for an emulator on this machine unless WORKER_ALLOW_KEYS is true"},
		{"SERVICEBUS_QUEUE", "queue", "orders", parsed("string", &c.queue, queueName), "queue to receive from"},
		{"SERVICEBUS_TOPIC", "topic", "", parsed("string", &c.topic, queueName), "topic, with a subscription, in place of a queue"},
		{"SERVICEBUS_SUBSCRIPTION", "subscription", "", parsed("string", &c.subscription, queueName), "subscription of the topic to receive from; its name is that of the consumer unless WORKER_CONSUMER gives another"},
		{"SERVICEBUS_SESSIONS", "sessions", "false", yesNo(&c.worker.Sessions), "whether the queue requires sessions: the messages of one are then processed in order, and WORKER_CONCURRENCY is the number of sessions at once"},
		{"WORKER_ALLOW_KEYS", "allow-keys", "false", yesNo(&c.allowKeys), "allow connection strings and account keys for hosts other than this machine"},
	}
}

func (c *config) storeSettings() []setting {
	return []setting{
		{"COSMOS_ENDPOINT", "cosmos-endpoint", "", text(&c.store.Endpoint), "Cosmos DB account, such as https://shop.documents.azure.com"},
		{"COSMOS_KEY", "", "", text(&c.store.Key), "account key, instead of an identity; only for an emulator on this machine unless WORKER_ALLOW_KEYS is true"},
		{"COSMOS_DATABASE", "database", "orders", text(&c.store.Database), "database"},
		{"COSMOS_CONTAINER", "container", "orders", text(&c.store.Container), "container for the documents"},
	}
}

func (c *config) workSettings() []setting {
	return []setting{
		{"WORKER_CONCURRENCY", "concurrency", "16", whole(&c.worker.Concurrency, 1, 1000), "messages in work at once"},
		{"WORKER_SESSION_IDLE", "session-idle", "2s", duration(&c.worker.SessionIdle, time.Millisecond, 5*time.Minute), "how long a session without messages is kept before another is accepted; at most half the lock duration"},
		{"WORKER_LOCK_DURATION", "lock-duration", "1m", duration(&c.worker.LockDuration, 5*time.Second, 5*time.Minute), "lock duration that the queue is configured with, from 5s to 5m"},
		{"WORKER_MAX_DELIVERY_COUNT", "max-delivery-count", "10", whole(&c.worker.MaxDeliveryCount, 1, 2000), "maximum delivery count that the queue is configured with"},
		{"WORKER_HANDLER_TIMEOUT", "handler-timeout", "2m", duration(&c.worker.HandlerTimeout, time.Millisecond, 24*time.Hour), "time that one run of the handler may take"},
		{"WORKER_DRAIN_TIMEOUT", "drain-timeout", "25s", duration(&c.worker.DrainTimeout, 100*time.Millisecond, 24*time.Hour), "time to finish messages after a stop was asked for; less than the platform's grace period"},
		{"WORKER_CONSUMER", "consumer", "", text(&c.worker.Admission.Consumer), "name of this consumer, part of every key, where several consumers share a container"},
		{"WORKER_KEY", "key", "message-id", parsed("string", &c.worker.Admission.KeySource, admission.ParseKeySource), "what identifies a message: message-id, property:NAME, body:/json/pointer or cloudevents"},
		{"WORKER_PARTITION", "partition", "key", parsed("string", &c.worker.Admission.Partition, admission.ParsePartitionSource), "logical partition of a message's record and effects: key (one of its own), property:NAME, body:/json/pointer, session-id or partition-key"},
		{"WORKER_LOOK_FIRST", "look-first", "redelivered", either(&c.worker.LookFirst, "redelivered", "always"), "which messages are looked up before the handler runs: redelivered, or always to spare it the duplicates that senders make, for one read each"},
		{"WORKER_HASH_IGNORE", "hash-ignore", "", pointers(&c.worker.Admission.Ignore), "JSON pointers that do not count when two messages are compared, such as /sentAt,/trace/id"},
		{"WORKER_HASH_ONLY", "hash-only", "", pointers(&c.worker.Admission.Only), "JSON pointers that alone count when two messages are compared"},
		{"WORKER_HASH_FORM", "hash-form", "json", oneOf(&c.worker.Admission.Form, "json", "bytes"), "json compares content, bytes compares every byte"},
		{"WORKER_BODY_MAX_BYTES", "body-max-bytes", "1900000", whole(&c.worker.Admission.Body.MaxBytes, 1, 2_000_000), "largest body after decompression"},
		{"WORKER_LEGACY_BODIES", "legacy-bodies", "unwrap", either(&c.worker.Admission.Body.RefuseDataContract, "unwrap", "reject"), "unwrap or reject the envelopes of the old .NET library"},
		{"WORKER_UNWRAP_STRINGS", "unwrap-strings", "false", yesNo(&c.worker.Admission.UnwrapJSONString), "take a body that is a JSON string holding JSON for that JSON, once"},
		{"WORKER_INBOX_RECORD", "inbox-record", "false", yesNo(&c.store.InboxRecords), "make the inbox record a small document of its own, beside the documents of the message in the same logical partition"},
		{"WORKER_INBOX_RECORD_TTL", "inbox-record-ttl", "", duration(&c.store.InboxRecordTTL, time.Minute, longest), "remove such an inbox record after this time, which is how long a key is remembered; empty keeps it for ever"},
		{"WORKER_CLOUDEVENT_DATA", "cloudevent-data", "false", yesNo(&c.worker.Admission.CloudEventData), "store and compare only the data of a structured CloudEvent"},
	}
}

// retrySettings say what is tried again, how often and for how long. docs/operations.md has them all in one table.
func (c *config) retrySettings() []setting {
	return []setting{
		{"WORKER_RETRY_ATTEMPTS", "retry-attempts", "4", whole(&c.worker.Retry.Attempts, 1, 100), "tries of a message within one delivery, the first included"},
		{"WORKER_RETRY_BASE", "retry-base", "500ms", duration(&c.worker.Retry.Base, time.Millisecond, longest), "bound of the wait before the second try, which doubles with each try; waits are drawn evenly below their bound"},
		{"WORKER_RETRY_MAX", "retry-max", "15s", duration(&c.worker.Retry.Max, time.Millisecond, longest), "bound that the waits between tries never exceed"},
		{"WORKER_RETRY_HOLD", "retry-hold", "10m", duration(&c.worker.Retry.HoldFor, time.Second, longest), "how long a message is held with its lock renewed while the store is unavailable or the handler asks for a later retry; doubles with each delivery"},
		{"WORKER_RETRY_SPREAD", "retry-spread", "2h", duration(&c.worker.Retry.Spread, time.Millisecond, 24*time.Hour), "time over which the deliveries of a message whose handler fails are spread: half of it passes before the last, a quarter before the one before, and so on"},
		{"WORKER_STORE_TIMEOUT", "store-timeout", "", duration(&c.worker.StoreTimeout, 100*time.Millisecond, longest), "time that one commit may take with the retries in it; empty means 10s, or a quarter of the lock duration when that is less"},
		{"WORKER_BREAKER_FAILURES", "breaker-failures", "5", whole(&c.worker.Breaker.Failures, 1, 1000), "consecutive unavailable results of the store that open the circuit breaker, which stops receiving"},
		{"WORKER_BREAKER_PROBE_BASE", "breaker-probe-base", "1s", duration(&c.worker.Breaker.ProbeBase, time.Millisecond, longest), "bound of the wait before the first probe of a store that is unavailable, which doubles with each probe"},
		{"WORKER_BREAKER_PROBE_MAX", "breaker-probe-max", "30s", duration(&c.worker.Breaker.ProbeMax, time.Millisecond, longest), "bound that the waits between probes never exceed"},
		{"WORKER_WATCHDOG_SILENCE", "watchdog-silence", "15s", duration(&c.worker.Watchdog.Silence, time.Second, longest), "how long one receive call waits before the queue is looked at"},
		{"WORKER_WATCHDOG_STUCK", "watchdog-stuck", "10s", duration(&c.worker.Watchdog.Stuck, time.Millisecond, longest), "how long a call of the broker's client may overrun its own bound before it is abandoned"},
		{"WORKER_WATCHDOG_NOT_RECEIVING", "watchdog-not-receiving", "", duration(&c.worker.Watchdog.NotReceiving, time.Second, longest), "how long one message may wait while none arrives before the worker is not ready; empty means the handler timeout and two lock durations, at least the silence"},
	}
}

func (c *config) outboxSettings() []setting {
	o := &c.worker.Outbox
	return []setting{
		{"WORKER_DESTINATIONS", "destinations", "", entities(&o.Destinations), "queues and topics of the namespace that the handler may send messages to, such as stock,order-events"},
		{"WORKER_MESSAGE_MAX_BYTES", "message-max-bytes", "262144", whole(&o.MaxMessageBytes, 8<<10, 100<<20), "largest message that the destinations take; the default is the bound of the tier Standard"},
		{"WORKER_OUTBOX_EVERY", "outbox-every", "1m", duration(&o.SweepEvery, time.Second, longest), "how often the store is searched for committed messages that no delivery has sent"},
		{"WORKER_OUTBOX_AFTER", "outbox-after", "1m", duration(&o.SweepAfter, 10*time.Second, longest), "how long such messages must have been left alone, so that nothing is sent twice on purpose"},
	}
}

func (c *config) operationSettings() []setting {
	return []setting{
		{"WORKER_HEALTH_ADDRESS", "health-address", "127.0.0.1:8080", text(&c.healthAddress), "address of /livez and /readyz; off turns them off"},
		{"WORKER_LOG_LEVEL", "log-level", "info", level(&c.logLevel), "debug, info, warn or error"},
		{"WORKER_LOG_FORMAT", "log-format", "", oneOf(&c.logFormat, "json", "text"), "json, or text for people with a line for each message; empty means text on a terminal and json elsewhere"},
		{"WORKER_LOG_DETAIL", "log-detail", "text", oneOf(&c.logDetail, detailText, detailHash), "text, or hash to keep the names of members of a body out of log lines about messages"},
		{"WORKER_MESSAGE_TTL", "message-ttl", "336h", duration(&c.store.Lifetime.TimeToLive, time.Second, longest), "time to live that the queue is configured with"},
		{"WORKER_REVIEW_WINDOW", "review-window", "336h", duration(&c.store.Lifetime.Review, 0, longest), "how long after its arrival a dead letter may still be reprocessed"},
		{"WORKER_DUPLICATE_DETECTION_WINDOW", "duplicate-detection-window", "", duration(&c.duplicateWindow, 0, 7*24*time.Hour), "duplicate detection window of the queue, 0s when it is off; empty means unknown, which counts as the longest"},
	}
}
