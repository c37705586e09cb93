package servicebus_test

import (
	"bytes"
	"encoding/base64"
	"math"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// encoded returns a message of the client library in its encoding.
func encoded(t *testing.T, m goamqp.Message) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	require.NoError(t, err)
	return b
}

func TestPropertiesOfEveryTypePassUnchanged(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		properties := map[string]any{
			"null": nil, "bool": true, "ubyte": uint8(1), "ushort": uint16(2), "uint": uint32(3), "ulong": uint64(math.MaxUint64),
			"byte": int8(-1), "short": int16(-2), "int": int32(-3), "long": int64(math.MinInt64), "float": float32(1.5), "double": -0.1,
			"time": time.UnixMilli(1700000000123), "uuid": goamqp.UUID{1, 2, 3}, "binary": []byte{0, 255}, "empty": "", "text": "Grüße",
		}
		subject, contentType, correlation, to, replyTo, group, replyGroup := "s", "application/json", "c", "t", "r", "g", "rg"
		w.send(&azservicebus.Message{
			MessageID: text("m1"), Body: []byte("{}"), ApplicationProperties: properties, Subject: &subject, ContentType: &contentType,
			CorrelationID: &correlation, To: &to, ReplyTo: &replyTo, SessionID: &group, ReplyToSessionID: &replyGroup, PartitionKey: &group,
		})
		r := w.receiver()
		check := func(m *azservicebus.ReceivedMessage) {
			t.Helper()
			require.Equal(t, properties, m.ApplicationProperties)
			require.Equal(t, []string{subject, contentType, correlation, to, replyTo, group, replyGroup, group},
				[]string{*m.Subject, *m.ContentType, *m.CorrelationID, *m.To, *m.ReplyTo, *m.SessionID, *m.ReplyToSessionID, *m.PartitionKey})
		}
		m := take(t, r, 1)[0]
		check(m)
		require.NoError(t, r.AbandonMessage(within(t, time.Minute), m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"int": "new", "more": true}}))
		properties["int"], properties["more"] = "new", true
		m = take(t, r, 1)[0]
		check(m)
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), m, &azservicebus.DeadLetterOptions{Reason: text("x")}))
		properties["DeadLetterReason"], properties["DeadLetterErrorDescription"] = "x", ""
		check(take(t, w.deadLetterReceiver(), 1)[0])
	})
}

func TestMessageIDsOfEveryTypePassUnchanged(t *testing.T) {
	ids := map[string]any{
		"string": "m1", "ulong": uint64(7), "uuid": goamqp.UUID{1}, "binary": []byte{1, 2}, "empty": "",
		"blanks": "  ", "beyond ASCII": "é/\\#?%\x00", "very long": string(bytes.Repeat([]byte("x"), 2000)),
	}
	for name, id := range ids {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				_, err := w.SendEncoded("orders", encoded(t, goamqp.Message{Properties: &goamqp.MessageProperties{MessageID: id}, Data: [][]byte{{1}}}))
				require.NoError(t, err)
				m := take(t, w.receiver(), 1)[0]
				require.Equal(t, id, m.RawAMQPMessage.Properties.MessageID)
				want, _ := id.(string)
				require.Equal(t, want, m.MessageID)
			})
		})
	}
}

