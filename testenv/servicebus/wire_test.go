package servicebus_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// wire is a client that writes frames by hand, on channel 0.
type wire struct {
	t  *testing.T
	nc net.Conn
}

// connect shakes hands, opens and begins a session.
func (w *env) connect() *wire { return w.connectWith(65536, 5000) }

// connectWith connects a client with a largest frame and an incoming window.
func (w *env) connectWith(frame, window uint32) *wire {
	w.t.Helper()
	nc, err := w.Dial(context.Background())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = nc.Close() })
	c := &wire{t: w.t, nc: nc}
	c.write([]byte("AMQP\x03\x01\x00\x00"))
	require.Equal(w.t, "AMQP\x03\x01\x00\x00", string(c.read(8)))
	require.IsType(w.t, &amqp.SASLMechanisms{}, c.next())
	c.write(amqp.AppendFrame(nil, amqp.Frame{Type: 1, Body: &amqp.SASLInit{Mechanism: "ANONYMOUS"}}))
	require.Equal(w.t, &amqp.SASLOutcome{}, c.next())
	c.write([]byte("AMQP\x00\x01\x00\x00"))
	require.Equal(w.t, "AMQP\x00\x01\x00\x00", string(c.read(8)))
	c.send(&amqp.Open{ContainerID: "test", MaxFrameSize: frame, ChannelMax: 100})
	require.IsType(w.t, &amqp.Open{}, c.next())
	c.send(&amqp.Begin{IncomingWindow: window, OutgoingWindow: 5000, HandleMax: 100})
	require.IsType(w.t, &amqp.Begin{}, c.next())
	return c
}

func (c *wire) write(b []byte) {
	c.t.Helper()
	require.NoError(c.t, c.nc.SetWriteDeadline(time.Now().Add(time.Minute)))
	_, err := c.nc.Write(b)
	require.NoError(c.t, err)
}

func (c *wire) send(b amqp.Body) { c.t.Helper(); c.write(amqp.AppendFrame(nil, amqp.Frame{Body: b})) }

func (c *wire) read(n int) []byte {
	c.t.Helper()
	b := make([]byte, n)
	require.NoError(c.t, c.nc.SetReadDeadline(time.Now().Add(time.Hour)))
	_, err := io.ReadFull(c.nc, b)
	require.NoError(c.t, err)
	return b
}

// next returns the next frame body, passing over empty frames.
func (c *wire) next() amqp.Body {
	c.t.Helper()
	for {
		size := int(binary.BigEndian.Uint32(c.read(4)))
		rest := c.read(size - 4)
		if size == 8 {
			continue
		}
		b, err := amqp.ParseBody(rest[4:])
		require.NoError(c.t, err)
		return b
	}
}

// want reads frames until one is of type T, and returns it.
func want[T amqp.Body](c *wire) T {
	c.t.Helper()
	for {
		b := c.next()
		if t, ok := b.(T); ok {
			return t
		}
		_, isFlow := b.(*amqp.Flow)
		require.True(c.t, isFlow, "unexpected %T: %+v", b, b)
	}
}

