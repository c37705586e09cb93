package admission_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/reason"
)

// TestAnEventWithoutAMessageIDNamesTheSettingOfEvents takes what Dapr's pub/sub component sends, and an event in binary mode.
func TestAnEventWithoutAMessageIDNamesTheSettingOfEvents(t *testing.T) {
	dapr := `{"data":{"orderId":1},"datacontenttype":"application/json","id":"5929aaac","pubsubname":"orders","source":"checkout",` +
		`"specversion":"1.0","topic":"orders","type":"com.dapr.event.sent"}`
	binary := simple("", `{"orderId":1}`)
	binary.ApplicationProperties = map[string]any{"cloudEvents:id": "e1", "cloudEvents:source": "/s"}
	for name, tt := range map[string]struct {
		message *azservicebus.ReceivedMessage
		hint    bool
	}{
		"an event of Dapr":        {simple("", dapr), true},
		"an event in binary mode": {binary, true},
		"an order":                {simple("", `{"orderId":1}`), false},
		"a text":                  {simple("", "specversion"), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, refusal := newAdmitter(t, admission.Config{}).Admit(tt.message)
			require.Equal(t, reason.MissingMessageID, refusal.Reason)
			if !tt.hint {
				require.NotContains(t, refusal.Detail, "CloudEvent")
				return
			}
			require.Contains(t, refusal.Detail, "WORKER_KEY=cloudevents")
			_, refusal = newAdmitter(t, admission.Config{KeySource: admission.FromCloudEvents()}).Admit(tt.message)
			require.Nil(t, refusal, "the setting that is named admits it")
		})
	}
}

func TestNamesThatLookAlikeAreTwoPathsInADetail(t *testing.T) {
	a := newAdmitter(t, admission.Config{})
	_, composed := a.Admit(simple("1", "{\"caf\u00e9\":{\"x\":1e400}}"))
	_, decomposed := a.Admit(simple("1", "{\"cafe\u0301\":{\"x\":1e400}}"))
	require.Contains(t, composed.Detail, `"/caf\u00e9/x"`)
	require.Contains(t, decomposed.Detail, `"/cafe\u0301/x"`)
}
