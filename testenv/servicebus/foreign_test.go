package servicebus_test

import (
	"context"
	"encoding/hex"
	"testing"
	"testing/synctest"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// What the clients of other languages do on the wire, and Go does not. Each was seen with the unmodified client.

// request asks a node over the links with the handles out and in, and returns the application properties and the body.
func (c *wire) request(out, in uint32, m amqp.Message) (amqp.Map, any) {
	c.t.Helper()
	m.BodyKind = amqp.BodyValue
	b, err := amqp.AppendMessage(nil, m)
	require.NoError(c.t, err)
	c.transfer(out, 0, b)
	require.IsType(c.t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
	credit := uint32(10)
	c.send(&amqp.Flow{IncomingWindow: 5000, OutgoingWindow: 5000, NextIncomingID: new(uint32), Handle: &in, DeliveryCount: new(uint32), LinkCredit: &credit})
	reply, err := amqp.DecodeMessage(want[*amqp.Transfer](c).Payload)
	require.NoError(c.t, err)
	return reply.ApplicationProperties, reply.Value
}

// putToken is a request to put a token for the namespace.
func putToken(kind string, p *amqp.Properties) amqp.Message {
	const audience = "amqps://embedded.example/orders"
	return amqp.Message{
		Properties: p, Value: sign(audience, servicebus.EmulatorKeyName, servicebus.EmulatorKey, time.Now().Add(time.Hour)),
		ApplicationProperties: amqp.Map{{Key: "operation", Value: "put-token"}, {Key: "type", Value: kind}, {Key: "name", Value: audience}},
	}
}

func TestRepliesReachLinksOfEveryClient(t *testing.T) {
	tests := []struct {
		name            string
		target, replyTo string
		kind            string
	}{
		{"reply-to is the address of the target: Go", "here", "here", "servicebus.windows.net:sastoken"},
		{"reply-to is the name of the link, whose target has no address: JavaScript", "", "cbs-in", "servicebus.windows.net:sastoken"},
		{"no reply-to, and a signature announced as jwt: Python", "", "", "jwt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, servicebus.Options{}).connect()
				c.attachCBS(tt.target)
				p := &amqp.Properties{MessageID: "1"}
				if tt.replyTo != "" {
					p.ReplyTo = tt.replyTo
				}
				got, _ := c.request(10, 11, putToken(tt.kind, p))
				for _, name := range []string{"statusCode", "status-code"} {
					status, _ := got.Get(name)
					require.Equal(t, int32(202), status, name)
				}
				text, _ := got.Get("status-description")
				require.Equal(t, "Accepted", text)
			})
		})
	}
}

func TestAReplyGoesToTheNamedOneOfSeveralLinks(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.send(&amqp.Attach{Name: "m-out", Handle: 3, Source: &amqp.Source{}, Target: &amqp.Target{Address: "orders/$management"}})
		want[*amqp.Attach](c)
		credit := uint32(10)
		for handle, name := range []string{"m-first", "m-second", "m-third"} {
			h := uint32(handle + 4)
			c.send(&amqp.Attach{Name: name, Handle: h, Receiver: true, Source: &amqp.Source{Address: "orders/$management"}, Target: &amqp.Target{}})
			want[*amqp.Attach](c)
			c.send(&amqp.Flow{IncomingWindow: 5000, OutgoingWindow: 5000, NextIncomingID: new(uint32), Handle: &h, DeliveryCount: new(uint32), LinkCredit: &credit})
		}
		for handle, name := range map[uint32]string{4: "m-first", 5: "m-second", 6: "m-third"} {
			b, err := amqp.AppendMessage(nil, amqp.Message{
				Properties: &amqp.Properties{MessageID: "1", ReplyTo: name}, ApplicationProperties: amqp.Map{{Key: "operation", Value: "com.microsoft:peek-message"}},
				BodyKind: amqp.BodyValue, Value: amqp.Map{{Key: "from-sequence-number", Value: int64(1)}, {Key: "message-count", Value: int32(1)}},
			})
			require.NoError(t, err)
			c.transfer(3, handle, b)
			require.IsType(t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
			require.Equal(t, handle, want[*amqp.Transfer](c).Handle, name)
		}
	})
}

func TestAnOrdinaryDeliveryHasTheAnnotationsOfTheServiceAndNoOthers(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		_, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		c.attachReceiver(1)
		m, err := amqp.DecodeMessage(want[*amqp.Transfer](c).Payload)
		require.NoError(t, err)
		var names []any
		for _, p := range m.Annotations {
			names = append(names, p.Key)
		}
		require.ElementsMatch(t, []any{amqp.Symbol("x-opt-sequence-number"), amqp.Symbol("x-opt-enqueued-time"), amqp.Symbol("x-opt-locked-until")}, names)
	})
}