func TestBodiesOfEveryKindPassByteForByte(t *testing.T) {
	gzip, err := base64.StdEncoding.DecodeString("H4sIAAAAAAAC/6tWyi9KSS3yTFGyUnLUNVTSUUrMzS/NK1GyMjGoBQCNIgQ4HQAAAA==")
	require.NoError(t, err)
	bodies := map[string]goamqp.Message{
		"one data section":     {Data: [][]byte{[]byte("\xef\xbb\xbf{}")}},
		"compressed":           {Data: [][]byte{gzip}},
		"invalid UTF-8":        {Data: [][]byte{{8, 0x96, 1, 0xff, 0xfe}}},
		"several sections":     {Data: [][]byte{[]byte("ab"), []byte("cd"), {}}},
		"empty data":           {Data: [][]byte{{}}},
		"a string value":       {Value: `{"orderId":"A-1"}`},
		"a binary value":       {Value: []byte("{}")},
		"a map value":          {Value: map[string]any{"b": []any{nil, true, int64(1)}}},
		"a sequence":           {Sequence: [][]any{{"a", int32(1)}, {nil}}},
		"more than one frame":  {Data: [][]byte{bytes.Repeat([]byte("0123456789"), 20000)}},
		"several frames twice": {Data: [][]byte{bytes.Repeat([]byte("a"), 100000), bytes.Repeat([]byte("b"), 100000)}},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				body.Properties = &goamqp.MessageProperties{MessageID: "m1"}
				body.Footer = goamqp.Annotations{"f": "v"}
				s, err := w.client.NewSender("orders", nil)
				require.NoError(t, err)
				annotated := &azservicebus.AMQPAnnotatedMessage{
					Body:       azservicebus.AMQPAnnotatedMessageBody{Data: body.Data, Value: body.Value, Sequence: body.Sequence},
					Properties: &azservicebus.AMQPAnnotatedMessageProperties{MessageID: "m1"}, Footer: map[any]any{"f": "v"},
				}
				require.NoError(t, s.SendAMQPAnnotatedMessage(within(t, time.Minute), annotated, nil))
				_, err = w.SendEncoded("orders", encoded(t, body))
				require.NoError(t, err)
				r := w.receiver()
				for _, m := range take(t, r, 2) {
					require.Equal(t, annotated.Body, m.RawAMQPMessage.Body)
					require.Equal(t, annotated.Footer, m.RawAMQPMessage.Footer)
				}
				all, err := w.Messages("orders")
				require.NoError(t, err)
				want, err := amqp.Split(encoded(t, body))
				require.NoError(t, err)
				for _, m := range all {
					got, err := amqp.Split(m.Encoded)
					require.NoError(t, err)
					require.Equal(t, want.Body, got.Body)
					require.Equal(t, want.Properties, got.Properties)
					require.Equal(t, want.Footer, got.Footer)
				}
			})
		})
	}
}

func TestPoisonPropertiesReachTheClientAsTheyAre(t *testing.T) {
	for name, value := range map[string]any{"a number": int32(1), "a boolean": true, "null": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				_, err := w.Send("orders", amqp.Message{
					Properties:            &amqp.Properties{MessageID: "m1"},
					ApplicationProperties: amqp.Map{{Key: "DeadLetterReason", Value: value}},
				})
				require.NoError(t, err)
				require.Panics(t, func() { _, _ = w.receiver().ReceiveMessages(within(t, time.Minute), 1, nil) })
				require.Equal(t, 1, w.counts().Locked)
			})
		})
	}
}

func TestAnnotationsOfTheSenderPassAndThoseOfTheBrokerWin(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		_, err := w.Send("orders", amqp.Message{
			Header: &amqp.Header{Durable: true, Priority: new(uint8), DeliveryCount: 5},
			Annotations: amqp.Map{
				{Key: amqp.Symbol("x-opt-sequence-number"), Value: "forged"}, {Key: amqp.Symbol("x-opt-partition-key"), Value: nil},
				{Key: amqp.Symbol("x-opt-locked-until"), Value: int64(3)}, {Key: amqp.Symbol("mine"), Value: int64(4)},
				{Key: amqp.Symbol("x-opt-enqueued-time"), Value: nil},
			},
			Properties: &amqp.Properties{MessageID: "m1"},
		})
		require.NoError(t, err)
		m := take(t, w.receiver(), 1)[0]
		require.Equal(t, int64(1), *m.SequenceNumber)
		require.Equal(t, int64(4), m.RawAMQPMessage.MessageAnnotations["mine"])
		require.Nil(t, m.PartitionKey)
		require.Equal(t, uint32(1), m.DeliveryCount, "the sender cannot set the delivery count")
		require.True(t, m.RawAMQPMessage.Header.Durable)
		require.Contains(t, m.RawAMQPMessage.MessageAnnotations, "x-opt-partition-key")
	})
}

