package deadletter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// buryDecimal buries a message with a property that a .NET sender makes of a decimal. The client library cannot decode it.
func (w *world) buryDecimal(id string, properties servicebus.Map) int64 {
	w.t.Helper()
	ttl := uint32(1)
	n, err := w.Send("orders", servicebus.Message{
		Header: &servicebus.Header{TTL: &ttl}, Properties: &servicebus.Properties{MessageID: id}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(`{"n":2}`)},
		ApplicationProperties: properties,
	})
	require.NoError(w.t, err)
	time.Sleep(time.Second) // it expires, for nothing else can dead-letter it
	return n
}

// twelveFifty is 12.50 as IEEE 754 writes it: 1250 times ten to the power of -2.
var twelveFifty = servicebus.Decimal128{0: 0x30, 1: 0x3c, 14: 0x04, 15: 0xe2}

func TestMessagesThatTheClientLibraryCannotDecodeAreReachedLikeOthers(t *testing.T) {
	for _, front := range []int{1, 3, 10, 60} {
		t.Run(fmt.Sprintf("%d in front", front), func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, w *world) {
				var odd []int64
				for i := range front {
					odd = append(odd, w.buryDecimal(fmt.Sprint("odd", i), servicebus.Map{
						{Key: "price", Value: twelveFifty}, {Key: "nested", Value: servicebus.Map{{Key: "x", Value: servicebus.Decimal64{1}}, {Key: "y", Value: servicebus.List{servicebus.Decimal32{1}, servicebus.Char(65)}}}},
					}))
				}
				plain := w.bury("Odd", message("plain", `{"n":3}`))
				began := time.Now()
				require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), plain)[0].Result)
				require.Less(t, time.Since(began), 10*time.Second)
				require.Zero(t, w.count(dead).Locked, "no lock is left behind")

				discard := command(deadletter.Discard)
				discard.Choice.Acknowledged = true
				require.Equal(t, deadletter.Discarded, w.act(discard, odd[0])[0].Result)
				if front > 1 {
					require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), odd[1])[0].Result)
					again := command(deadletter.Resubmit)
					again.Choice.NewTTL = time.Hour
					require.Equal(t, deadletter.Resubmitted, w.act(again, odd[2])[0].Result)
					require.Contains(t, string(w.messages("orders")[0].Encoded), string(append([]byte{0x94}, twelveFifty[:]...)), "the copy carries the decimal")
				}
				require.Less(t, time.Since(began), time.Minute)
				require.Equal(t, servicebus.Counts{Active: max(0, front-3), Bytes: w.count(dead).Bytes}, w.count(dead))
			})
		})
	}
}

func TestValuesThatTheClientLibraryCannotDecodeAreShownAndExported(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.buryDecimal("m1", servicebus.Map{{Key: "price", Value: twelveFifty}})
		item := w.list(deadletter.Filter{})[0]
		require.Equal(t, deadletter.NeverApplied, item.Verdict.Kind)
		require.Equal(t, "TTLExpiredException", item.DeadLetter.Reason(), "the properties beside it are read")
		require.Equal(t, "decimal128(12.50)", deadletter.Value(item.DeadLetter.Message.ApplicationProperties["price"]))
		line, err := deadletter.ExportLine(item.DeadLetter)
		require.NoError(t, err)
		require.Contains(t, string(line), "encoded_b64")
		require.Contains(t, string(line), `price`)
		back, err := deadletter.ImportLine(line)
		require.NoError(t, err)
		require.Equal(t, item.DeadLetter.Encoded, back.Encoded)

		w.buryDecimal("m2", servicebus.Map{{Key: "nested", Value: servicebus.Map{{Key: "x", Value: twelveFifty}}}})
		line, err = deadletter.ExportLine(w.list(deadletter.Filter{MessageID: "m2"})[0].DeadLetter)
		require.NoError(t, err)
		require.Contains(t, string(line), "encoded_b64", "a value that stands in for another is not exported")
	})
}

// A message whose sections cannot be decoded at all holds nobody up, and can be removed.
func TestAMessageThatIsDamagedIsStillRemoved(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		header := encode(t, &amqp.Message{Header: &amqp.MessageHeader{TTL: time.Second}, Properties: &amqp.MessageProperties{MessageID: "odd"}})
		odd := append(header, 0, 0x53, 0x74, 0xC1, 6, 2, 0xA1, 1, 'd', 0x57, 0x01) // of a type that there is not
		odd = append(odd, encode(t, message("", `{}`))[7:]...)
		_, err := w.SendEncoded("orders", odd)
		if err != nil {
			t.Skip("the embedded Service Bus takes no such message: ", err)
		}
		time.Sleep(2 * time.Second)
		n := w.bury("X", message("m1", `{"a":1}`))
		require.Equal(t, deadletter.Applied, w.act(command(deadletter.Reprocess), n)[0].Result)
		discard := command(deadletter.Discard)
		discard.Choice.Acknowledged = true
		items := w.list(deadletter.Filter{})
		require.Equal(t, deadletter.Unreadable, items[0].Verdict.Kind)
		require.NotContains(t, items[0].Verdict.Detail, "encoding.")
		require.Equal(t, deadletter.Discarded, w.act(discard, items[0].DeadLetter.Sequence)[0].Result)
		require.Zero(t, w.count(dead).Total())
	})
}
