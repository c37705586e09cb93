package app

import (
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/connstring"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

// unknownWindow is a duplicate detection window that nobody has stated.
const unknownWindow time.Duration = -1

// config is what the settings say, before anything is built from it.
type config struct {
	program Program

	namespace, connectionString, queue             string
	cosmosEndpoint, cosmosKey, database, container string
	allowKeys                                      bool

	concurrency, maxDeliveries                 int
	lockDuration, handlerTimeout, drainTimeout time.Duration
	storeTimeout                               time.Duration
	retry                                      worker.RetryConfig
	breaker                                    worker.BreakerConfig
	watchdog                                   worker.WatchdogConfig

	consumer, keySource, hashForm string
	partition, lookFirst          string
	hashIgnore, hashOnly          []string
	bodyMaxBytes                  int
	legacyBodies                  string
	unwrapStrings, cloudEventData bool

	markers   bool
	markerTTL time.Duration

	healthAddress, logLevel, logFormat, logDetail string
	messageTTL, reviewWindow, duplicateWindow     time.Duration
}

// checkBroker returns the faults of the settings for Service Bus that lie between settings rather than in one of them.
func (c *config) checkBroker() []settingFault {
	if c.queue == "" {
		return oneFault("SERVICEBUS_QUEUE", "empty. Give the name of the queue")
	}
	switch {
	case c.namespace == "" && c.connectionString == "":
		return oneFault("SERVICEBUS_NAMESPACE_FQDN", "not set. Give the namespace, such as shop.servicebus.windows.net, or for an emulator on this machine SERVICEBUS_CONNECTION_STRING")
	case c.namespace != "" && c.connectionString != "":
		return []settingFault{{env: "SERVICEBUS_NAMESPACE_FQDN", with: "SERVICEBUS_CONNECTION_STRING", text: "both are set. Keep one, so that it is plain which is used"}}
	case c.connectionString != "":
		return c.checkConnectionString()
	case !validHost(c.namespace):
		return oneFault("SERVICEBUS_NAMESPACE_FQDN", "%q is not a host name. Give the full name without a scheme, such as shop.servicebus.windows.net", c.namespace)
	}
	return nil
}

// checkWork returns the faults between the settings for the work itself.
func (c *config) checkWork() []settingFault {
	var faults []settingFault
	add := func(env, format string, args ...any) { faults = append(faults, oneFault(env, format, args...)...) }
	if c.hashIgnore != nil && c.hashOnly != nil {
		faults = append(faults, settingFault{env: "WORKER_HASH_IGNORE", with: "WORKER_HASH_ONLY", text: "both are set. Keep one: either all but some count, or only some"})
	}
	if c.hashForm == "bytes" && (c.hashIgnore != nil || c.hashOnly != nil) {
		add("WORKER_HASH_FORM", "bytes compares every byte, so WORKER_HASH_IGNORE and WORKER_HASH_ONLY cannot be used with it")
	}
	if c.markerTTL > 0 && !c.inboxRecords() {
		add("WORKER_INBOX_RECORD_TTL", "there is no inbox record of its own without WORKER_INBOX_RECORD=true, and documents do not expire")
	}
	if _, err := admission.ParseKeySource(c.keySource); err != nil {
		add("WORKER_KEY", "%v", err)
	}
	if _, err := admission.ParsePartitionSource(c.partition); err != nil {
		add("WORKER_PARTITION", "%v", err)
	}
	if c.healthAddress != "off" {
		if _, _, err := net.SplitHostPort(c.healthAddress); err != nil {
			add("WORKER_HEALTH_ADDRESS", "%q is not an address such as 127.0.0.1:8080 or :8080, nor off", c.healthAddress)
		}
	}
	return faults
}

// checkStore returns the faults of the settings for Cosmos DB.
func (c *config) checkStore() []settingFault {
	if c.cosmosEndpoint == "" {
		return oneFault("COSMOS_ENDPOINT", "not set. Give the account, such as https://shop.documents.azure.com")
	}
	u, err := url.Parse(c.cosmosEndpoint)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return oneFault("COSMOS_ENDPOINT", "not an address such as https://shop.documents.azure.com")
	}
	var faults []settingFault
	if u.Scheme == "http" && !cosmosstore.Loopback(u.Hostname()) {
		faults = append(faults, oneFault("COSMOS_ENDPOINT", "plain http is only for this machine. Use https://%s", u.Host)...)
	}
	if c.cosmosKey != "" && !cosmosstore.Loopback(u.Hostname()) && !c.allowKeys {
		faults = append(faults, oneFault("COSMOS_KEY", "account keys are only for an emulator on this machine. Use a managed identity, or set WORKER_ALLOW_KEYS=true")...)
	}
	if c.cosmosKey == "" && u.Scheme == "http" {
		faults = append(faults, oneFault("COSMOS_KEY", "not set, and a token must not travel over plain http. Give the emulator's key")...)
	}
	return faults
}

// checkConnectionString checks what can be told from the text, and never repeats any of it.
func (c *config) checkConnectionString() []settingFault {
	var faults []settingFault
	add := func(format string, args ...any) {
		faults = append(faults, oneFault("SERVICEBUS_CONNECTION_STRING", format, args...)...)
	}
	parts, err := connstring.Parse(c.connectionString)
	if err != nil {
		add("%v. Copy it whole from where it was shown", err)
	}
	if parts.Host == "" {
		return faults
	}
	local := cosmosstore.Loopback(parts.Hostname())
	if !local && !c.allowKeys {
		add("connection strings are only for an emulator on this machine. Set SERVICEBUS_NAMESPACE_FQDN and use a managed identity, or set WORKER_ALLOW_KEYS=true")
	}
	if parts.Emulator && !local {
		add("UseDevelopmentEmulator switches TLS off and is only for this machine")
	}
	if parts.EntityPath != "" && !strings.EqualFold(parts.EntityPath, c.queue) {
		add("its EntityPath is %q and SERVICEBUS_QUEUE is %q. Make them the same, or remove EntityPath", parts.EntityPath, c.queue)
	}
	return faults
}

func validHost(host string) bool {
	return host != "" && !strings.ContainsAny(host, "/:@ \t\r\n;=") && strings.Contains(host, ".")
}