// authorize puts a token for the namespace, over links with the handles 10 and 11.
func (c *wire) authorize() {
	c.t.Helper()
	one, zero := uint8(1), uint8(0)
	c.send(&amqp.Attach{Name: "cbs-out", Handle: 10, Source: &amqp.Source{}, Target: &amqp.Target{Address: "$cbs"}})
	want[*amqp.Attach](c)
	c.send(&amqp.Attach{Name: "cbs-in", Handle: 11, Receiver: true, SenderSettleMode: &one, ReceiverSettleMode: &zero, Source: &amqp.Source{Address: "$cbs"}, Target: &amqp.Target{Address: "here"}})
	want[*amqp.Attach](c)
	m, err := amqp.AppendMessage(nil, amqp.Message{
		Properties: &amqp.Properties{MessageID: "1", ReplyTo: "here"}, BodyKind: amqp.BodyValue,
		Value: sign("amqp://embedded.example/", servicebus.EmulatorKeyName, servicebus.EmulatorKey, time.Now().Add(time.Hour)),
		ApplicationProperties: amqp.Map{
			{Key: "operation", Value: "put-token"}, {Key: "type", Value: "servicebus.windows.net:sastoken"}, {Key: "name", Value: "amqp://embedded.example/"},
		},
	})
	require.NoError(c.t, err)
	c.transfer(10, 0, m)
	require.IsType(c.t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
	handle, credit := uint32(11), uint32(1) // the reply has been waiting for this
	c.send(&amqp.Flow{IncomingWindow: 5000, OutgoingWindow: 5000, NextIncomingID: new(uint32), Handle: &handle, DeliveryCount: new(uint32), LinkCredit: &credit})
	reply, err := amqp.DecodeMessage(want[*amqp.Transfer](c).Payload)
	require.NoError(c.t, err)
	status, _ := reply.ApplicationProperties.Get("statusCode")
	require.Equal(c.t, int32(202), status)
}

func (c *wire) transfer(handle, id uint32, payload []byte) {
	c.t.Helper()
	c.send(&amqp.Transfer{Handle: handle, DeliveryID: &id, DeliveryTag: []byte{byte(id)}, MessageFormat: new(uint32), Payload: payload})
}

// attachReceiver attaches handle 1 to the queue in peek-lock mode, with credit.
func (c *wire) attachReceiver(credit uint32) {
	c.t.Helper()
	second, handle := uint8(1), uint32(1)
	c.send(&amqp.Attach{Name: "in", Handle: 1, Receiver: true, ReceiverSettleMode: &second, Source: &amqp.Source{Address: "orders"}, Target: &amqp.Target{}})
	require.NotNil(c.t, want[*amqp.Attach](c).Source)
	c.send(&amqp.Flow{IncomingWindow: 5000, OutgoingWindow: 5000, NextIncomingID: new(uint32), Handle: &handle, DeliveryCount: new(uint32), LinkCredit: &credit})
}

func onTheWire(t *testing.T, f func(t *testing.T, w *env, c *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, servicebus.Options{MaxMessageSize: 10_000, SenderCredit: 2})
		c := w.connect()
		c.authorize()
		f(t, w, c)
	})
}

func TestUnknownDeliveryIsAnsweredAsALostLock(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.attachReceiver(1)
		c.send(&amqp.Disposition{Receiver: true, First: 77, State: &amqp.Accepted{}})
		d := want[*amqp.Disposition](c)
		require.Equal(t, uint32(77), d.First)
		require.Equal(t, "com.microsoft:message-lock-lost", d.State.(*amqp.Rejected).Error.Condition)
	})
}

func TestRangesOfDeliveriesAreSettled(t *testing.T) {
	for name, last := range map[string]uint32{"exactly": 2, "and far more": 4_000_000_000} {
		t.Run(name, func(t *testing.T) {
			onTheWire(t, func(t *testing.T, w *env, c *wire) {
				for range 3 {
					_, err := w.Send("orders", amqp.Message{})
					require.NoError(t, err)
				}
				c.attachReceiver(3)
				first := *want[*amqp.Transfer](c).DeliveryID
				for range 2 {
					want[*amqp.Transfer](c)
				}
				end := first + last
				c.send(&amqp.Disposition{Receiver: true, First: first, Last: &end, State: &amqp.Accepted{}})
				for range 3 {
					require.IsType(t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
				}
				require.Zero(t, w.counts())
			})
		})
	}
}

func TestDispositionsThatSayNothingAreIgnored(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		_, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		c.attachReceiver(1)
		id := *want[*amqp.Transfer](c).DeliveryID
		c.send(&amqp.Disposition{Receiver: true, First: id, State: &amqp.Received{}})
		c.send(&amqp.Disposition{First: id, Settled: true, State: &amqp.Accepted{}})
		synctest.Wait()
		require.Equal(t, 1, w.counts().Locked)
		c.send(&amqp.Disposition{Receiver: true, First: id, Settled: true})
		synctest.Wait()
		require.Zero(t, w.counts().Locked, "settling without an outcome releases")
	})
}

