package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

const assignedID = "3f2504e04f8941d39a0c0305e82c3301"

func TestIdsOfTheFormOfTheBrokerAreTold(t *testing.T) {
	t.Parallel()
	require.True(t, assignedByBroker(assignedID))
	for _, id := range []string{"", "1042", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", strings.ToUpper(assignedID), assignedID + "0", strings.Repeat("g", 32)} {
		require.False(t, assignedByBroker(id), id)
	}
}

func TestCheckWarnsOfIdsThatTheBrokerAssigned(t *testing.T) {
	t.Parallel()
	env, settings := serve(t, testenv.Options{})
	for _, id := range []string{assignedID, "1042"} {
		_, err := env.Broker.Send("orders", servicebus.Message{Properties: &servicebus.Properties{MessageID: id}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(`{"orderId":"1"}`)}})
		require.NoError(t, err)
	}
	code, r, stderr := checked(t, settings, "--peek", "10")
	require.Equal(t, exitOK, code, stderr)
	require.Len(t, r.Findings, 1)
	require.Equal(t, severityWarning, r.Findings[0].Severity)
	require.Contains(t, r.Findings[0].Text, "1 message(s) have a MessageId that looks assigned by the broker, of 2 looked at")
	require.Contains(t, r.Findings[0].Fix, "WORKER_KEY")
	settings["WORKER_KEY"] = "body:/orderId"
	_, r, _ = checked(t, settings, "--peek", "10")
	require.Empty(t, r.Findings, "another key protects")
}

func TestTheWorkerWarnsOnceOfIdsThatTheBrokerAssigned(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key  string
		want int
	}{{"message-id", 1}, {"body:/orderId", 0}} {
		source, err := admission.ParseKeySource(tt.key)
		require.NoError(t, err)
		var out bytes.Buffer
		c := config{logFormat: "json"}
		c.worker.Admission.KeySource = source
		s := newSummary(c.logger(&out), c)
		for range 3 {
			s.Observe(worker.Event{Kind: worker.EventReceived, MessageID: assignedID})
			s.Observe(worker.Event{Kind: worker.EventReceived, MessageID: "1042"})
			s.report()
		}
		require.Equal(t, tt.want, strings.Count(out.String(), `"event":"assigned_message_ids"`), out.String())
		require.Equal(t, 3*tt.want, strings.Count(out.String(), `"assigned_ids":1`))
	}
}
