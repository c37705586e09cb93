// Package infra gives Go the limits that the Bicep templates deploy with.
//
// limits.json is the one place where lock duration, deliveries, times to live, drain and grace stand. The templates read
// it when they are compiled, the embedded environment and the tests read it here, and the contract tests of this package
// hold code, templates, snapshots and the emulator's configuration against it.
package infra

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"
)

//go:embed limits.json
var limitsJSON []byte

// Limits is the content of limits.json.
type Limits struct {
	Queue    Queue           `json:"queue"`
	Store    Store           `json:"store"`
	Worker   Worker          `json:"worker"`
	Scale    Scale           `json:"scale"`
	Sizes    map[string]Size `json:"sizes"`
	Emulator Emulator        `json:"emulator"`
}

// Queue holds the settings of the Service Bus queue.
type Queue struct {
	LockDuration             Duration `json:"lockDuration"`
	MaxDeliveryCount         int      `json:"maxDeliveryCount"`
	MessageTimeToLive        Duration `json:"messageTimeToLive"`
	DuplicateDetectionWindow Duration `json:"duplicateDetectionWindow"`
}

// Store holds the settings of the Cosmos DB container, and how long a key must be remembered.
type Store struct {
	PartitionKeyPath    string `json:"partitionKeyPath"`
	PartitionKeyVersion int    `json:"partitionKeyVersion"`
	// DefaultTimeToLiveSeconds is -1: nothing expires unless an item says so.
	DefaultTimeToLiveSeconds int `json:"defaultTimeToLiveSeconds"`
	// MarkerRetention is how long a separate marker is kept, where markers are used.
	MarkerRetention Duration `json:"markerRetention"`
	// ReviewWindow is how long after its arrival a dead letter may still be reprocessed.
	ReviewWindow Duration `json:"reviewWindow"`
}

// Worker holds the settings of the process and of the probes that watch it.
type Worker struct {
	Concurrency             int    `json:"concurrency"`
	DrainTimeoutSeconds     int    `json:"drainTimeoutSeconds"`
	TerminationGraceSeconds int    `json:"terminationGraceSeconds"`
	HealthPort              int    `json:"healthPort"`
	LivenessPath            string `json:"livenessPath"`
	ReadinessPath           string `json:"readinessPath"`
}

// Scale holds the settings of the scale rule.
type Scale struct {
	MessagesPerReplica     int `json:"messagesPerReplica"`
	ActivationMessages     int `json:"activationMessages"`
	MinReplicas            int `json:"minReplicas"`
	MaxReplicas            int `json:"maxReplicas"`
	PollingIntervalSeconds int `json:"pollingIntervalSeconds"`
	CooldownSeconds        int `json:"cooldownSeconds"`
}

// Size is the CPU and memory of a replica, and the bound that the Go runtime is given on its memory.
type Size struct {
	CPU           string `json:"cpu"`
	Memory        string `json:"memory"`
	GoMemoryLimit string `json:"goMemoryLimit"`
}

// Emulator holds the settings of the queue that the official emulator cannot take from [Queue].
type Emulator struct {
	MessageTimeToLive        Duration `json:"messageTimeToLive"`
	DuplicateDetectionWindow Duration `json:"duplicateDetectionWindow"`
}

// Duration is a length of time in the two spellings that templates need. A test holds them together.
type Duration struct {
	// ISO8601 is for the queue, such as PT1M.
	ISO8601 string `json:"iso8601"`
	// Seconds is for the worker.
	Seconds int64 `json:"seconds"`
}

// Value returns the duration as Go's own.
func (d Duration) Value() time.Duration { return time.Duration(d.Seconds) * time.Second }

// Load returns the limits. It fails only when limits.json is not what this package expects, which a test rules out.
func Load() (Limits, error) {
	var l Limits
	if err := json.Unmarshal(limitsJSON, &l); err != nil {
		return Limits{}, fmt.Errorf("infra: limits.json: %w", err)
	}
	return l, nil
}
