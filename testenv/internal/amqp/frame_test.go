package amqp_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// frames pairs bodies with their encodings, which follow the field tables of amqp-core-transport section 2.7.
func frames() []struct {
	name  string
	body  amqp.Body
	bytes string
} {
	channel := uint16(3)
	return []struct {
		name  string
		body  amqp.Body
		bytes string
	}{
		{"open", &amqp.Open{ContainerID: "c", Hostname: "h", MaxFrameSize: 65536, ChannelMax: 9, IdleTimeout: time.Second},
			"005310c01405a10163a10168700001000060000970000003e8"},
		{"begin", &amqp.Begin{RemoteChannel: &channel, IncomingWindow: 5000, OutgoingWindow: 10, HandleMax: 255},
			"005311c00e05600003437000001388520a52ff"},
		{"attach", &amqp.Attach{
			Name: "l", Handle: 1, Receiver: true, SenderSettleMode: ptr(uint8(1)), ReceiverSettleMode: ptr(uint8(0)),
			Source: &amqp.Source{Address: "q"}, Target: &amqp.Target{}, InitialDeliveryCount: ptr(uint32(0)),
		}, "005312c0240aa1016c52014150015000005328c00704a10171434043005329c0050440434043404043"},
		{"flow", &amqp.Flow{NextIncomingID: ptr(uint32(1)), IncomingWindow: 2, NextOutgoingID: 3, OutgoingWindow: 4, Handle: ptr(uint32(0)), DeliveryCount: ptr(uint32(0)), LinkCredit: ptr(uint32(100)), Drain: true},
			"005313c00f095201520252035204434352644041"},
		{"transfer", &amqp.Transfer{Handle: 0, DeliveryID: ptr(uint32(5)), DeliveryTag: []byte{1}, MessageFormat: ptr(uint32(0)), More: true, Payload: []byte("xy")},
			"005314c00a06435205a001014340417879"},
		{"disposition", &amqp.Disposition{Receiver: true, First: 1, Last: ptr(uint32(2)), Settled: true, State: &amqp.Accepted{}},
			"005315c00b0541520152024100532445"},
		{"disposition with an error", &amqp.Disposition{First: 0, State: &amqp.Rejected{Error: &amqp.Error{Condition: "a:b", Description: "d"}}},
			"005315c01a0542434040005325c0100100531dc00a03a303613a62a1016440"},
		{"disposition that modifies", &amqp.Disposition{Receiver: true, First: 0, State: &amqp.Modified{UndeliverableHere: true}},
			"005315c00d0541434040005327c003024041"},
		{"detach", &amqp.Detach{Handle: 2, Closed: true}, "005316c00402520241"},
		{"end", &amqp.End{}, "00531745"},
		{"close", &amqp.Close{Error: &amqp.Error{Condition: "x"}}, "005318c00c0100531dc00603a301784040"},
		{"sasl mechanisms", &amqp.SASLMechanisms{Mechanisms: []amqp.Symbol{"ANONYMOUS"}}, "005340c00f01e00c01a309414e4f4e594d4f5553"},
		{"sasl init", &amqp.SASLInit{Mechanism: "ANONYMOUS", InitialResponse: []byte("a")}, "005341c00f02a309414e4f4e594d4f5553a00161"},
		{"sasl outcome", &amqp.SASLOutcome{}, "005344c003015000"},
	}
}

func TestGoldenFrames(t *testing.T) {
	for _, tt := range frames() {
		t.Run(tt.name, func(t *testing.T) {
			b := amqp.AppendBody(nil, tt.body)
			require.Equal(t, tt.bytes, hex.EncodeToString(b))
			got, err := amqp.ParseBody(b)
			require.NoError(t, err)
			require.Equal(t, tt.body, got)
		})
	}
}

func TestEmptyFrameHasOnlyItsHeader(t *testing.T) {
	require.Equal(t, "0000000802000007", hex.EncodeToString(amqp.AppendFrame(nil, amqp.Frame{Channel: 7})))
}

func TestMalformedBodiesAreErrors(t *testing.T) {
	for name, in := range map[string]string{
		"unknown performative": "00532045", "no list": "00531040", "named": "00a3016145",
		"field of another type": "005310c00401a00161", "too many bytes": "0053174500", "bytes after the last field": "005317c002004040",
		"unknown state": "005315c009054143404000537745", "described where an error should be": "005317c0040100532445",
		"count beyond the bytes": "005310c00109",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(in)
			require.NoError(t, err)
			_, err = amqp.ParseBody(b)
			require.ErrorIs(t, err, amqp.ErrMalformed)
		})
	}
}

func TestUnknownFieldsAtTheEndArePassedOver(t *testing.T) {
	b, err := hex.DecodeString("005316c0070552024140500141")
	require.NoError(t, err)
	b[4] = byte(len(b) - 5)
	got, err := amqp.ParseBody(b)
	require.NoError(t, err)
	require.Equal(t, &amqp.Detach{Handle: 2, Closed: true}, got)
}

func FuzzBody(f *testing.F) {
	for _, fr := range frames() {
		b, err := hex.DecodeString(fr.bytes)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := amqp.ParseBody(b)
		if err != nil {
			return
		}
		once := amqp.AppendBody(nil, body)
		again, err := amqp.ParseBody(once)
		require.NoError(t, err)
		require.Equal(t, once, amqp.AppendBody(nil, again))
	})
}