// attachCBS attaches the handles 10 and 11 to $cbs.
func (c *wire) attachCBS(target string) {
	c.t.Helper()
	one := uint8(1)
	c.send(&amqp.Attach{Name: "cbs-out", Handle: 10, Source: &amqp.Source{}, Target: &amqp.Target{Address: "$cbs"}})
	want[*amqp.Attach](c)
	c.send(&amqp.Attach{Name: "cbs-in", Handle: 11, Receiver: true, SenderSettleMode: &one, Source: &amqp.Source{Address: "$cbs"}, Target: &amqp.Target{Address: target}})
	want[*amqp.Attach](c)
}

func TestAReplyToThatNamesNoLinkOfTheSessionIsAnsweredOverTheNodesOwnLink(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.send(&amqp.Attach{Name: "m-out", Handle: 3, Source: &amqp.Source{}, Target: &amqp.Target{Address: "orders/$management"}})
		want[*amqp.Attach](c)
		c.send(&amqp.Attach{Name: "m-in", Handle: 4, Receiver: true, Source: &amqp.Source{Address: "orders/$management"}, Target: &amqp.Target{}})
		want[*amqp.Attach](c)
		got, _ := c.request(3, 4, amqp.Message{
			Properties:            &amqp.Properties{MessageID: "7"},
			ApplicationProperties: amqp.Map{{Key: "operation", Value: "com.microsoft:peek-message"}},
			Value:                 amqp.Map{{Key: "from-sequence-number", Value: int64(1)}, {Key: "message-count", Value: int32(1)}},
		})
		status, _ := got.Get("statusCode")
		require.Equal(t, int32(204), status)
		_, both := got.Get("status-code")
		require.False(t, both, "only $cbs answers in both spellings")
	})
}

func TestAddressesMayBeWholeURLs(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.send(&amqp.Attach{Name: "in", Handle: 1, Receiver: true, Source: &amqp.Source{Address: "amqps://embedded.example:5671/orders/$DeadLetterQueue"}, Target: &amqp.Target{}})
		require.NotNil(t, want[*amqp.Attach](c).Source)
		n, err := w.Links(dlq, servicebus.Receivers)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

func TestDeadLetteringIsConfirmedAsRejectedWithoutAnError(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		_, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		c.attachReceiver(1)
		id := *want[*amqp.Transfer](c).DeliveryID
		c.send(&amqp.Disposition{Receiver: true, First: id, State: &amqp.Rejected{Error: &amqp.Error{
			Condition: "com.microsoft:dead-letter", Info: amqp.Map{{Key: amqp.Symbol("DeadLetterReason"), Value: "x"}},
		}}})
		require.Equal(t, &amqp.Rejected{}, want[*amqp.Disposition](c).State)
		require.Equal(t, 1, w.counts().DeadLettered)
	})
}

func TestErrorsAreWrittenWithAllTheirFields(t *testing.T) {
	b := amqp.AppendBody(nil, &amqp.Close{Error: &amqp.Error{Condition: "a:b", Description: "d"}})
	require.Equal(t, "00531dc00a03a303613a62a1016440", hex.EncodeToString(b[len(b)-15:]), "condition, description and null")
}

func TestAMessageReceivedByItsNumberCarriesItsLockToken(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		seq, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		c.attachReceiver(1)
		id := *want[*amqp.Transfer](c).DeliveryID
		c.send(&amqp.Disposition{Receiver: true, First: id, State: &amqp.Modified{UndeliverableHere: true}})
		require.IsType(t, &amqp.Modified{}, want[*amqp.Disposition](c).State)
		c.send(&amqp.Attach{Name: "m-out", Handle: 3, Source: &amqp.Source{}, Target: &amqp.Target{Address: "orders/$management"}})
		want[*amqp.Attach](c)
		c.send(&amqp.Attach{Name: "m-in", Handle: 4, Receiver: true, Source: &amqp.Source{Address: "orders/$management"}, Target: &amqp.Target{Address: "m"}})
		want[*amqp.Attach](c)
		manage := func(op string, body amqp.Map) amqp.Map {
			status, value := c.request(3, 4, amqp.Message{
				Properties:            &amqp.Properties{MessageID: op, ReplyTo: "m"},
				ApplicationProperties: amqp.Map{{Key: "operation", Value: "com.microsoft:" + op}}, Value: body,
			})
			code, _ := status.Get("statusCode")
			require.Equal(t, int32(200), code)
			m, _ := value.(amqp.Map)
			return m
		}
		got := manage("receive-by-sequence-number", amqp.Map{
			{Key: "sequence-numbers", Value: amqp.Longs([]int64{seq})}, {Key: "receiver-settle-mode", Value: uint32(1)},
		})
		list, _ := got.Get("messages")
		entry := list.(amqp.List)[0].(amqp.Map)
		token, _ := entry.Get("lock-token")
		require.IsType(t, amqp.UUID{}, token)
		encoded, _ := entry.Get("message")
		m, err := amqp.DecodeMessage(encoded.([]byte))
		require.NoError(t, err)
		require.Equal(t, uint32(1), m.Header.DeliveryCount, "the defer counted")
		manage("update-disposition", amqp.Map{{Key: "disposition-status", Value: "completed"}, {Key: "lock-tokens", Value: amqp.List{token}}})
		require.Zero(t, w.counts().Total())
	})
}