func TestTransactionsAreRefusedLoudly(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		_, err := w.Send("orders", amqp.Message{})
		require.NoError(t, err)
		c.attachReceiver(1)
		id := *want[*amqp.Transfer](c).DeliveryID
		c.send(&amqp.Disposition{Receiver: true, First: id, State: &amqp.Transactional{}})
		require.Equal(t, amqp.NotImplemented, want[*amqp.Disposition](c).State.(*amqp.Rejected).Error.Condition)
		require.Len(t, w.Refusals(), 1)
	})
}

func TestSendersOnTheWire(t *testing.T) {
	body, err := amqp.AppendMessage(nil, amqp.Message{BodyKind: amqp.BodyData, Data: [][]byte{make([]byte, 6000)}})
	require.NoError(t, err)
	attach := func(c *wire) {
		c.send(&amqp.Attach{Name: "out", Handle: 2, Source: &amqp.Source{}, Target: &amqp.Target{Address: "orders"}})
		require.Equal(c.t, uint64(10_000), want[*amqp.Attach](c).MaxMessageSize)
	}
	t.Run("a message in parts is put together", func(t *testing.T) {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			attach(c)
			id := uint32(1)
			c.send(&amqp.Transfer{Handle: 2, DeliveryID: &id, DeliveryTag: []byte{1}, More: true, Payload: body[:100]})
			c.send(&amqp.Transfer{Handle: 2, More: true, Payload: body[100:200]})
			c.send(&amqp.Transfer{Handle: 2, Payload: body[200:]})
			require.IsType(t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
			require.Equal(t, 1, w.counts().Active)
		})
	})
	t.Run("an aborted message is forgotten", func(t *testing.T) {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			attach(c)
			id := uint32(1)
			c.send(&amqp.Transfer{Handle: 2, DeliveryID: &id, DeliveryTag: []byte{1}, More: true, Payload: body[:100]})
			c.send(&amqp.Transfer{Handle: 2, Aborted: true})
			c.transfer(2, 2, body)
			require.Equal(t, uint32(2), want[*amqp.Disposition](c).First)
			require.Equal(t, 1, w.counts().Active)
		})
	})
	t.Run("a message that cannot be decoded is rejected", func(t *testing.T) {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			attach(c)
			c.transfer(2, 1, []byte("nonsense"))
			require.Equal(t, amqp.DecodeError, want[*amqp.Disposition](c).State.(*amqp.Rejected).Error.Condition)
			require.Zero(t, w.counts())
		})
	})
	t.Run("an unknown format is rejected", func(t *testing.T) {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			attach(c)
			id, format := uint32(1), uint32(9)
			c.send(&amqp.Transfer{Handle: 2, DeliveryID: &id, DeliveryTag: []byte{1}, MessageFormat: &format, Payload: body})
			require.Equal(t, amqp.NotImplemented, want[*amqp.Disposition](c).State.(*amqp.Rejected).Error.Condition)
		})
	})
	t.Run("a message that is too large is rejected and the link goes on", func(t *testing.T) {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			attach(c)
			id := uint32(1)
			c.send(&amqp.Transfer{Handle: 2, DeliveryID: &id, DeliveryTag: []byte{1}, More: true, Payload: body})
			c.send(&amqp.Transfer{Handle: 2, Payload: body})
			require.Equal(t, amqp.MessageSizeExceeded, want[*amqp.Disposition](c).State.(*amqp.Rejected).Error.Condition)
			c.transfer(2, 2, body)
			require.IsType(t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
			require.Equal(t, 1, w.counts().Active)
		})
	})
	t.Run("a message without a delivery id detaches the link", func(t *testing.T) {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			attach(c)
			c.send(&amqp.Transfer{Handle: 2, Payload: body})
			require.Equal(t, amqp.InvalidField, want[*amqp.Detach](c).Error.Condition)
		})
	})
	t.Run("a message without credit detaches the link", func(t *testing.T) {
		onTheWire(t, func(t *testing.T, w *env, c *wire) {
			attach(c)
			require.NoError(t, w.GrantCredit("orders", 0))
			c.transfer(2, 1, body)
			require.Equal(t, amqp.TransferLimitExceeded, want[*amqp.Detach](c).Error.Condition)
			require.Zero(t, w.counts())
		})
	})
}

