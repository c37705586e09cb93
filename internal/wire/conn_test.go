package wire_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/wire"
)

func short(s string) []byte { return append([]byte{0xA1, byte(len(s))}, s...) }

func entry(name string, value ...byte) wire.Entry { return wire.Entry{Key: short(name), Value: value} }

func properties(entries ...wire.Entry) []byte {
	return wire.AppendMap(nil, wire.ApplicationProperties, entries)
}

// twelveFifty is 12.50.
var twelveFifty = []byte{0x94, 0x30, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x04, 0xe2}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// foreignMessages are messages that the client library cannot decode, with what is said of each.
func foreignMessages(t testing.TB) map[string]struct {
	message []byte
	foreign []string
} {
	body := encode(t, &amqp.Message{Data: [][]byte{[]byte("body")}})
	list := join([]byte{0xC0, 19, 2}, twelveFifty, []byte{0x40})
	array := join([]byte{0xE0, 34, 2, 0x94}, twelveFifty[1:], twelveFifty[1:])
	nested := join([]byte{0xC1, byte(2 + 2 + len(list)), 2, 0xA1, 1, 'x'}, list)[:]
	nested[1] = byte(len(nested) - 2)
	return map[string]struct {
		message []byte
		foreign []string
	}{
		"decimal128":               {join(properties(entry("price", twelveFifty...)), body), []string{`application properties "price" holds a decimal128`}},
		"decimal64":                {join(properties(entry("price", 0x84, 1, 2, 3, 4, 5, 6, 7, 8)), body), []string{`application properties "price" holds a decimal64`}},
		"decimal32":                {join(properties(entry("price", 0x74, 1, 2, 3, 4)), body), []string{`application properties "price" holds a decimal32`}},
		"char":                     {join(properties(entry("letter", 0x73, 0, 0, 0, 65)), body), []string{`application properties "letter" holds a char`}},
		"in a list":                {join(properties(entry("l", list...)), body), []string{`application properties "l" holds a decimal128`}},
		"in a map in a list":       {join(properties(entry("m", nested...)), body), []string{`application properties "m" holds a decimal128`}},
		"in an array":              {join(properties(entry("a", array...)), body), []string{`application properties "a" holds a decimal128`}},
		"in a message annotation":  {join(wire.AppendMap(nil, wire.MessageAnnotations, []wire.Entry{entry("x-opt-a", twelveFifty...)}), body), []string{`message annotations "x-opt-a" holds a decimal128`}},
		"in a delivery annotation": {join(wire.AppendMap(nil, wire.DeliveryAnnotations, []wire.Entry{entry("x-opt-a", twelveFifty...)}), body), []string{`delivery annotations "x-opt-a" holds a decimal128`}},
		"in a footer":              {join(body, wire.AppendMap(nil, wire.Footer, []wire.Entry{entry("f", twelveFifty...)})), []string{`footer "f" holds a decimal128`}},
		"as the message id":        {join([]byte{0, 0x53, 0x73, 0xC0, 18, 1}, twelveFifty, body), []string{`properties "message-id" holds a decimal128`}},
		"as the body":              {join([]byte{0, 0x53, 0x77}, twelveFifty), []string{"value holds a decimal128"}},
		"in a described body":      {join([]byte{0, 0x53, 0x77, 0, 0x80, 0, 0, 1, 0x37, 0, 0, 0, 1}, twelveFifty), []string{"value holds a decimal128"}},
	}
}

func TestValuesWithoutADecoderAreRead(t *testing.T) {
	for name, tt := range foreignMessages(t) {
		t.Run(name, func(t *testing.T) {
			var plain amqp.Message
			require.Error(t, plain.UnmarshalBinary(tt.message), "or none of this is needed any more")
			before := bytes.Clone(tt.message)
			_, foreign, damage := wire.Decode(tt.message)
			require.Equal(t, before, tt.message, "reading changes nothing")
			require.Empty(t, damage)
			require.Equal(t, tt.foreign, foreign[:1])
		})
	}
}

func TestDecimalsAreReadable(t *testing.T) {
	for want, value := range map[string][]byte{
		"decimal128(12.50)":   twelveFifty,
		"decimal128(-0.05)":   {0x94, 0xb0, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5},
		"decimal128(7)":       {0x94, 0x30, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7},
		"decimal128(7e2)":     {0x94, 0x30, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7},
		"decimal64(1)":        {0x84, 0x31, 0xc0, 0, 0, 0, 0, 0, 1},
		"decimal32(1)":        {0x74, 0x32, 0x80, 0, 1},
		"decimal32(78000000)": {0x74, 0x78, 0, 0, 0}, // infinity
		"char(U+0041)":        {0x73, 0, 0, 0, 65},
	} {
		m, _, _ := wire.Decode(properties(entry("v", value...)))
		require.Equal(t, want, m.ApplicationProperties["v"].(wire.Foreign).String())
	}
}

func TestWhatNoDecoderTakesIsNamed(t *testing.T) {
	for name, message := range map[string][]byte{
		"a type that there is not":   properties(entry("d", 0x57, 0), wire.Int("n", 3)),
		"an array of lists":          properties(entry("d", 0xE0, 4, 1, 0xC0, 0, 0)),
		"a subject that is a number": {0, 0x53, 0x73, 0xC0, 6, 4, 0x40, 0x40, 0x40, 0x54, 1},
		"a header that is no list":   {0, 0x53, 0x70, 0x41},
		"a fault at the end":         append(encode(t, rich()), 1, 2),
		"no message":                 {1, 2, 3, 4, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			var m amqp.Message
			require.Error(t, m.UnmarshalBinary(message))
			read, _, damage := wire.Decode(message)
			require.NotEmpty(t, damage)
			if name == "a type that there is not" {
				require.Equal(t, int32(3), read.ApplicationProperties["n"], "the entries beside it stay")
			}
		})
	}
}