func TestAMessageWithoutAnIDGetsOne(t *testing.T) {
	subject := "s"
	for name, p := range map[string]*amqp.Properties{"no properties at all": nil, "other properties": {Subject: &subject, CorrelationID: uint64(7)}} {
		t.Run(name, func(t *testing.T) {
			onTheWire(t, func(t *testing.T, w *env, c *wire) {
				b, err := amqp.AppendMessage(nil, amqp.Message{Properties: p, BodyKind: amqp.BodyData, Data: [][]byte{{1}}})
				require.NoError(t, err)
				c.send(&amqp.Attach{Name: "out", Handle: 2, Source: &amqp.Source{}, Target: &amqp.Target{Address: "orders"}})
				want[*amqp.Attach](c)
				ids := map[any]bool{}
				for i := range uint32(2) {
					c.transfer(2, i, b)
					require.IsType(t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
				}
				for _, m := range take(t, receiverOf(t, w.dial(), nil), 2) {
					ids[m.MessageID] = true
					require.Len(t, m.MessageID, 32)
					require.Equal(t, p != nil, m.Subject != nil)
					if p != nil {
						require.Equal(t, uint64(7), m.RawAMQPMessage.Properties.CorrelationID)
					}
				}
				require.Len(t, ids, 2, "each its own")
				require.Equal(t, 2, w.history.Count(func(e history.Event) bool { return e.Op == history.Send && len(e.Key) == 32 }))
			})
		})
	}
	t.Run("whose size counts", func(t *testing.T) {
		bubble(t, with(func(q *servicebus.Queue) { q.MaxSize = 100 }), func(t *testing.T, w *env) {
			_, err := w.Send("orders", amqp.Message{BodyKind: amqp.BodyData, Data: [][]byte{make([]byte, 80)}})
			require.ErrorContains(t, err, "QuotaExceeded")
		})
	})
	t.Run("and none where the option says so", func(t *testing.T) {
		bubble(t, servicebus.Options{LeaveMessageIDNull: true}, func(t *testing.T, w *env) {
			_, err := w.Send("orders", amqp.Message{})
			require.NoError(t, err)
			m := take(t, w.receiver(), 1)[0]
			require.Empty(t, m.MessageID)
		})
	})
}

func TestSectionsInAnyOrderAreTakenAndDeliveryAnnotationsComeBack(t *testing.T) {
	// footer {}, data 0x01, delivery annotations {"a": 1}, data 0x02
	odd, err := hex.DecodeString("005378c10100" + "005375a00101" + "005371c10602a301615401" + "005375a00102")
	require.NoError(t, err)
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.send(&amqp.Attach{Name: "out", Handle: 2, Source: &amqp.Source{}, Target: &amqp.Target{Address: "orders"}})
		want[*amqp.Attach](c)
		c.transfer(2, 0, odd)
		require.IsType(t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
		m := take(t, receiverOf(t, w.dial(), nil), 1)[0]
		require.Equal(t, [][]byte{{1}, {2}}, m.RawAMQPMessage.Body.Data)
		require.Equal(t, int32(1), m.RawAMQPMessage.DeliveryAnnotations["a"])
		require.Equal(t, goamqp.UUID(m.LockToken), m.RawAMQPMessage.DeliveryAnnotations["x-opt-lock-token"])
		peeked, err := receiverOf(t, w.dial(), nil).PeekMessages(within(t, time.Minute), 1, nil)
		require.NoError(t, err)
		require.Equal(t, map[any]any{"a": int32(1)}, peeked[0].RawAMQPMessage.DeliveryAnnotations, "and no token on a peek")
	})
}

func TestADeliveryCountOfZeroIsWritten(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		_, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		c.attachReceiver(1)
		s, err := amqp.Split(want[*amqp.Transfer](c).Payload)
		require.NoError(t, err)
		require.Equal(t, byte(5), s.Header[5], "all five fields of the header")
		require.Equal(t, byte(0x43), s.Header[len(s.Header)-1])
	})
}

