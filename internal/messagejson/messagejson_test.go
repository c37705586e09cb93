package messagejson_test

import (
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/messagejson"
)

func TestPeopleWriteShortForms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, line string
		check      func(t *testing.T, m *azservicebus.AMQPAnnotatedMessage)
	}{
		{"text is one data section", `{"message_id":"a","body":"{\"x\":1}"}`, func(t *testing.T, m *azservicebus.AMQPAnnotatedMessage) {
			require.Equal(t, [][]byte{[]byte(`{"x":1}`)}, m.Body.Data)
			require.Equal(t, "a", m.Properties.MessageID)
		}},
		{"an object keeps the bytes of the line", `{"body":{"b": 1.0, "a":2}}`, func(t *testing.T, m *azservicebus.AMQPAnnotatedMessage) {
			require.Equal(t, `{"b": 1.0, "a":2}`, string(m.Body.Data[0]))
			require.Nil(t, m.Properties.MessageID)
		}},
		{"a typed id", `{"message_id_amqp":{"ulong":42}}`, func(t *testing.T, m *azservicebus.AMQPAnnotatedMessage) {
			require.Equal(t, uint64(42), m.Properties.MessageID)
		}},
		{"a binary id", `{"message_id_amqp":{"binary_hex":"00ff10"}}`, func(t *testing.T, m *azservicebus.AMQPAnnotatedMessage) {
			require.Equal(t, []byte{0, 255, 16}, m.Properties.MessageID)
		}},
		{"sections, a lifetime and typed properties", `{"data_sections":["ab","cd"],"ttl":"PT2M","application_properties":{"a":1,"b":{"int":1},"c":null,"d":{"null":null}}}`, func(t *testing.T, m *azservicebus.AMQPAnnotatedMessage) {
			require.Equal(t, [][]byte{[]byte("ab"), []byte("cd")}, m.Body.Data)
			require.Equal(t, 2*time.Minute, m.Header.TTL)
			require.Equal(t, map[string]any{"a": int64(1), "b": int32(1), "c": nil, "d": nil}, m.ApplicationProperties)
		}},
		{"a sequence", `{"amqp_sequence":[["orderId",1,40.0,null,true]]}`, func(t *testing.T, m *azservicebus.AMQPAnnotatedMessage) {
			require.Equal(t, [][]any{{"orderId", int64(1), 40.0, nil, true}}, m.Body.Sequence)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := messagejson.Decode([]byte(tt.line))
			require.NoError(t, err)
			tt.check(t, m)
		})
	}
}

func TestAWrongLineIsRefusedByName(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"mesage_id":"a"}`:                                "mesage_id",
		`{"body":"a","body_b64":"YQ=="}`:                   "give one of",
		`{"message_id":"a","message_id_amqp":{"ulong":1}}`: "not both",
		`{"application_properties":{"p":{"int":"x"}}}`:     `"p"`,
		`{"ttl":"P1M"}`:                                    "not a duration",
		`{"ttl":"P10675199DT2H48M5S"}`:                     "longer than 292 years",
		`{} {}`:                                            "something follows",
		`[1]`:                                              "not a message line",
		`{"message_id_amqp":{"map":[[[1],2]]}}`:            "key",
	} {
		_, err := messagejson.Decode([]byte(line))
		require.ErrorContains(t, err, want, line)
	}
}

func TestEveryMemberIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, name := range messagejson.Members() {
		require.Regexp(t, `(?m)^//\t`+name+` +\S`, string(text))
	}
	require.Len(t, regexp.MustCompile(`(?m)^//\t[a-z]`).FindAll(text, -1), len(messagejson.Members()), "and nothing else is")
}

