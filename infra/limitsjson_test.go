package infra_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limitsFile is the content of limits.json, the one place of lock duration, deliveries, times to live, drain and grace. The
// templates read it when they are compiled; the tests of this package compare code, templates, snapshots and the emulator's
// configuration with it.
type limitsFile struct {
	Queue    queueLimits           `json:"queue"`
	Store    storeLimits           `json:"store"`
	Worker   workerLimits          `json:"worker"`
	Scale    scaleLimits           `json:"scale"`
	Sizes    map[string]sizeLimits `json:"sizes"`
	Emulator emulatorLimits        `json:"emulator"`
}

// queueLimits holds the settings of the Service Bus queue.
type queueLimits struct {
	LockDuration             duration `json:"lockDuration"`
	MaxDeliveryCount         int      `json:"maxDeliveryCount"`
	MessageTimeToLive        duration `json:"messageTimeToLive"`
	DuplicateDetectionWindow duration `json:"duplicateDetectionWindow"`
	MaxSizeMegabytes         int      `json:"maxSizeMegabytes"`
}

// storeLimits holds the settings of the Cosmos DB container, and how long a key must be remembered.
type storeLimits struct {
	PartitionKeyPath    string `json:"partitionKeyPath"`
	PartitionKeyVersion int    `json:"partitionKeyVersion"`
	// DefaultTimeToLiveSeconds is -1: nothing expires unless an item says so.
	DefaultTimeToLiveSeconds int `json:"defaultTimeToLiveSeconds"`
	// InboxRecordRetention is how long an inbox record is kept, where there is one.
	InboxRecordRetention duration `json:"inboxRecordRetention"`
	// ReviewWindow is how long after its arrival a dead letter may still be reprocessed.
	ReviewWindow duration `json:"reviewWindow"`
}

// workerLimits holds the settings of the process and of the probes that watch it.
type workerLimits struct {
	Concurrency             int    `json:"concurrency"`
	DrainTimeoutSeconds     int    `json:"drainTimeoutSeconds"`
	TerminationGraceSeconds int    `json:"terminationGraceSeconds"`
	HealthPort              int    `json:"healthPort"`
	LivenessPath            string `json:"livenessPath"`
	ReadinessPath           string `json:"readinessPath"`
}

// scaleLimits holds the settings of the scale rule.
type scaleLimits struct {
	MessagesPerReplica     int `json:"messagesPerReplica"`
	ActivationMessages     int `json:"activationMessages"`
	MinReplicas            int `json:"minReplicas"`
	MaxReplicas            int `json:"maxReplicas"`
	PollingIntervalSeconds int `json:"pollingIntervalSeconds"`
	CooldownSeconds        int `json:"cooldownSeconds"`
}

// sizeLimits is the CPU and memory of a replica, and the bound that the Go runtime is given on its memory.
type sizeLimits struct {
	CPU           string `json:"cpu"`
	Memory        string `json:"memory"`
	GoMemoryLimit string `json:"goMemoryLimit"`
}

// emulatorLimits holds the settings of the queue that the official emulator cannot take from queueLimits.
type emulatorLimits struct {
	MessageTimeToLive        duration `json:"messageTimeToLive"`
	DuplicateDetectionWindow duration `json:"duplicateDetectionWindow"`
}

// duration is a length of time in the two spellings that templates need. A test holds them together.
type duration struct {
	// ISO8601 is for the queue, such as PT1M.
	ISO8601 string `json:"iso8601"`
	// Seconds is for the worker.
	Seconds int64 `json:"seconds"`
}

// Value returns the duration as Go's own.
func (d duration) Value() time.Duration { return time.Duration(d.Seconds) * time.Second }

// limits reads limits.json, and refuses what these types do not know.
func limits(t *testing.T) limitsFile {
	t.Helper()
	raw, err := os.ReadFile("limits.json")
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var l limitsFile
	require.NoError(t, d.Decode(&l))
	return l
}