func TestCreditAboveTheLargestIntIsCredit(t *testing.T) {
	for _, credit := range []uint32{1 << 31, 1<<32 - 1} {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			for range 3 {
				_, err := w.Send("orders", amqp.Message{})
				require.NoError(t, err)
			}
			c.attachReceiver(credit)
			for range 3 {
				want[*amqp.Transfer](c)
			}
		})
	}
}

func TestCreditIsLessWhatIsUnderWay(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.attachReceiver(2)
		for range 3 {
			_, err := w.Send("orders", amqp.Message{})
			require.NoError(t, err)
		}
		want[*amqp.Transfer](c)
		want[*amqp.Transfer](c)
		handle, credit := uint32(1), uint32(1) // given when it had seen none: both deliveries were under way
		c.send(&amqp.Flow{IncomingWindow: 5000, OutgoingWindow: 5000, NextIncomingID: new(uint32), Handle: &handle, DeliveryCount: new(uint32), LinkCredit: &credit})
		synctest.Wait()
		require.Equal(t, 1, w.counts().Active)
	})
}

func TestSASLMechanisms(t *testing.T) {
	key := "\x00" + servicebus.EmulatorKeyName + "\x00" + servicebus.EmulatorKey
	for name, tt := range map[string]struct {
		mechanism amqp.Symbol
		response  string
		code      uint8
		may       bool // attach a link without a token
	}{
		"ANONYMOUS: Go, JavaScript, Java":   {"ANONYMOUS", "", 0, false},
		"MSSBCBS: .NET and Python":          {"MSSBCBS", "", 0, false},
		"PLAIN with a key: Proton and AMQP": {"PLAIN", key, 0, true},
		"PLAIN with a wrong key":            {"PLAIN", key + "x", 0, false},
		"PLAIN without a key":               {"PLAIN", "", 0, false},
		"EXTERNAL":                          {"EXTERNAL", "", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, servicebus.Options{})
				nc, err := w.Dial(context.Background())
				require.NoError(t, err)
				defer func() { _ = nc.Close() }()
				c := &wire{t: t, nc: nc}
				c.write([]byte("AMQP\x03\x01\x00\x00"))
				c.read(8)
				require.Equal(t, []amqp.Symbol{"MSSBCBS", "PLAIN", "ANONYMOUS"}, c.next().(*amqp.SASLMechanisms).Mechanisms)
				c.write(amqp.AppendFrame(nil, amqp.Frame{Type: 1, Body: &amqp.SASLInit{Mechanism: tt.mechanism, InitialResponse: []byte(tt.response)}}))
				require.Equal(t, &amqp.SASLOutcome{Code: tt.code}, c.next())
				if tt.code != 0 {
					return
				}
				c.write([]byte("AMQP\x00\x01\x00\x00"))
				c.read(8)
				c.send(&amqp.Open{ContainerID: "test", MaxFrameSize: 65536, ChannelMax: 100})
				c.next()
				c.send(&amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 100})
				c.next()
				c.send(&amqp.Attach{Name: "in", Handle: 1, Receiver: true, Source: &amqp.Source{Address: "orders"}, Target: &amqp.Target{}})
				require.Equal(t, tt.may, want[*amqp.Attach](c).Source != nil)
				if !tt.may {
					require.Equal(t, amqp.UnauthorizedAccess, want[*amqp.Detach](c).Error.Condition)
				}
			})
		})
	}
}

func TestASASLFrameAfterTheExchangeEndsTheConnection(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.write(amqp.AppendFrame(nil, amqp.Frame{Type: 1, Body: &amqp.SASLInit{Mechanism: "ANONYMOUS"}}))
		require.Equal(t, amqp.NotAllowed, want[*amqp.Close](c).Error.Condition)
		c.send(&amqp.Close{})
	})
}

func TestTLSAndWebSocketsAreRefusedLoudly(t *testing.T) {
	for name, first := range map[string]string{
		"TLS": "\x16\x03\x01\x02\x00\x01\x00\x01", "HTTP, as for AMQP over WebSockets": "GET /$servicebus/websocket HTTP/1.1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, servicebus.Options{})
				nc, err := w.Dial(context.Background())
				require.NoError(t, err)
				go func() { _, _ = nc.Write([]byte(first)) }()
				synctest.Wait()
				require.Equal(t, []string{name + ": a connection string with UseDevelopmentEmulator=true makes the clients of Azure speak plain AMQP"}, w.Refusals())
				_ = nc.Close()
			})
		})
	}
}
