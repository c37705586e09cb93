package admission_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/admission"
)

// orderBody returns an order of about size bytes, with its members in the order in which programs write them.
func orderBody(t testing.TB, size int) []byte {
	t.Helper()
	type line struct {
		SKU      string  `json:"sku"`
		Name     string  `json:"name"`
		Quantity int     `json:"quantity"`
		Price    float64 `json:"price"`
		Gift     bool    `json:"gift"`
		Note     *string `json:"note"`
	}
	order := struct {
		OrderID  string `json:"orderId"`
		Customer string `json:"customer"`
		SentAt   string `json:"sentAt"`
		Lines    []line `json:"lines"`
		Currency string `json:"currency"`
	}{OrderID: "A-1042", Customer: "Zoë Müller & Co", SentAt: "2024-05-01T10:00:00Z", Currency: "EUR"}
	text := []byte(nil)
	for len(text) < size {
		n := len(order.Lines)
		for range max(1, (size-len(text))/200) {
			n++
			order.Lines = append(order.Lines, line{SKU: fmt.Sprintf("SKU-%06d", n), Name: "Widget, 10 cm, \"blue\"", Quantity: n%7 + 1, Price: 19.99 + float64(n), Gift: n%3 == 0})
		}
		var err error
		text, err = json.Marshal(order)
		require.NoError(t, err)
	}
	return text
}

// BenchmarkAdmit measures admission with its fingerprint, and in the same run what it is compared with: SHA-256 over the
// same bytes and encoding/json decoding into any.
func BenchmarkAdmit(b *testing.B) {
	a, err := admission.New(admission.Config{})
	require.NoError(b, err)
	for _, size := range []int{1 << 10, 16 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			text := orderBody(b, size)
			m := &azservicebus.ReceivedMessage{MessageID: "1042", Body: text}
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			var reference time.Duration
			for b.Loop() {
				b.StopTimer()
				start := time.Now()
				referenceWork(b, text)
				reference += time.Since(start)
				b.StartTimer()
				if _, refusal := a.Admit(m); refusal != nil {
					b.Fatal(refusal)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(reference), "ratio")
		})
	}
}

func referenceWork(b *testing.B, text []byte) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		b.Fatal(err)
	}
	if sha256.Sum256(text) == [sha256.Size]byte{} {
		b.Fatal("a hash of zeros")
	}
}