func TestBreachesOfTheProtocolEndWhatTheyBreach(t *testing.T) {
	id := uint32(1)
	handle := uint32(9)
	for name, tt := range map[string]struct {
		breach func(c *wire)
		ends   bool // the session; otherwise the connection
		want   string
	}{
		"transfer on an unknown handle": {func(c *wire) { c.transfer(9, 1, nil) }, true, amqp.UnattachedHandle},
		"flow on an unknown handle":     {func(c *wire) { c.send(&amqp.Flow{Handle: &handle}) }, true, amqp.UnattachedHandle},
		"detach of an unknown handle":   {func(c *wire) { c.send(&amqp.Detach{Handle: 9}) }, true, amqp.UnattachedHandle},
		"handle in use": {func(c *wire) {
			c.send(&amqp.Attach{Name: "again", Handle: 10, Source: &amqp.Source{}, Target: &amqp.Target{Address: "$cbs"}})
		}, true, amqp.HandleInUse},
		"transfer by a receiver":        {func(c *wire) { c.transfer(11, 1, nil) }, true, amqp.NotAllowed},
		"second open":                   {func(c *wire) { c.send(&amqp.Open{ContainerID: "x"}) }, false, amqp.NotAllowed},
		"channel in use":                {func(c *wire) { c.send(&amqp.Begin{}) }, false, amqp.NotAllowed},
		"channel too high":              {func(c *wire) { c.write(amqp.AppendFrame(nil, amqp.Frame{Channel: 60000, Body: &amqp.Begin{}})) }, false, amqp.NotAllowed},
		"frame on an unknown channel":   {func(c *wire) { c.write(amqp.AppendFrame(nil, amqp.Frame{Channel: 3, Body: &amqp.Detach{}})) }, false, amqp.FramingError},
		"end of an unknown channel":     {func(c *wire) { c.write(amqp.AppendFrame(nil, amqp.Frame{Channel: 3, Body: &amqp.End{}})) }, false, amqp.FramingError},
		"garbage":                       {func(c *wire) { c.write([]byte{0, 0, 0, 9, 2, 0, 0, 0, 0xff}) }, false, amqp.FramingError},
		"frame larger than agreed":      {func(c *wire) { c.write([]byte{0xff, 0, 0, 0, 2, 0, 0, 0}) }, false, amqp.FramingError},
		"frame shorter than its header": {func(c *wire) { c.write([]byte{0, 0, 0, 4, 2, 0, 0, 0}) }, false, amqp.FramingError},
		"frame of an unknown type":      {func(c *wire) { c.write([]byte{0, 0, 0, 8, 2, 7, 0, 0}) }, false, amqp.FramingError},
		"a body of the SASL exchange":   {func(c *wire) { c.send(&amqp.SASLOutcome{}) }, false, amqp.NotImplemented},
	} {
		t.Run(name, func(t *testing.T) {
			onTheWire(t, func(t *testing.T, w *env, c *wire) {
				tt.breach(c)
				if tt.ends {
					require.Equal(t, tt.want, want[*amqp.End](c).Error.Condition)
					c.transfer(10, id, nil) // crosses the end and is passed over
					c.send(&amqp.End{})
					c.send(&amqp.Begin{IncomingWindow: 10})
					want[*amqp.Begin](c)
					c.send(&amqp.Close{})
					require.Nil(t, want[*amqp.Close](c).Error)
				} else {
					require.Equal(t, tt.want, want[*amqp.Close](c).Error.Condition)
					c.send(&amqp.Close{})
				}
				synctest.Wait()
				require.Zero(t, w.Connections())
			})
		})
	}
}