func TestBatchBecomesItsMessages(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		batch, err := s.NewMessageBatch(within(t, time.Minute), nil)
		require.NoError(t, err)
		life := 10 * time.Second
		first := message("m1", "1")
		first.TimeToLive, first.ApplicationProperties = &life, map[string]any{"only": "first"}
		require.NoError(t, batch.AddMessage(first, nil))
		require.NoError(t, batch.AddMessage(message("m2", "2"), nil))
		require.NoError(t, s.SendMessageBatch(within(t, time.Minute), batch, nil))
		ms := take(t, w.receiver(), 2)
		require.Equal(t, []string{"m1", "m2"}, []string{ms[0].MessageID, ms[1].MessageID})
		require.Equal(t, life, *ms[0].TimeToLive)
		require.Equal(t, time.Hour, *ms[1].TimeToLive)
		require.Empty(t, ms[1].ApplicationProperties)
		require.Equal(t, "2", string(ms[1].Body))
	})
}

func TestMessageTooLargeIsRefusedBeforeAndAfterItLeavesTheClient(t *testing.T) {
	bubble(t, servicebus.Options{MaxMessageSize: 10_000}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		ctx := within(t, time.Minute)
		require.ErrorIs(t, s.SendMessage(ctx, message("m1", string(make([]byte, 10_000))), nil), azservicebus.ErrMessageTooLarge)
		require.NoError(t, s.SendMessage(ctx, message("m2", string(make([]byte, 9_000))), nil))
		batch, err := s.NewMessageBatch(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, batch.AddMessage(message("m3", string(make([]byte, 9_000))), nil))
		require.ErrorIs(t, batch.AddMessage(message("m4", string(make([]byte, 9_000))), nil), azservicebus.ErrMessageTooLarge)
		_, err = w.SendEncoded("orders", encoded(t, goamqp.Message{Data: [][]byte{make([]byte, 10_000)}}))
		require.ErrorContains(t, err, "10000")
		require.Equal(t, 1, w.counts().Total())
	})
}

func TestPropertiesTooLargeAreRefused(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		m := message("m1", "{}")
		m.ApplicationProperties = map[string]any{"p": string(make([]byte, 65<<10))}
		require.ErrorIs(t, s.SendMessage(within(t, time.Minute), m, nil), azservicebus.ErrMessageTooLarge)
		m.ApplicationProperties = map[string]any{"p": string(make([]byte, 63<<10))}
		require.NoError(t, s.SendMessage(within(t, time.Minute), m, nil))
		r := w.receiver()
		got := take(t, r, 1)[0]
		err = r.DeadLetterMessage(within(t, 2*time.Second), got, &azservicebus.DeadLetterOptions{ErrorDescription: text(string(make([]byte, 2000)))})
		require.Error(t, err)
		require.Equal(t, 1, w.counts().Locked, "a refused settlement leaves the lock as it was")
		again := &azservicebus.ReceivedMessage{LockToken: got.LockToken}
		require.NoError(t, r.DeadLetterMessage(within(t, 2*time.Second), again, &azservicebus.DeadLetterOptions{Reason: text("bare")}))
	})
}

func TestFullQueueRefusesAndItsDeadLettersCount(t *testing.T) {
	bubble(t, with(func(q *servicebus.Queue) { q.MaxSize = 20_000 }), func(t *testing.T, w *env) {
		w.send(message("m1", string(make([]byte, 15_000))))
		r := w.receiver()
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), take(t, r, 1)[0], nil))
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		err = s.SendMessage(within(t, time.Minute), message("m2", string(make([]byte, 10_000))), nil)
		var e *goamqp.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, goamqp.ErrCondResourceLimitExceeded, e.Condition)
		require.Contains(t, e.Description, "QuotaExceeded")
		d := w.deadLetterReceiver()
		require.NoError(t, d.CompleteMessage(within(t, time.Minute), take(t, d, 1)[0], nil))
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m2", string(make([]byte, 10_000))), nil))
	})
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	b, err := servicebus.New(servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{orders()}}})
	require.NoError(t, err)
	defer b.Close()
	_, err = b.SendEncoded("orders", []byte{0, 0x53, 0x75, 0xa0, 9})
	require.ErrorIs(t, err, amqp.ErrMalformed)
	_, err = b.SendEncoded("nowhere", nil)
	require.ErrorContains(t, err, "nowhere")
	_, err = b.SendEncoded(dlq, nil)
	require.ErrorContains(t, err, "Cannot send")
	_, err = b.Send("orders", amqp.Message{BodyKind: amqp.BodyValue, Value: 1})
	require.ErrorContains(t, err, "not an AMQP value")
	_, err = b.SendEncoded("orders", nil)
	require.NoError(t, err, "an empty message is one")
}
