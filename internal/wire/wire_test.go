package wire_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/wire"
)

func encode(t testing.TB, m *amqp.Message) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	require.NoError(t, err)
	return b
}

func rich() *amqp.Message {
	id, subject := "c1", "order"
	return &amqp.Message{
		Header:      &amqp.MessageHeader{Durable: true, TTL: time.Minute, DeliveryCount: 3},
		Annotations: amqp.Annotations{"x-opt-sequence-number": int64(7), "own": "stays"},
		Properties:  &amqp.MessageProperties{MessageID: "m1", CorrelationID: id, Subject: &subject},
		ApplicationProperties: map[string]any{
			"null": nil, "int": int32(1), "long": int64(2), "double": 1.5, "bool": true, "bytes": []byte{1}, "when": time.UnixMilli(1),
			"uuid": amqp.UUID{1, 2}, "ubyte": uint8(3), "text": string(make([]byte, 300)),
		},
		Data: [][]byte{[]byte("ab"), make([]byte, 300)}, Footer: amqp.Annotations{"f": int32(1)},
	}
}

func TestSplitCoversTheWholeMessageInOrder(t *testing.T) {
	for name, m := range map[string]*amqp.Message{
		"every section": rich(), "a value": {Value: "text"}, "sequences": {Sequence: [][]any{{int32(1)}, {"b", nil}}}, "nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			b := encode(t, m)
			sections, err := wire.Split(b)
			require.NoError(t, err)
			var joined []byte
			for i, s := range sections {
				joined = append(joined, s.Encoded...)
				require.True(t, bytes.HasSuffix(s.Encoded, s.Content))
				require.True(t, i == 0 || sections[i-1].Code <= s.Code)
			}
			require.Equal(t, string(b), string(joined))
		})
	}
}

func TestEntriesGoAndComeBack(t *testing.T) {
	sections, err := wire.Split(encode(t, rich()))
	require.NoError(t, err)
	for _, s := range sections {
		if s.Code != wire.ApplicationProperties {
			continue
		}
		entries, err := wire.Entries(s.Content)
		require.NoError(t, err)
		require.Len(t, entries, len(rich().ApplicationProperties))
		at := time.UnixMilli(1_700_000_000_123)
		b := wire.AppendMap(nil, s.Code, append(entries, wire.Int("n", -5), wire.Timestamp("at", at)))
		var back amqp.Message
		require.NoError(t, back.UnmarshalBinary(b))
		want := rich().ApplicationProperties
		want["n"], want["at"] = int32(-5), at
		require.Equal(t, want, back.ApplicationProperties)
		return
	}
	t.Fatal("there are no application properties")
}

func TestOneEntryThatCannotBeReadDoesNotHideTheOthers(t *testing.T) {
	odd := wire.Entry{Key: []byte{0xA1, 1, 'd'}, Value: []byte{0x57}} // no type has this constructor
	odd.Value = append(odd.Value, 0)
	b := encode(t, &amqp.Message{Annotations: amqp.Annotations{"x-opt-sequence-number": int64(7)}, Properties: &amqp.MessageProperties{MessageID: "m1"}})
	b = wire.AppendMap(b, wire.ApplicationProperties, []wire.Entry{odd, wire.Int("n", 3)})
	b = append(b, encode(t, &amqp.Message{Data: [][]byte{[]byte("body")}})...)
	m, foreign, damage := wire.Decode(b)
	require.Empty(t, foreign)
	require.Equal(t, []string{`application properties: the client library cannot decode "d"`}, damage)
	require.Equal(t, map[string]any{"n": int32(3)}, m.ApplicationProperties)
	require.Equal(t, int64(7), m.Annotations["x-opt-sequence-number"])
	require.Equal(t, "m1", m.Properties.MessageID)
	require.Equal(t, "body", string(m.GetData()))
}

func TestBytesThatAreNoMessageAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"no descriptor": {0x40}, "unknown section": {0, 0x53, 0x10, 0x40}, "cut value": {0, 0x53, 0x75, 0xA0, 9, 1}, "cut size": {0, 0x53, 0x75, 0xB0, 0},
		"no such type": {0, 0x53, 0x77, 0x01}, "endless description": append([]byte{0, 0x53, 0x77}, bytes.Repeat([]byte{0, 0x40}, 20)...),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.Split(b)
			require.Error(t, err)
			_, _, damage := wire.Decode(b)
			require.NotEmpty(t, damage)
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, rich()))
	f.Add(encode(f, &amqp.Message{Value: "text"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		wire.Decode(b)
		sections, err := wire.Split(b)
		n := 0
		for _, s := range sections {
			n += len(s.Encoded)
			if entries, err := wire.Entries(s.Content); err == nil {
				again, err := wire.Split(wire.AppendMap(nil, s.Code, entries))
				require.NoError(t, err)
				back, err := wire.Entries(again[0].Content)
				require.NoError(t, err)
				require.Equal(t, entries, back)
			}
		}
		require.True(t, n <= len(b) && (err != nil || n == len(b)))
	})
}
