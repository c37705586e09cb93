package testenv

import (
	"strconv"
	"strings"
	"time"
)

// A Setting is one variable of the worker's environment.
type Setting struct{ Name, Value string }

// String returns the setting as a process gets it: NAME=value.
func (s Setting) String() string { return s.Name + "=" + s.Value }

// Settings are the variables with which a worker on this machine finds the environment, the same that it has in Azure, and
// what it should know of its queue. They are complete only after [Env.Serve].
func (e *Env) Settings() []Setting {
	e.doors.mu.Lock()
	at := e.doors.served
	e.doors.mu.Unlock()
	source := []Setting{{"SERVICEBUS_QUEUE", e.Queue.Name}}
	if topic, subscription, ok := strings.Cut(e.Queue.Name, subscriptions); ok {
		source = []Setting{{"SERVICEBUS_TOPIC", topic}, {"SERVICEBUS_SUBSCRIPTION", subscription}}
	}
	return append(source, []Setting{
		{"SERVICEBUS_CONNECTION_STRING", e.Broker.ConnectionString(at.AMQP)},
		{"COSMOS_ENDPOINT", "http://" + at.Cosmos},
		{"COSMOS_KEY", e.Account.Key()},
		{"COSMOS_DATABASE", e.Database},
		{"COSMOS_CONTAINER", e.Container},
		{"WORKER_LOCK_DURATION", e.Queue.LockDuration.String()},
		{"WORKER_MAX_DELIVERY_COUNT", strconv.Itoa(e.Queue.MaxDeliveryCount)},
		{"WORKER_MESSAGE_TTL", e.Queue.DefaultMessageTimeToLive.String()},
		{"WORKER_DUPLICATE_DETECTION_WINDOW", e.duplicateWindow().String()},
	}...)
}

// subscriptions is between the names of a topic and of a subscription in the path of one.
const subscriptions = "/Subscriptions/"

// SendsTo is where messages for the worker are sent to: its queue, or the topic of its subscription.
func (e *Env) SendsTo() string {
	to, _, _ := strings.Cut(e.Queue.Name, subscriptions)
	return to
}

// duplicateWindow is how long the queue remembers a MessageId, zero when it does not.
func (e *Env) duplicateWindow() time.Duration {
	if !e.Queue.RequiresDuplicateDetection {
		return 0
	}
	return e.Queue.DuplicateDetectionHistoryTimeWindow
}

// Environ returns the settings in the form of os.Environ.
func (e *Env) Environ() []string {
	var environ []string
	for _, s := range e.Settings() {
		environ = append(environ, s.String())
	}
	return environ
}
