package app

import (
	"errors"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
)

// checkParts asks the parts that the configuration is for: what they would refuse at the start is reported with everything
// else, by the name of the variable. It needs no network.
func (c *config) checkParts() []settingFault {
	faults := named(c.workerFaults())
	k, err := newConnector(*c)
	if err != nil {
		return append(faults, settingFault{env: "AZURE_TOKEN_CREDENTIALS", text: err.Error()})
	}
	return append(faults, named(k.storeOptions(&telemetry{}, nil).Validate())...)
}

// workerFaults are the faults of the work. A key source that cannot be read is reported by checkWork.
func (c *config) workerFaults() error {
	w, err := c.workerConfig(&telemetry{}, nil)
	if err != nil {
		return nil
	}
	return w.Validate()
}

// variables are the settings by the fields of the worker, of admission and of the store that they set.
func variables() map[string]string {
	return map[string]string{
		"Concurrency": "WORKER_CONCURRENCY", "LockDuration": "WORKER_LOCK_DURATION", "MaxDeliveryCount": "WORKER_MAX_DELIVERY_COUNT",
		"HandlerTimeout": "WORKER_HANDLER_TIMEOUT", "StoreTimeout": "WORKER_STORE_TIMEOUT", "DrainTimeout": "WORKER_DRAIN_TIMEOUT",
		"Retry.Attempts": "WORKER_RETRY_ATTEMPTS", "Retry.Base": "WORKER_RETRY_BASE", "Retry.HoldFor": "WORKER_RETRY_HOLD",
		"Breaker.Failures": "WORKER_BREAKER_FAILURES", "Breaker.ProbeBase": "WORKER_BREAKER_PROBE_BASE",
		"Watchdog.Silence": "WORKER_WATCHDOG_SILENCE", "Watchdog.Stuck": "WORKER_WATCHDOG_STUCK", "Watchdog.NotReceiving": "WORKER_WATCHDOG_NOT_RECEIVING",
		"Consumer": "WORKER_CONSUMER", "KeySource": "WORKER_KEY", "Partition": "WORKER_PARTITION", "Body": "WORKER_BODY_MAX_BYTES", "CloudEventData": "WORKER_CLOUDEVENT_DATA",
		"UnwrapJSONString": "WORKER_UNWRAP_STRINGS", "Form": "WORKER_HASH_FORM", "Ignore": "WORKER_HASH_IGNORE", "Only": "WORKER_HASH_ONLY",
		"Endpoint": "COSMOS_ENDPOINT", "Credential": "COSMOS_KEY", "Key": "COSMOS_KEY", "Database": "COSMOS_DATABASE", "Container": "COSMOS_CONTAINER",
		"InboxRecordTTL": "WORKER_INBOX_RECORD_TTL", "Lifetime": "WORKER_MESSAGE_TTL",
	}
}

// named returns the single faults of a part, each with the variable that is to be corrected.
func named(err error) []settingFault {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var faults []settingFault
		for _, e := range joined.Unwrap() {
			faults = append(faults, named(e)...)
		}
		return faults
	}
	if e, ok := errors.AsType[*worker.FieldError](err); ok {
		return []settingFault{{env: variables()[e.Field], text: e.Problem}}
	}
	if e, ok := errors.AsType[*cosmosstore.OptionError](err); ok {
		return []settingFault{{env: variables()[e.Option], text: e.Problem}}
	}
	return []settingFault{{text: err.Error()}}
}
