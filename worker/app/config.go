package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/connstring"
	"github.com/orderworker/orderworker/worker"
)

// unknownWindow is a duplicate detection window that nobody has stated.
const unknownWindow time.Duration = -1

// config is what the settings say, before anything is built from it.
type config struct {
	program Program

	namespace, connectionString string
	// queue is the path of the queue, or that of the subscription of the topic.
	queue, topic, subscription string
	allowKeys                  bool
	// worker and store hold what settings say of them; workerConfig and storeOptions add the rest.
	worker worker.Config
	store  cosmosstore.Options

	healthAddress, logFormat, logDetail string
	logLevel                            slog.Level
	duplicateWindow                     time.Duration
}

// completed fills in what follows from other settings: the queue, whose path is that of the subscription where there is a topic, and the
// name of the consumer.
func (c config) completed() config {
	if c.topic != "" {
		c.queue = c.topic + "/Subscriptions/" + c.subscription
	}
	if c.worker.Admission.Consumer == "" {
		c.worker.Admission.Consumer = c.subscription
	}
	return c
}

// sendsTo is where messages for the worker are sent to.
func (c *config) sendsTo() string { return cmp.Or(c.topic, c.queue) }

// faultList gathers what is wrong.
type faultList []settingFault

func (l *faultList) add(wrong bool, env, format string, args ...any) {
	if wrong {
		*l = append(*l, settingFault{env, fmt.Sprintf(format, args...)})
	}
}

// checkBroker returns the faults of the settings for Service Bus that lie between settings rather than in one of them.
func (c *config) checkBroker() []settingFault {
	const fqdn = "SERVICEBUS_NAMESPACE_FQDN"
	var l faultList
	l.add(c.queue == "", "SERVICEBUS_QUEUE", "empty. Give the name of the queue")
	l.add(c.topic != "" && c.subscription == "", "SERVICEBUS_SUBSCRIPTION", "not set, and the topic %q is. Give the subscription of it", c.topic)
	l.add(c.topic == "" && c.subscription != "", "SERVICEBUS_TOPIC", "not set, and the subscription %q is. Give the topic that it is of", c.subscription)
	l.add(c.topic != "" && c.queue != "" && c.queue != "orders", "SERVICEBUS_QUEUE", "this and SERVICEBUS_TOPIC are both set. Keep one: a queue, or a topic with a subscription")
	switch {
	case c.namespace == "" && c.connectionString == "":
		l.add(true, fqdn, "not set. Give the namespace, such as shop.servicebus.windows.net, or for an emulator on this machine SERVICEBUS_CONNECTION_STRING")
	case c.namespace != "" && c.connectionString != "":
		l.add(true, fqdn, "this and SERVICEBUS_CONNECTION_STRING are both set. Keep one, so that it is plain which is used")
	case c.connectionString != "":
		return append(l, c.checkConnectionString()...)
	default:
		l.add(strings.ContainsAny(c.namespace, "/:@ \t\r\n;=") || !strings.Contains(c.namespace, "."), fqdn,
			"%q is not a host name. Give the full name without a scheme, such as shop.servicebus.windows.net", c.namespace)
	}
	return l
}

// checkConnectionString checks what can be told from the text, and never repeats any of it.
func (c *config) checkConnectionString() faultList {
	const env = "SERVICEBUS_CONNECTION_STRING"
	var l faultList
	parts, err := connstring.Parse(c.connectionString)
	l.add(err != nil, env, "%v. Copy it whole from where it was shown", err)
	if parts.Host == "" {
		return l
	}
	local := cosmosstore.Loopback(parts.Hostname())
	l.add(!local && !c.allowKeys, env, "connection strings are only for an emulator on this machine. Set SERVICEBUS_NAMESPACE_FQDN and use a managed identity, or set WORKER_ALLOW_KEYS=true")
	l.add(parts.Emulator && !local, env, "UseDevelopmentEmulator switches TLS off and is only for this machine")
	entity := c.sendsTo()
	l.add(parts.EntityPath != "" && !strings.EqualFold(parts.EntityPath, entity), env,
		"its EntityPath is %q and %s is %q. Make them the same, or remove EntityPath", parts.EntityPath, map[bool]string{true: "SERVICEBUS_QUEUE", false: "SERVICEBUS_TOPIC"}[c.topic == ""], entity)
	return l
}

