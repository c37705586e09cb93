package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// checkParts asks the parts that the configuration is for: what they would refuse at the start is reported with everything
// else, by the name of the variable. It needs no network.
func (c *config) checkParts() []error {
	faults := named(partFields, c.workerFaults())
	k, err := newConnector(*c)
	if err != nil {
		return append(faults, fmt.Errorf("AZURE_TOKEN_CREDENTIALS: %w", err))
	}
	return append(faults, named(storeFields, k.storeOptions(&telemetry{}, nil).Validate())...)
}

// workerFaults are the faults of the work. A key source that cannot be read is reported by checkWork.
func (c *config) workerFaults() error {
	w, err := c.workerConfig(&telemetry{}, nil)
	if err != nil {
		return nil
	}
	return w.Validate()
}

// A field is how a part begins the fault of one of its fields, and the variable that sets the field.
type field struct{ begins, env string }

// partFields are the fields of the worker and of admission.
var partFields = []field{
	{"concurrency", "WORKER_CONCURRENCY"},
	{"lock duration", "WORKER_LOCK_DURATION"},
	{"store timeout", "WORKER_LOCK_DURATION"},
	{"maximum delivery count", "WORKER_MAX_DELIVERY_COUNT"},
	{"handler timeout", "WORKER_HANDLER_TIMEOUT"},
	{"watchdog not receiving", "WORKER_HANDLER_TIMEOUT"},
	{"drain timeout", "WORKER_DRAIN_TIMEOUT"},
	{"field Consumer", "WORKER_CONSUMER"},
	{"field Body", "WORKER_BODY_MAX_BYTES"},
	{"body:", "WORKER_BODY_MAX_BYTES"},
	{"field CloudEventData", "WORKER_CLOUDEVENT_DATA"},
	{"field UnwrapJSONString", "WORKER_UNWRAP_STRINGS"},
	{"field KeySource", "WORKER_KEY"},
	{"key source", "WORKER_KEY"},
	{"fingerprint: ignore", "WORKER_HASH_IGNORE"},
	{"fingerprint: only", "WORKER_HASH_ONLY"},
	{"fingerprint:", "WORKER_HASH_FORM"},
	{"field Form", "WORKER_HASH_FORM"},
}

// storeFields are the options of the store.
var storeFields = []field{
	{"endpoint", "COSMOS_ENDPOINT"},
	{"the account key", "COSMOS_KEY"},
	{"database", "COSMOS_DATABASE"},
	{"container", "COSMOS_CONTAINER"},
	{"inbox record TTL", "WORKER_INBOX_RECORD_TTL"},
	{"lifetime", "WORKER_MESSAGE_TTL"},
}

// named returns the single faults of a part, each under the variable that is to be corrected.
func named(fields []field, err error) []error {
	var faults []error
	for _, fault := range single(err) {
		text := fault.Error()
		text = strings.TrimPrefix(strings.TrimPrefix(text, "cosmosstore: "), "fields Form, Ignore, Only: ")
		for _, f := range fields {
			if rest, ok := strings.CutPrefix(text, f.begins); ok {
				rest = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(rest, " is")), ":")
				text = f.env + ": " + strings.TrimSpace(rest)
				break
			}
		}
		faults = append(faults, errors.New(text))
	}
	return faults
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
