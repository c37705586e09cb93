package worker

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
)

func TestDifferencesAreToldOnlyWhenTheRecordCanTell(t *testing.T) {
	t.Parallel()
	a, err := admission.New(admission.Config{})
	require.NoError(t, err)
	p := &Pipeline{admitter: a}
	arrived, refusal := a.Admit(&azservicebus.ReceivedMessage{MessageID: "1", Body: []byte(`{"a":1,"b":2}`)})
	require.Nil(t, refusal)
	for _, tt := range []struct {
		name, committed, content string
		want                     []fingerprint.Difference
	}{
		{"the record is as it was committed", `{"a":1,"b":3}`, `{"b":3,"a":1}`, []fingerprint.Difference{{Path: "/b", Kind: fingerprint.Changed}}},
		{"the record was changed since", `{"a":1,"b":3}`, `{"a":1,"b":3,"shipped":true}`, nil},
		{"the handler keeps another form", `{"a":1,"b":3}`, `{"total":4}`, nil},
	} {
		f, err := fingerprint.Compute([]byte(tt.committed), arrived.Fingerprint.Parameters)
		require.NoError(t, err)
		require.Equal(t, tt.want, p.differences(arrived, Record{Fingerprint: &f, Content: []byte(tt.content)}), tt.name)
	}
}