func TestRequestWithoutPropertiesDetachesItsLink(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.transfer(10, 5, nil)
		require.IsType(t, &amqp.Accepted{}, want[*amqp.Disposition](c).State)
		require.Equal(t, amqp.DecodeError, want[*amqp.Detach](c).Error.Condition)
	})
}

func TestFlowIsEchoed(t *testing.T) {
	onTheWire(t, func(t *testing.T, w *env, c *wire) {
		c.send(&amqp.Flow{IncomingWindow: 5000, OutgoingWindow: 5000, NextIncomingID: new(uint32), Echo: true})
		f := sessionFlow(c)
		require.Nil(t, f.Handle)
		require.Equal(t, uint32(1), *f.NextIncomingID)
	})
}

// sessionFlow reads the next flow without a handle.
func sessionFlow(c *wire) *amqp.Flow {
	for {
		if f := want[*amqp.Flow](c); f.Handle == nil {
			return f
		}
	}
}

func TestWrongHandshakesAreCutOff(t *testing.T) {
	for name, bytes := range map[string]string{
		"HTTP": "GET / HTTP/1.1\r\n\r\n", "AMQP 0.9": "AMQP\x00\x00\x09\x01", "no SASL": "AMQP\x00\x01\x00\x00", "TLS": "AMQP\x02\x01\x00\x00", "nothing": "",
		"SASL, then silence of the wrong kind": "AMQP\x03\x01\x00\x00" + "\x00\x00\x00\x08\x02\x01\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, servicebus.Options{})
				nc, err := w.Dial(context.Background())
				require.NoError(t, err)
				go func() { _, _ = nc.Write([]byte(bytes)); _, _ = io.Copy(io.Discard, nc) }()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				require.Zero(t, w.Connections())
				_ = nc.Close()
			})
		})
	}
}

func TestFramesWaitForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, servicebus.Options{})
		for range 2 {
			_, err := w.Send("orders", amqp.Message{BodyKind: amqp.BodyData, Data: [][]byte{make([]byte, 1500)}})
			require.NoError(t, err)
		}
		c := w.connectWith(512, 5000)
		c.authorize() // one frame has been received since
		c.attachReceiver(10)
		parts := func(n int) (all []*amqp.Transfer) {
			for range n {
				all = append(all, want[*amqp.Transfer](c))
			}
			return all
		}
		first := parts(10)
		require.False(t, first[4].More)
		require.NotNil(t, first[5].DeliveryID)
		require.False(t, first[9].More)
		window := func(received, n uint32) {
			c.send(&amqp.Flow{NextIncomingID: &received, IncomingWindow: n, OutgoingWindow: 5000})
			synctest.Wait()
		}
		window(11, 2)
		for range 2 {
			_, err := w.Send("orders", amqp.Message{BodyKind: amqp.BodyData, Data: [][]byte{make([]byte, 1500)}})
			require.NoError(t, err)
		}
		second := parts(2)
		require.NotNil(t, second[0].DeliveryID)
		require.True(t, second[1].More)
		synctest.Wait()
		require.Equal(t, servicebus.Counts{Active: 1, Locked: 3, Bytes: w.counts().Bytes}, w.counts(), "the next message must not be locked only to wait")
		window(13, 1)
		require.True(t, parts(1)[0].More)
		window(14, 100)
		last := parts(7)
		require.False(t, last[1].More)
		require.NotNil(t, last[2].DeliveryID)
		require.False(t, last[6].More)

		window(21, 1)
		_, err := w.Send("orders", amqp.Message{BodyKind: amqp.BodyData, Data: [][]byte{make([]byte, 1500)}})
		require.NoError(t, err)
		parts(1)
		c.send(&amqp.Detach{Handle: 1, Closed: true})
		want[*amqp.Detach](c)
		window(22, 100)
		c.send(&amqp.Close{})
		want[*amqp.Close](c) // and no frame of a link that is gone
	})
}
