package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/identity"
)

// TestIdempotencyKeysNeverChange pins the keys: another key for a message that was processed half makes another system do its part
// twice.
func TestIdempotencyKeysNeverChange(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  identity.Key
		use  string
		want string
	}{
		{"an ordinary id", identity.Text("1042"), "charge", "1042~part.charge"},
		{"another use of the same message", identity.Text("1042"), "refund.1", "1042~part.refund~2E1"},
		{"no name", identity.Text("1042"), "", "1042~part."},
		{"a name that a header would have to escape", identity.Text("1042"), "a \"b\"\\\r\n", "1042~part.a~20~22b~22~5C~0D~0A"},
		{"an id with a slash and a blank", identity.Text("PO/17 a"), "charge", "PO~2F17~20a~part.charge"},
		{"an id in another script", identity.Text("é"), "charge", "~C3~A9~part.charge"},
		{"an id that looks like a key", identity.Text("1042~part.charge"), "charge", "1042~7Epart.charge~part.charge"},
		{"a consumer", identity.Key{Consumer: "billing", Kind: identity.String, Value: "1042"}, "charge", "~for.billing.1042~part.charge"},
		{"a typed id", identity.Key{Kind: identity.Ulong, Value: "42"}, "charge", "~ulong.42~part.charge"},
		{"a CloudEvent", identity.Key{Kind: identity.CloudEvent, Source: "/shop", Value: "e1"}, "charge", "~event.~2Fshop.e1~part.charge"},
		{"a long id", identity.Text(strings.Repeat("/", 128)), "charge",
			"~sha256.978e07f266359afba0c9009af0b38a799ec7a97d56d903a9d1d01102bdac9700~part.charge"},
		{"a long name", identity.Text("1042"), strings.Repeat("n", 300),
			"~part-sha256.28e12c419d687caa909b755e954670163336b2f2c4bf04b35d0fb66da1dd8be7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, admission.Message{Key: tt.key}.IdempotencyKey(tt.use))
		})
	}
}

func TestAnIdempotencyKeyDependsOnTheKeyOfTheMessageAndTheNameAlone(t *testing.T) {
	first := simple("m-1", `{"amount":40}`)
	again := simple("m-1", `{"amount": 40.0}`)
	again.DeliveryCount, again.LockToken, again.ApplicationProperties = 7, [16]byte{9}, map[string]any{"traceparent": "x"}
	again.SequenceNumber, again.EnqueuedTime = new(int64(99)), new(time.Now())
	of := func(c admission.Config, m *azservicebus.ReceivedMessage, name string) string {
		admitted, refusal := newAdmitter(t, c).Admit(m)
		require.Nil(t, refusal)
		return admitted.IdempotencyKey(name)
	}
	partition, err := admission.ParsePartitionSource("body:/amount")
	require.NoError(t, err)
	want := of(admission.Config{}, first, "charge")
	require.Equal(t, want, of(admission.Config{}, again, "charge"), "another delivery, and a dead letter that is reprocessed")
	require.Equal(t, want, of(admission.Config{Partition: partition, Form: "bytes"}, first, "charge"), "other settings")
	require.NotEqual(t, want, of(admission.Config{Consumer: "billing"}, first, "charge"), "another consumer")
	require.NotEqual(t, want, of(admission.Config{}, first, "Charge"))
	require.NotEqual(t, want, of(admission.Config{}, simple("M-1", `{}`), "charge"))
}

func FuzzIdempotencyKeysAreDistinctAndFitAHeader(f *testing.F) {
	f.Add("", "1042", "charge", "", "1042~part.charge", "")
	f.Add("a", "b", "c", "a.b", "c", "")
	f.Add("", strings.Repeat("/", 300), "n", "", strings.Repeat("/", 301), "n")
	f.Add("", "x", strings.Repeat("é", 300), "", "x", strings.Repeat("é", 299))
	f.Fuzz(func(t *testing.T, c1, v1, n1, c2, v2, n2 string) {
		a := admission.Message{Key: identity.Key{Consumer: c1, Kind: identity.String, Value: v1}}.IdempotencyKey(n1)
		b := admission.Message{Key: identity.Key{Consumer: c2, Kind: identity.String, Value: v2}}.IdempotencyKey(n2)
		require.Equal(t, [3]string{c1, v1, n1} == [3]string{c2, v2, n2}, a == b)
		require.LessOrEqual(t, len(a), 255)
		require.NotContains(t, a, `"`)
		require.NotContains(t, a, `\`)
		require.False(t, strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r > '~' }), "%q", a)
	})
}
