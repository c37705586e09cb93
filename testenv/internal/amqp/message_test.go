package amqp_test

import (
	"encoding/hex"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

func ptr[T any](v T) *T { return &v }

// full is a message with every section and every field.
func full() amqp.Message {
	return amqp.Message{
		Header:              &amqp.Header{Durable: true, Priority: ptr(uint8(9)), TTL: ptr(uint32(60000)), FirstAcquirer: true, DeliveryCount: 3},
		DeliveryAnnotations: amqp.Map{{Key: amqp.Symbol("x-opt-lock-token"), Value: amqp.UUID{1, 2, 3}}},
		Annotations:         amqp.Map{{Key: amqp.Symbol("x-opt-sequence-number"), Value: int64(7)}},
		Properties: &amqp.Properties{
			MessageID: "m1", UserID: []byte("u"), To: "to", Subject: ptr("subject"), ReplyTo: "reply", CorrelationID: uint64(5),
			ContentType: ptr(amqp.Symbol("application/json")), ContentEncoding: ptr(amqp.Symbol("gzip")),
			AbsoluteExpiryTime: ptr(time.UnixMilli(1000).UTC()), CreationTime: ptr(time.UnixMilli(2000).UTC()), GroupID: ptr("g"),
			GroupSequence: ptr(uint32(4)), ReplyToGroupID: ptr("rg"),
		},
		ApplicationProperties: amqp.Map{{Key: "a", Value: nil}, {Key: "b", Value: true}, {Key: "c", Value: uint8(1)}},
		BodyKind:              amqp.BodyData,
		Data:                  [][]byte{[]byte("one"), []byte("two")},
		Footer:                amqp.Map{{Key: amqp.Symbol("f"), Value: "v"}},
	}
}

func TestMessageIsReadByTheClientLibrary(t *testing.T) {
	b, err := amqp.AppendMessage(nil, full())
	require.NoError(t, err)
	var got goamqp.Message
	require.NoError(t, got.UnmarshalBinary(b))
	require.Equal(t, &goamqp.MessageHeader{Durable: true, Priority: 9, TTL: time.Minute, FirstAcquirer: true, DeliveryCount: 3}, got.Header)
	require.Equal(t, goamqp.UUID{1, 2, 3}, got.DeliveryAnnotations["x-opt-lock-token"])
	require.Equal(t, int64(7), got.Annotations["x-opt-sequence-number"])
	require.Equal(t, "m1", got.Properties.MessageID)
	require.Equal(t, uint64(5), got.Properties.CorrelationID)
	require.Equal(t, "gzip", *got.Properties.ContentEncoding)
	require.Equal(t, "rg", *got.Properties.ReplyToGroupID)
	require.Equal(t, map[string]any{"a": nil, "b": true, "c": uint8(1)}, got.ApplicationProperties)
	require.Equal(t, [][]byte{[]byte("one"), []byte("two")}, got.Data)
	require.Equal(t, goamqp.Annotations{"f": "v"}, got.Footer)
	again, err := amqp.DecodeMessage(b)
	require.NoError(t, err)
	require.Equal(t, full(), again)
}

func TestMessageOfTheClientLibraryIsRead(t *testing.T) {
	in := goamqp.Message{
		Header:                &goamqp.MessageHeader{TTL: time.Second},
		Properties:            &goamqp.MessageProperties{MessageID: goamqp.UUID{9}, Subject: ptr("s"), CreationTime: ptr(time.UnixMilli(5).UTC())},
		ApplicationProperties: map[string]any{"n": int64(1)},
		Value:                 map[string]any{"k": []int64{1, 2, 300}},
	}
	b, err := in.MarshalBinary()
	require.NoError(t, err)
	m, err := amqp.DecodeMessage(b)
	require.NoError(t, err)
	require.Equal(t, ptr(uint32(1000)), m.Header.TTL)
	require.Equal(t, amqp.UUID{9}, m.Properties.MessageID)
	require.Equal(t, ptr(time.UnixMilli(5).UTC()), m.Properties.CreationTime)
	require.Equal(t, amqp.Map{{Key: "n", Value: int64(1)}}, m.ApplicationProperties)
	require.Equal(t, amqp.BodyValue, m.BodyKind)
	body := m.Value.(amqp.Map)
	v, ok := body.Get("k")
	require.True(t, ok)
	require.Equal(t, []any{int64(1), int64(2), int64(300)}, v.(amqp.Array).Items)
}

func TestSplitKeepsEveryByte(t *testing.T) {
	sequence := amqp.Message{BodyKind: amqp.BodySequence, Sequence: []amqp.List{{"a", int32(1)}, {}}}
	value := amqp.Message{BodyKind: amqp.BodyValue}
	empty := amqp.Message{Properties: &amqp.Properties{}}
	for name, m := range map[string]amqp.Message{"everything": full(), "sequence": sequence, "null value": value, "no body": empty} {
		t.Run(name, func(t *testing.T) {
			b, err := amqp.AppendMessage(nil, m)
			require.NoError(t, err)
			s, err := amqp.Split(b)
			require.NoError(t, err)
			var joined []byte
			for _, part := range [][]byte{
				s.Header, s.DeliveryAnnotations, s.Annotations, s.Properties, s.ApplicationProperties, s.Body, s.Footer,
			} {
				joined = append(joined, part...)
			}
			require.Equal(t, b, joined)
			require.Equal(t, len(b), s.Size())
			require.Equal(t, m.BodyKind, s.Kind)
			require.Equal(t, max(len(m.Data), len(m.Sequence), b2i(m.BodyKind == amqp.BodyValue)), s.BodySections)
			decoded, err := s.Decode()
			require.NoError(t, err)
			require.Equal(t, m, decoded)
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestMalformedMessagesAreErrors(t *testing.T) {
	for name, in := range map[string]string{
		"not a section":            "40",
		"unknown section":          "00537940",
		"named section":            "00a3016145",
		"header twice":             "0053704500537045",
		"header that is a map":     "005370c10100",
		"properties that are text": "005373a10161",
		"annotations with a list":  "00537245",
		"data that is text":        "005375a10161",
		"sequence that is a map":   "005376c10100",
		"data and value":           "005375a00000537740",
		"value twice":              "0053774000537740",
		"cut short":                "005375a005",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(in)
			require.NoError(t, err)
			_, err = amqp.Split(b)
			require.ErrorIs(t, err, amqp.ErrMalformed)
		})
	}
	for name, in := range map[string]string{
		"header with a text for ttl": "005370c006034040a10161",
		"message id that is a bool":  "005373c0020141",
		"subject that is a number":   "005373c005044040405001",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(in)
			require.NoError(t, err)
			_, err = amqp.DecodeMessage(b)
			require.ErrorIs(t, err, amqp.ErrMalformed)
		})
	}
}

func TestMapSectionPassesRawPairsAndAddsOthers(t *testing.T) {
	src, err := amqp.AppendMessage(nil, amqp.Message{Annotations: amqp.Map{
		{Key: amqp.Symbol("keep"), Value: nil}, {Key: uint64(3), Value: int16(1)},
	}})
	require.NoError(t, err)
	w := amqp.NewMapSection([]byte("before"), amqp.SectionAnnotations)
	names := []string{}
	require.NoError(t, amqp.EachPair(src, func(k, v []byte) error {
		name, _ := amqp.KeyText(k)
		names = append(names, name)
		w.Raw(append(append([]byte(nil), k...), v...), 1)
		return nil
	}))
	require.Equal(t, []string{"keep", ""}, names)
	w.Long("seq", -5)
	w.Millis("at", 12)
	require.NoError(t, w.Put(amqp.Symbol("s"), "x"))
	require.Error(t, w.Put("bad", 1))
	b := w.Done()
	require.Equal(t, "before", string(b[:6]))
	m, err := amqp.DecodeMap(b[6:])
	require.NoError(t, err)
	require.Equal(t, amqp.Map{
		{Key: amqp.Symbol("keep"), Value: nil}, {Key: uint64(3), Value: int16(1)}, {Key: amqp.Symbol("seq"), Value: int64(-5)},
		{Key: amqp.Symbol("at"), Value: time.UnixMilli(12).UTC()}, {Key: amqp.Symbol("s"), Value: "x"},
	}, m)
	require.NoError(t, amqp.EachPair(nil, nil))
}

func FuzzMessage(f *testing.F) {
	for _, m := range []amqp.Message{full(), {BodyKind: amqp.BodySequence, Sequence: []amqp.List{{"a"}}}, {BodyKind: amqp.BodyValue, Value: "v"}} {
		b, err := amqp.AppendMessage(nil, m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := amqp.Split(b)
		if err != nil {
			return
		}
		require.Equal(t, len(b), s.Size())
		m, err := s.Decode()
		if err != nil {
			return
		}
		once, err := amqp.AppendMessage(nil, m)
		require.NoError(t, err)
		again, err := amqp.DecodeMessage(once)
		require.NoError(t, err)
		twice, err := amqp.AppendMessage(nil, again)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
