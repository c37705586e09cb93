package app

import (
	"slices"
	"time"
)

// settings is the table of all settings, in the order in which people meet them. The README's table is made from it, and a
// test holds the two together.
func settings() []setting {
	return slices.Concat(brokerSettings(), storeSettings(), workSettings(), retrySettings(), operationSettings())
}

// pick returns the rows of some variables.
func pick(names ...string) []setting {
	return slices.DeleteFunc(settings(), func(s setting) bool { return !slices.Contains(names, s.env) })
}

func brokerSettings() []setting {
	return []setting{
		{"SERVICEBUS_NAMESPACE_FQDN", "namespace", "", "Service Bus namespace, such as shop.servicebus.windows.net; used with a managed identity or your own sign-in", text(func(c *config) *string { return &c.namespace })},
		{"SERVICEBUS_CONNECTION_STRING", "", "", "connection string, instead of the namespace; only for an emulator on this machine unless WORKER_ALLOW_KEYS is true", text(func(c *config) *string { return &c.connectionString })},
		{"SERVICEBUS_QUEUE", "queue", "orders", "queue to receive from", kind{"string", queueName}},
		{"WORKER_ALLOW_KEYS", "allow-keys", "false", "allow connection strings and account keys for hosts other than this machine", yesNo(func(c *config) *bool { return &c.allowKeys })},
	}
}

func storeSettings() []setting {
	return []setting{
		{"COSMOS_ENDPOINT", "cosmos-endpoint", "", "Cosmos DB account, such as https://shop.documents.azure.com", text(func(c *config) *string { return &c.cosmosEndpoint })},
		{"COSMOS_KEY", "", "", "account key, instead of an identity; only for an emulator on this machine unless WORKER_ALLOW_KEYS is true", text(func(c *config) *string { return &c.cosmosKey })},
		{"COSMOS_DATABASE", "database", "orders", "database", text(func(c *config) *string { return &c.database })},
		{"COSMOS_CONTAINER", "container", "orders", "container for the documents", text(func(c *config) *string { return &c.container })},
	}
}

func workSettings() []setting {
	return []setting{
		{"WORKER_CONCURRENCY", "concurrency", "16", "messages in work at once", whole(func(c *config) *int { return &c.concurrency }, 1, 1000)},
		{"WORKER_LOCK_DURATION", "lock-duration", "1m", "lock duration that the queue is configured with, from 5s to 5m", duration(func(c *config) *time.Duration { return &c.lockDuration }, 5*time.Second, 5*time.Minute)},
		{"WORKER_MAX_DELIVERY_COUNT", "max-delivery-count", "10", "maximum delivery count that the queue is configured with", whole(func(c *config) *int { return &c.maxDeliveries }, 1, 2000)},
		{"WORKER_HANDLER_TIMEOUT", "handler-timeout", "2m", "time that one run of the handler may take", duration(func(c *config) *time.Duration { return &c.handlerTimeout }, time.Millisecond, 24*time.Hour)},
		{"WORKER_DRAIN_TIMEOUT", "drain-timeout", "25s", "time to finish messages after a stop was asked for; less than the platform's grace period", duration(func(c *config) *time.Duration { return &c.drainTimeout }, 100*time.Millisecond, 24*time.Hour)},
		{"WORKER_CONSUMER", "consumer", "", "name of this consumer, part of every key, where several consumers share a container", text(func(c *config) *string { return &c.consumer })},
		{"WORKER_KEY", "key", "message-id", "what identifies a message: message-id, property:NAME, body:/json/pointer or cloudevents", text(func(c *config) *string { return &c.keySource })},
		{"WORKER_PARTITION", "partition", "key", "logical partition of a message's record and effects: key (one of its own), property:NAME, body:/json/pointer, session-id or partition-key", text(func(c *config) *string { return &c.partition })},
		{"WORKER_LOOK_FIRST", "look-first", "redelivered", "which messages are looked up before the handler runs: redelivered, or always to spare it the duplicates that senders make, for one read each", oneOf(func(c *config) *string { return &c.lookFirst }, "redelivered", "always")},
		{"WORKER_HASH_IGNORE", "hash-ignore", "", "JSON pointers that do not count when two messages are compared, such as /sentAt,/trace/id", pointers(func(c *config) *[]string { return &c.hashIgnore })},
		{"WORKER_HASH_ONLY", "hash-only", "", "JSON pointers that alone count when two messages are compared", pointers(func(c *config) *[]string { return &c.hashOnly })},
		{"WORKER_HASH_FORM", "hash-form", "json", "json compares content, bytes compares every byte", oneOf(func(c *config) *string { return &c.hashForm }, "json", "bytes")},
		{"WORKER_BODY_MAX_BYTES", "body-max-bytes", "1900000", "largest body after decompression", whole(func(c *config) *int { return &c.bodyMaxBytes }, 1, 2_000_000)},
		{"WORKER_LEGACY_BODIES", "legacy-bodies", "unwrap", "unwrap or reject the envelopes of the old .NET library", oneOf(func(c *config) *string { return &c.legacyBodies }, "unwrap", "reject")},
		{"WORKER_UNWRAP_STRINGS", "unwrap-strings", "false", "take a body that is a JSON string holding JSON for that JSON, once", yesNo(func(c *config) *bool { return &c.unwrapStrings })},
		{"WORKER_INBOX_RECORD", "inbox-record", "false", "make the inbox record a small document of its own, beside the documents of the message in the same logical partition", yesNo(func(c *config) *bool { return &c.markers })},
		{"WORKER_INBOX_RECORD_TTL", "inbox-record-ttl", "", "remove such an inbox record after this time, which is how long a key is remembered; empty keeps it for ever", duration(func(c *config) *time.Duration { return &c.markerTTL }, time.Minute, longest)},
		{"WORKER_CLOUDEVENT_DATA", "cloudevent-data", "false", "store and compare only the data of a structured CloudEvent", yesNo(func(c *config) *bool { return &c.cloudEventData })},
	}
}

