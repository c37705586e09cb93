package admission_test

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/reason"
)

func TestThePartitionIsAPureFunctionOfTheMessage(t *testing.T) {
	for _, tt := range []struct {
		name, source, body string
		change             func(*azservicebus.ReceivedMessage)
		want, detail       string
	}{
		{name: "the key by default", body: `{}`, want: "m-1"},
		{name: "a property", source: "property:orderId", body: `{}`, want: "913",
			change: func(m *azservicebus.ReceivedMessage) { m.ApplicationProperties = map[string]any{"orderId": "913"} }},
		{name: "a property that is missing", source: "property:orderId", body: `{}`, detail: "no application property of this name"},
		{name: "a property in another case", source: "property:orderId", body: `{}`, detail: `It has "orderid"`,
			change: func(m *azservicebus.ReceivedMessage) { m.ApplicationProperties = map[string]any{"orderid": "913"} }},
		{name: "a property that is no text", source: "property:orderId", body: `{}`, detail: "not a string",
			change: func(m *azservicebus.ReceivedMessage) {
				m.ApplicationProperties = map[string]any{"orderId": int64(913)}
			}},
		{name: "a text in the body", source: "body:/order/id", body: `{"order":{"id":"913"}}`, want: "913"},
		{name: "a number in the body is the partition of its digits", source: "body:/order/id", body: `{"order":{"id":913.0}}`, want: "913"},
		{name: "a value of the body that is neither", source: "body:/order", body: `{"order":{}}`, detail: "neither a string nor a whole number"},
		{name: "a body without it", source: "body:/order/id", body: `{"order":{}}`, detail: "no such value"},
		{name: "an empty one", source: "body:/id", body: `{"id":""}`, detail: "missing or empty"},
		{name: "a blank one", source: "body:/id", body: `{"id":" "}`, detail: "no visible character"},
		{name: "one that is too long", source: "body:/id", body: `{"id":"` + strings.Repeat("x", 2000) + `"}`, detail: "at most 1024"},
		{name: "the session", source: "session-id", body: `{}`, want: "cart~2F7",
			change: func(m *azservicebus.ReceivedMessage) { s := "cart/7"; m.SessionID = &s }},
		{name: "no session", source: "session-id", body: `{}`, detail: "session-id, and it is missing"},
		{name: "the broker's partition key", source: "partition-key", body: `{}`, want: "eu",
			change: func(m *azservicebus.ReceivedMessage) { s := "eu"; m.PartitionKey = &s }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source, err := admission.ParsePartitionSource(tt.source)
			require.NoError(t, err)
			m := simple("m-1", tt.body)
			if tt.change != nil {
				tt.change(m)
			}
			admitted, refusal := newAdmitter(t, admission.Config{Partition: source}).Admit(m)
			if tt.detail != "" {
				require.NotNil(t, refusal)
				require.Equal(t, reason.MissingPartition, refusal.Reason)
				require.Contains(t, refusal.Detail, tt.detail)
				return
			}
			require.Nil(t, refusal)
			require.Equal(t, tt.want, admitted.Partition)
			_, partition, refusal := newAdmitter(t, admission.Config{Partition: source}).Key(m)
			require.Nil(t, refusal)
			require.Equal(t, tt.want, partition, "the review looks in the same place")
		})
	}
}

func TestPartitionSourcesAreReadAndWritten(t *testing.T) {
	for _, form := range []string{"key", "property:orderId", "body:/order/id", "session-id", "partition-key"} {
		s, err := admission.ParsePartitionSource(form)
		require.NoError(t, err)
		require.Equal(t, form, s.String())
		require.Equal(t, form == "key", s.IsKey())
	}
	for _, form := range []string{"property:", "body:", "body:x", "message-id", "handler"} {
		_, err := admission.ParsePartitionSource(form)
		require.Error(t, err, form)
	}
}
