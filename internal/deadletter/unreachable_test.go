package deadletter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// A .NET sender makes such a property of a decimal. The client library cannot decode it, and loses its link over it.
func TestALetterThatTheClientCannotReadIsListedAndRefused(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.bury("Odd", message("1", `{"n":1}`))
		ttl := uint32(1)
		_, err := w.Send("orders", servicebus.Message{
			Header: &servicebus.Header{TTL: &ttl}, Properties: &servicebus.Properties{MessageID: "2"}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(`{"n":2}`)},
			ApplicationProperties: servicebus.Map{{Key: "price", Value: servicebus.Decimal128{1}}},
		})
		require.NoError(t, err)
		time.Sleep(time.Second) // it expires, for nothing else can put it aside
		w.bury("Odd", message("3", `{"n":3}`))
		items := w.list(deadletter.Filter{})
		require.Len(t, items, 3)
		require.Equal(t, deadletter.Unreadable, items[1].Verdict.Kind)
		require.Contains(t, items[1].Verdict.Detail, "decimal128")

		for _, action := range []deadletter.Action{deadletter.Reprocess, deadletter.Resubmit, deadletter.Discard} {
			o := order(action)
			o.Choice.Acknowledged = true
			began := time.Now()
			out := w.act(o, 2)
			require.Equal(t, deadletter.Refused, out[0].Result, action)
			require.Contains(t, out[0].Detail, "decimal128")
			require.Less(t, time.Since(began), time.Second, "nobody waits for a lock that nobody holds")
			require.NotEmpty(t, deadletter.OfferOf(action, items[1].Letter, items[1].Verdict, w.settings, o.Choice, time.Now()).Refused)
		}
		out := w.act(order(deadletter.Reprocess), 1, 3)
		require.Equal(t, deadletter.Applied, out[0].Result)
		require.Equal(t, deadletter.Applied, out[1].Result, "what lies behind it is reached")
		require.EqualValues(t, 1, w.count(dead).Total())
	})
}