// frame encodes a transfer on a channel and a link.
func frame(channel uint16, handle byte, more bool, payload []byte) []byte {
	flag := byte(0x42)
	if more {
		flag = 0x41
	}
	performative := []byte{0, 0x53, 0x14, 0xC0, 9, 6, 0x52, handle, 0x43, 0x40, 0x43, 0x40, flag}
	performative[4] = byte(len(performative) - 5)
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(performative)+len(payload)))
	b = append(b, 2, 0, byte(channel>>8), byte(channel))
	return append(append(b, performative...), payload...)
}

// through sends bytes through a connection, a few at a time, and returns what its reader gets.
func through(t *testing.T, in []byte, chunk int) []byte {
	t.Helper()
	a, b := net.Pipe()
	go func() {
		for rest := in; len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
			_, _ = a.Write(rest[:min(chunk, len(rest))])
		}
		_ = a.Close()
	}()
	out, err := io.ReadAll(wire.NewConn(b))
	require.NoError(t, err)
	return out
}

// parts reads frames as the client library does, and returns for each link what it takes for the message.
func parts(t *testing.T, frames []byte) map[byte][]byte {
	t.Helper()
	const at = 8 + 13 // the size of what comes before the payload
	messages := map[byte][]byte{}
	for len(frames) > 0 {
		size := binary.BigEndian.Uint32(frames)
		messages[frames[8+7]] = append(messages[frames[8+7]], frames[at:size]...)
		frames = frames[size:]
	}
	return messages
}

func TestMessagesArriveAsTheyWereEncoded(t *testing.T) {
	for name, tt := range foreignMessages(t) {
		t.Run(name, func(t *testing.T) {
			whole := encode(t, rich())
			for cut := range len(tt.message) {
				protocol := []byte("AMQP\x00\x01\x00\x00")
				in := join(protocol, frame(1, 2, true, tt.message[:cut]), frame(1, 3, false, whole), frame(1, 2, false, tt.message[cut:]))
				out := through(t, in, 7)
				require.Equal(t, protocol, out[:8])
				for link, want := range map[byte][]byte{2: tt.message, 3: whole} {
					var m amqp.Message
					require.NoError(t, m.UnmarshalBinary(parts(t, out[8:])[link]), "the client library decodes it")
					require.Equal(t, want, wire.Unwrap(m.Data), "cut at %d", cut)
				}
			}
		})
	}
}

// TestTheBoundOfMessagesDoesNotCountWhatIsAdded holds that a message as large as the broker sends is not refused for the head of a section.
func TestTheBoundOfMessagesDoesNotCountWhatIsAdded(t *testing.T) {
	attach := func(role byte, bound ...byte) []byte {
		fields := join([]byte{0xA1, 1, 'l', 0x43, role, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40}, bound)
		performative := join([]byte{0, 0x53, 0x12, 0xC0, byte(len(fields) + 1), 11}, fields)
		return join([]byte{0, 0, 0, byte(8 + len(performative)), 2, 0, 0, 1}, performative)
	}
	for name, tt := range map[string]struct{ in, want []byte }{
		"a sender":           {attach(0x42, 0x80, 0, 0, 0, 0, 0, 4, 0, 0), attach(0x42, 0x80, 0, 0, 0, 0, 0, 0, 0, 0)},
		"a small bound":      {attach(0x42, 0x53, 9), attach(0x42, 0x53, 0)},
		"a sender with none": {attach(0x42, 0x44), attach(0x42, 0x44)},
		"a receiver":         {attach(0x41, 0x80, 0, 0, 0, 0, 0, 4, 0, 0), attach(0x41, 0x80, 0, 0, 0, 0, 0, 4, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, through(t, tt.in, 9)) })
	}
}

func TestWhatIsNoTransferPassesAsItIs(t *testing.T) {
	for name, in := range map[string][]byte{
		"an empty frame":               {0, 0, 0, 8, 2, 0, 0, 0},
		"a frame that is cut":          frame(1, 1, false, []byte("x"))[:12],
		"a header that is cut":         frame(1, 1, false, []byte("x"))[:5],
		"a frame without an end":       {0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 1, 2, 3, 4, 5},
		"a size too small":             {0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"a strange data offset":        {0, 0, 0, 9, 200, 0, 0, 0, 9},
		"a transfer whose list is cut": join([]byte{0, 0, 0, 14, 2, 0, 0, 0}, []byte{0, 0x53, 0x14, 0xC0, 9, 1}),
		"a sasl frame":                 {0, 0, 0, 12, 2, 1, 0, 0, 0, 0x53, 0x40, 0x45},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, in, through(t, in, 5)) })
	}
}

func FuzzConn(f *testing.F) {
	f.Add(join([]byte("AMQP\x00\x01\x00\x00"), frame(1, 2, true, twelveFifty), frame(1, 2, false, twelveFifty)), 3)
	f.Fuzz(func(t *testing.T, in []byte, chunk int) {
		out := through(t, in, max(1, chunk%64))
		require.GreaterOrEqual(t, len(out), len(in))
		require.LessOrEqual(t, len(out), 2*len(in), "a frame has a header as long as what is added")
	})
}
