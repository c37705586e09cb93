package fingerprint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// BenchmarkCompute hashes an order as programs write them, and one whose members are out of order at every level that
// admission takes.
func BenchmarkCompute(b *testing.B) {
	line := `{"sku":"SKU-000001","name":"Widget, 10 cm, \"blue\"","quantity":3,"price":19.99,"gift":false,"note":null}`
	deep := strings.Repeat(`{"n":0,"m":`, 126) + list(line, 16<<10) + strings.Repeat(`,"a":0}`, 126)
	for _, tt := range []struct{ name, body string }{
		{"1KB", fmt.Sprintf(`{"orderId":"A-1","customer":"Zoë","lines":%s,"currency":"EUR"}`, list(line, 1<<10))},
		{"256KB", fmt.Sprintf(`{"orderId":"A-1","customer":"Zoë","lines":%s,"currency":"EUR"}`, list(line, 256<<10))},
		{"out of order at every level", deep},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(tt.body)))
			for b.Loop() {
				if _, err := fingerprint.Compute([]byte(tt.body), plain); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
