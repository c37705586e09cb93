package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
)

// checkParts asks the parts that the configuration is for: what they would refuse at the start is reported with everything
// else, by the name of the variable. It needs no network.
func (c *config) checkParts() []error {
	faults := named(c.workerFaults())
	k, err := newConnector(*c)
	if err != nil {
		return append(faults, fmt.Errorf("AZURE_TOKEN_CREDENTIALS: %w", err))
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

// named returns the single faults of a part, each under the variable that is to be corrected.
func named(err error) []error {
	var faults []error
	for _, fault := range single(err) {
		field, text := fieldOf(fault)
		if name := variables()[field]; name != "" {
			text = name + ": " + text
		}
		faults = append(faults, errors.New(text))
	}
	return faults
}

// fieldOf returns the field that a fault is about, if it says so, and what is wrong.
func fieldOf(fault error) (field, problem string) {
	if e, ok := errors.AsType[*worker.FieldError](fault); ok {
		return e.Field, e.Problem
	}
	if e, ok := errors.AsType[*cosmosstore.OptionError](fault); ok {
		return e.Option, e.Problem
	}
	return "", fault.Error()
}

// single takes joined errors apart.
func single(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, single(e)...)
	}
	return all
}

// addNew adds the faults of variables that have none yet: the first one was found closer to its cause.
func addNew(known, more []error) []error {
	for _, fault := range more {
		name, _, _ := strings.Cut(fault.Error(), ":")
		if !mentions(known, name) {
			known = append(known, fault)
		}
	}
	return known
}

func mentions(faults []error, name string) bool {
	return slices.ContainsFunc(faults, func(f error) bool {
		names, _, _ := strings.Cut(f.Error(), ":")
		return slices.Contains(strings.Fields(names), name)
	})
}

// byOrigin names the flag in place of the variable, where the value was given by the flag.
func byOrigin(faults []error, origins map[string]string) []error {
	for i, fault := range faults {
		name, text, _ := strings.Cut(fault.Error(), ":")
		if origin := origins[name]; origin != "" {
			faults[i] = errors.New(origin + ":" + text)
		}
	}
	return faults
}