// retrySettings say what is tried again, how often and for how long. docs/operations.md has them all in one table.
func retrySettings() []setting {
	return []setting{
		{"WORKER_RETRY_ATTEMPTS", "retry-attempts", "4", "tries of a message within one delivery, the first included", whole(func(c *config) *int { return &c.retry.Attempts }, 1, 100)},
		{"WORKER_RETRY_BASE", "retry-base", "500ms", "bound of the wait before the second try, which doubles with each try; waits are drawn evenly below their bound", duration(func(c *config) *time.Duration { return &c.retry.Base }, time.Millisecond, longest)},
		{"WORKER_RETRY_MAX", "retry-max", "15s", "bound that the waits between tries never exceed", duration(func(c *config) *time.Duration { return &c.retry.Max }, time.Millisecond, longest)},
		{"WORKER_RETRY_HOLD", "retry-hold", "10m", "how long a message is held with its lock renewed while the store is unavailable or the handler asks for a later retry; doubles with each delivery", duration(func(c *config) *time.Duration { return &c.retry.HoldFor }, time.Second, longest)},
		{"WORKER_STORE_TIMEOUT", "store-timeout", "", "time that one commit may take with the retries in it; empty means 10s, or a quarter of the lock duration when that is less", duration(func(c *config) *time.Duration { return &c.storeTimeout }, 100*time.Millisecond, longest)},
		{"WORKER_BREAKER_FAILURES", "breaker-failures", "5", "consecutive unavailable results of the store that open the circuit breaker, which stops receiving", whole(func(c *config) *int { return &c.breaker.Failures }, 1, 1000)},
		{"WORKER_BREAKER_PROBE_BASE", "breaker-probe-base", "1s", "bound of the wait before the first probe of a store that is unavailable, which doubles with each probe", duration(func(c *config) *time.Duration { return &c.breaker.ProbeBase }, time.Millisecond, longest)},
		{"WORKER_BREAKER_PROBE_MAX", "breaker-probe-max", "30s", "bound that the waits between probes never exceed", duration(func(c *config) *time.Duration { return &c.breaker.ProbeMax }, time.Millisecond, longest)},
		{"WORKER_WATCHDOG_SILENCE", "watchdog-silence", "1m", "how long one receive call waits before the queue is looked at", duration(func(c *config) *time.Duration { return &c.watchdog.Silence }, time.Second, longest)},
		{"WORKER_WATCHDOG_STUCK", "watchdog-stuck", "10s", "how long a call of the broker's client may overrun its own bound before it is abandoned", duration(func(c *config) *time.Duration { return &c.watchdog.Stuck }, time.Millisecond, longest)},
		{"WORKER_WATCHDOG_NOT_RECEIVING", "watchdog-not-receiving", "", "how long one message may wait while none arrives before the worker is not ready; empty means the handler timeout and two lock durations, at least the silence", duration(func(c *config) *time.Duration { return &c.watchdog.NotReceiving }, time.Second, longest)},
	}
}

func operationSettings() []setting {
	return []setting{
		{"WORKER_HEALTH_ADDRESS", "health-address", "127.0.0.1:8080", "address of /livez and /readyz; off turns them off", text(func(c *config) *string { return &c.healthAddress })},
		{"WORKER_LOG_LEVEL", "log-level", "info", "debug, info, warn or error", oneOf(func(c *config) *string { return &c.logLevel }, "debug", "info", "warn", "error")},
		{"WORKER_LOG_FORMAT", "log-format", "", "json, or text for people with a line for each message; empty means text on a terminal and json elsewhere", oneOf(func(c *config) *string { return &c.logFormat }, "json", "text")},
		{"WORKER_LOG_DETAIL", "log-detail", "text", "text, or hash to keep the names of members of a body out of log lines about messages", oneOf(func(c *config) *string { return &c.logDetail }, detailText, detailHash)},
		{"WORKER_MESSAGE_TTL", "message-ttl", "336h", "time to live that the queue is configured with", duration(func(c *config) *time.Duration { return &c.messageTTL }, time.Second, longest)},
		{"WORKER_REVIEW_WINDOW", "review-window", "336h", "how long after its arrival a dead letter may still be reprocessed", duration(func(c *config) *time.Duration { return &c.reviewWindow }, 0, longest)},
		{"WORKER_DUPLICATE_DETECTION_WINDOW", "duplicate-detection-window", "", "duplicate detection window of the queue, 0s when it is off; empty means unknown, which counts as the longest", duration(func(c *config) *time.Duration { return &c.duplicateWindow }, 0, 7*24*time.Hour)},
	}
}
