package admission_test

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/scenario"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

func scenarios(t testing.TB) []scenario.Scenario {
	t.Helper()
	return scenario.Read(t, "testdata/cases.jsonl")
}

// received makes of a raw message what the SDK's receiver makes of it.
func received(raw *azservicebus.AMQPAnnotatedMessage) *azservicebus.ReceivedMessage {
	m := &azservicebus.ReceivedMessage{RawAMQPMessage: raw, ApplicationProperties: raw.ApplicationProperties}
	if len(raw.Body.Data) == 1 {
		m.Body = raw.Body.Data[0]
	}
	if p := raw.Properties; p != nil {
		m.MessageID, _ = p.MessageID.(string)
		if id, ok := p.CorrelationID.(string); ok {
			m.CorrelationID = &id
		}
		m.ContentType, m.Subject, m.SessionID = p.ContentType, p.Subject, p.GroupID
		if raw.Header != nil {
			m.DeliveryCount = raw.Header.DeliveryCount + 1
		}
	}
	return m
}

// TestEveryMessageIsJudgedRight plays each scenario against the smallest possible store: what was admitted first under an
// id is stored, with its fingerprint.
func TestEveryMessageIsJudgedRight(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			a, err := admission.New(s.Settings.Config(t))
			require.NoError(t, err)
			stored := map[string]admission.Message{}
			for i, d := range s.Messages {
				m := received(d.Raw(t))
				msg, refusal := a.Admit(m)
				got := judge(t, a, stored, msg, refusal)
				require.Equal(t, d.Want, got, "message %d: %v", i+1, refusal)
				if d.ID != "" {
					require.Equal(t, d.ID, msg.DocumentID, "message %d", i+1)
				}
				if refusal != nil {
					require.Contains(t, refusal.Detail, d.Detail, "message %d", i+1)
					requireReadable(t, refusal, m)
				}
			}
		})
	}
}

func judge(t *testing.T, a *admission.Admitter, stored map[string]admission.Message, msg admission.Message, refusal *reason.Refusal) string {
	t.Helper()
	if refusal != nil {
		require.Zero(t, msg, "a refused message is nothing")
		return refusal.Reason
	}
	earlier, exists := stored[msg.DocumentID]
	if !exists {
		stored[msg.DocumentID] = msg
		return scenario.Stored
	}
	require.Equal(t, earlier.Key, msg.Key, "two keys met")
	again, err := a.Rehash(msg, earlier.Fingerprint.Parameters)
	require.NoError(t, err)
	require.Equal(t, msg.Fingerprint, again, "one parameters, one hash")
	differences := fingerprint.Compare(earlier.Body, msg.Body, earlier.Fingerprint.Parameters, 10)
	if again.Equal(earlier.Fingerprint) {
		require.Empty(t, differences)
		return scenario.Duplicate
	}
	require.NotEmpty(t, differences)
	return scenario.Conflict
}

// requireReadable holds a refusal to what a person needs, and to what must not leak.
func requireReadable(t *testing.T, r *reason.Refusal, m *azservicebus.ReceivedMessage) {
	t.Helper()
	require.NotEmpty(t, r.Reason)
	require.Greater(t, len(r.Detail), 40, "a sentence: %q", r.Detail)
	require.Less(t, len(r.Detail), 700, "two sentences: %q", r.Detail)
	require.True(t, strings.HasSuffix(r.Detail, "."), "%q", r.Detail)
	if len(m.Body) > 12 {
		require.NotContains(t, r.Detail, string(m.Body[:12]))
	}
}