func TestAFaultIsSaidInTheWordsOfALine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, line, want string }{
		{"a number for an id", `{"message_id":17}`, `message_id: must be a string, and is a number; for an id that is no text use message_id_amqp, such as {"ulong":42}`},
		{"text for a priority", `{"priority":"high"}`, `priority: must be a whole number from 0 to 255, and is a string`},
		{"a priority that is too high", `{"priority":256}`, `priority: must be a whole number from 0 to 255, and is a number`},
		{"text for a flag", `{"durable":"yes"}`, `durable: must be true or false, and is a string`},
		{"an array for properties", `{"application_properties":[1]}`, `application_properties: must be an object, and is an array`},
		{"another case", `{"Message_ID":"1"}`, `there is no member "Message_ID". The members are ` + strings.Join(messagejson.Members(), ", ")},
		{"a line cut short", `{"message_id":"1"`, `not a message line: it ends too early. A message stands on one line`},
		{"no JSON", `{message_id:1}`, `not a message line: it is no JSON from byte 2 on. A message is one object on one line`},
		{"text", `"hello"`, `not a message line: a line is one object, and this is a string`},
		{"null", `null`, `not a message line: a line is one object, and this is null`},
		{"no base64", `{"body_b64":"%"}`, `body_b64: "%" is not base64`},
		{"no hexadecimal", `{"message_id_amqp":{"binary_hex":"xy"}}`, `message_id_amqp: "xy" is not hexadecimal, two digits for each byte`},
		{"no time", `{"creation_time":"today"}`, `creation_time: "today" is not a time such as 2026-11-30T08:15:00Z`},
		{"no time for the queue", `{"scheduled_enqueue_time":"tomorrow"}`, `scheduled_enqueue_time: "tomorrow" is not a time such as 2026-11-30T08:15:00Z`},
		{"no duration", `{"ttl":"soon"}`, `ttl: "soon" is not a duration such as 90s, PT1M30S or P1D`},
		{"no map", `{"footer":1}`, `footer: want a map such as {"map":[[{"symbol":"x"},1]]}`},
		{"an int that is too large", `{"application_properties":{"p":{"int":2147483648}}}`, `application_properties: "p": int: "2147483648" is not a whole number from -2147483648 to 2147483647`},
		{"a negative ulong", `{"message_id_amqp":{"ulong":-1}}`, `message_id_amqp: ulong: "-1" is not a whole number from 0 to 18446744073709551615`},
		{"a member twice", `{"message_id":"1","body":"x","message_id":"2"}`, `message_id is given twice`},
		{"a property twice", `{"application_properties":{"a":1,"\u0061":2}}`, `application_properties: an object has one name twice`},
		{"half a surrogate pair", `{"message_id":"\ud800"}`, `message_id: a text has bytes or half a surrogate pair that UTF-8 cannot hold; give it in a form in base64`},
		{"half a surrogate pair in a text for a body", `{"body":"\ud800"}`, `body: a text has bytes or half a surrogate pair that UTF-8 cannot hold; give it in a form in base64`},
		{"bytes that are no text", "{\"subject\":\"\xff\"}", `subject: a text has bytes or half a surrogate pair that UTF-8 cannot hold; give it in a form in base64`},
		{"a double that is too large", `{"application_properties":{"p":1e999}}`, `application_properties: "p": 1e999 is a number that no double can hold`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := messagejson.Decode([]byte(tt.line))
			require.EqualError(t, err, tt.want)
		})
	}
}

func TestABodyOfJSONIsTakenByItsBytesWhateverTheyAre(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", ` { "a" : 1e400 } `} {
		m, err := messagejson.Decode([]byte(`{"message_id":"1","body":` + body + `}`))
		require.NoError(t, err, body)
		require.Equal(t, strings.TrimSpace(body), string(m.Body.Data[0]))
	}
}

func TestEveryTypeSurvivesTheWayThereAndBack(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	at := time.Date(2026, 11, 30, 1, 2, 3, 4_000_000, time.UTC)
	m := &azservicebus.AMQPAnnotatedMessage{
		Header: &azservicebus.AMQPAnnotatedMessageHeader{Durable: true, Priority: 7, TTL: 90 * time.Second},
		Properties: &azservicebus.AMQPAnnotatedMessageProperties{
			MessageID: amqp.UUID{1, 2, 3}, CorrelationID: uint64(7), Subject: text(""), ContentType: text("application/json"),
			GroupID: text("s1"), ReplyTo: text("r"), To: text("<t>"), UserID: []byte{0, 1}, CreationTime: &at,
		},
		ApplicationProperties: map[string]any{
			"int8": int8(-1), "int16": int16(2), "int32": int32(3), "int64": int64(math.MinInt64), "uint8": uint8(1), "uint16": uint16(2),
			"uint32": uint32(3), "uint64": uint64(math.MaxUint64), "float32": float32(1.5), "whole": float64(2), "inf": math.Inf(1),
			"bool": true, "null": nil, "text": "a\u0000\u2028<&>", "bad": "a\xff", "uuid": amqp.UUID{9}, "time": at, "bin": []byte{1}, "sym": amqp.Symbol("s"),
		},
		MessageAnnotations: map[any]any{amqp.Symbol("x-opt-y"): int32(5)},
		Body:               azservicebus.AMQPAnnotatedMessageBody{Value: map[any]any{"a": []any{int32(1), nil}, int64(2): "b"}},
	}
	line, err := messagejson.Encode(m)
	require.NoError(t, err)
	got, err := messagejson.Decode(line)
	require.NoError(t, err, string(line))
	require.Equal(t, m, got)
	again, err := messagejson.Encode(got)
	require.NoError(t, err)
	require.Equal(t, string(line), string(again))
}

func FuzzDecodeNeverPanicsAndEncodesStably(f *testing.F) {
	f.Add([]byte(`{"message_id":"a","body":{"a":1},"application_properties":{"a":{"uuid":"3f2504e0-4f89-41d3-9a0c-0305e82c3301"}}}`))
	f.Add([]byte(`{"amqp_value":{"map":[["k",{"float":"NaN"}]]},"ttl":"P1DT2H"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := messagejson.Decode(line)
		if err != nil {
			return
		}
		once, err := messagejson.Encode(m)
		if err != nil {
			return
		}
		back, err := messagejson.Decode(once)
		require.NoError(t, err, string(once))
		twice, err := messagejson.Encode(back)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}