// checkStore returns the faults of the settings for Cosmos DB, those that the store itself finds among them. It needs no network.
func (c *config) checkStore() []settingFault {
	var l faultList
	l.add(c.store.Endpoint == "", "COSMOS_ENDPOINT", "not set. Give the account, such as https://shop.documents.azure.com")
	if u, err := url.Parse(c.store.Endpoint); err == nil && u.Host != "" {
		l.add(c.store.Key != "" && !cosmosstore.Loopback(u.Hostname()) && !c.allowKeys, "COSMOS_KEY", "account keys are only for an emulator on this machine. Use a managed identity, or set WORKER_ALLOW_KEYS=true")
		l.add(c.store.Key == "" && u.Scheme == "http", "COSMOS_KEY", "not set, and a token must not travel over plain http. Give the emulator's key")
	}
	l.add(c.store.InboxRecordTTL > 0 && !c.inboxRecords(), "WORKER_INBOX_RECORD_TTL", "there is no inbox record of its own without WORKER_INBOX_RECORD=true, and documents do not expire")
	k, err := newConnector(*c)
	if err != nil {
		return append(l, settingFault{"AZURE_TOKEN_CREDENTIALS", err.Error()})
	}
	return addNew(l, named(k.storeOptions(&telemetry{}, nil).Validate()))
}

// checkWork returns the faults of the settings for the work, those that the worker itself finds among them.
func (c *config) checkWork() []settingFault {
	a := c.worker.Admission
	var l faultList
	l.add(a.Ignore != nil && a.Only != nil, "WORKER_HASH_IGNORE", "this and WORKER_HASH_ONLY are both set. Keep one: either all but some count, or only some")
	l.add(a.Form == "bytes" && (a.Ignore != nil || a.Only != nil), "WORKER_HASH_FORM", "bytes compares every byte, so WORKER_HASH_IGNORE and WORKER_HASH_ONLY cannot be used with it")
	_, _, err := net.SplitHostPort(c.healthAddress)
	l.add(err != nil && c.healthAddress != healthOff, "WORKER_HEALTH_ADDRESS", "%q is not an address such as 127.0.0.1:8080 or :8080, nor off", c.healthAddress)
	return addNew(l, named(c.worker.Validate()))
}

// variables are the settings by the fields of the worker, of admission and of the store that they set.
func variables() map[string]string {
	return map[string]string{
		"Concurrency": "WORKER_CONCURRENCY", "LockDuration": "WORKER_LOCK_DURATION", "MaxDeliveryCount": "WORKER_MAX_DELIVERY_COUNT",
		"SessionIdle": "WORKER_SESSION_IDLE", "HandlerTimeout": "WORKER_HANDLER_TIMEOUT", "StoreTimeout": "WORKER_STORE_TIMEOUT", "DrainTimeout": "WORKER_DRAIN_TIMEOUT",
		"Retry.Attempts": "WORKER_RETRY_ATTEMPTS", "Retry.Base": "WORKER_RETRY_BASE", "Retry.HoldFor": "WORKER_RETRY_HOLD", "Retry.Spread": "WORKER_RETRY_SPREAD",
		"Breaker.Failures": "WORKER_BREAKER_FAILURES", "Breaker.ProbeBase": "WORKER_BREAKER_PROBE_BASE",
		"Watchdog.Silence": "WORKER_WATCHDOG_SILENCE", "Watchdog.Stuck": "WORKER_WATCHDOG_STUCK", "Watchdog.NotReceiving": "WORKER_WATCHDOG_NOT_RECEIVING",
		"Outbox.MaxMessageBytes": "WORKER_MESSAGE_MAX_BYTES", "Outbox.SweepEvery": "WORKER_OUTBOX_EVERY", "Outbox.SweepAfter": "WORKER_OUTBOX_AFTER",
		"Consumer": "WORKER_CONSUMER", "KeySource": "WORKER_KEY", "Partition": "WORKER_PARTITION", "Body": "WORKER_BODY_MAX_BYTES", "CloudEventData": "WORKER_CLOUDEVENT_DATA",
		"UnwrapJSONString": "WORKER_UNWRAP_STRINGS", "Form": "WORKER_HASH_FORM", "Ignore": "WORKER_HASH_IGNORE", "Only": "WORKER_HASH_ONLY",
		"Endpoint": "COSMOS_ENDPOINT", "Credential": "COSMOS_KEY", "Key": "COSMOS_KEY", "Database": "COSMOS_DATABASE", "Container": "COSMOS_CONTAINER",
		"InboxRecordTTL": "WORKER_INBOX_RECORD_TTL", "Lifetime": "WORKER_MESSAGE_TTL",
	}
}

// named returns the single faults of a part, each with the variable that is to be corrected.
func named(err error) []settingFault {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var faults []settingFault
		for _, e := range joined.Unwrap() {
			faults = append(faults, named(e)...)
		}
		return faults
	}
	if e, ok := errors.AsType[*worker.FieldError](err); ok {
		return []settingFault{{variables()[e.Field], e.Problem}}
	}
	if e, ok := errors.AsType[*cosmosstore.OptionError](err); ok {
		return []settingFault{{variables()[e.Option], e.Problem}}
	}
	if err != nil {
		return []settingFault{{"", err.Error()}}
	}
	return nil
}
