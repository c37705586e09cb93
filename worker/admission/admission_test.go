package admission_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/internal/scenario"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

func newAdmitter(t testing.TB, cfg admission.Config) *admission.Admitter {
	t.Helper()
	a, err := admission.New(cfg)
	require.NoError(t, err)
	return a
}

func admit(t testing.TB, a *admission.Admitter, m *azservicebus.ReceivedMessage) admission.Message {
	t.Helper()
	msg, refusal := a.Admit(m)
	require.Nil(t, refusal)
	return msg
}

func simple(id, text string) *azservicebus.ReceivedMessage {
	return &azservicebus.ReceivedMessage{MessageID: id, Body: []byte(text)}
}

func TestAdmitCarriesWhatTheBrokerSays(t *testing.T) {
	at, sequence := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC), int64(7)
	m := simple("1042", "\ufeff{\"amount\":40.0}")
	m.CorrelationID, m.Subject, m.ContentType, m.SessionID = new("c"), new("s"), new("application/json"), new("g")
	m.EnqueuedTime, m.SequenceNumber, m.DeliveryCount = &at, &sequence, 3
	m.ApplicationProperties = map[string]any{"tenant": "t"}
	msg := admit(t, newAdmitter(t, admission.Config{}), m)
	want, err := fingerprint.Compute([]byte(`{"amount":40}`), fingerprint.Parameters{Version: 1, Algorithm: "sha256", Form: "json"})
	require.NoError(t, err)
	require.Equal(t, identity.Text("1042"), msg.Key)
	require.Equal(t, "1042", msg.DocumentID)
	require.Equal(t, `{"amount":40.0}`, string(msg.Body))
	require.Equal(t, want, msg.Fingerprint)
	require.Equal(t, []any{"1042", "c", "s", "application/json", "g"}, []any{msg.MessageID, msg.CorrelationID, msg.Subject, msg.ContentType, msg.SessionID})
	require.Equal(t, []any{at, int64(7), uint32(3), m.ApplicationProperties}, []any{msg.EnqueuedAt, msg.SequenceNumber, msg.DeliveryCount, msg.ApplicationProperties})

	bare := admit(t, newAdmitter(t, admission.Config{}), simple("1", "{}"))
	require.Equal(t, []any{time.Time{}, int64(0), uint32(0), ""}, []any{bare.EnqueuedAt, bare.SequenceNumber, bare.DeliveryCount, bare.Subject})
}

func TestTheRawMessageFillsWhatTheSDKLeavesOut(t *testing.T) {
	m := &azservicebus.ReceivedMessage{RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{
		Header:                &azservicebus.AMQPAnnotatedMessageHeader{DeliveryCount: 4},
		Properties:            &azservicebus.AMQPAnnotatedMessageProperties{MessageID: uint64(42), CorrelationID: amqp.UUID{1}},
		ApplicationProperties: map[string]any{"tenant": "t"},
		Body:                  azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte("{"), []byte("}")}},
	}}
	msg := admit(t, newAdmitter(t, admission.Config{}), m)
	require.Equal(t, "ulong(42)", msg.MessageID)
	require.Equal(t, "uuid(01000000-0000-0000-0000-000000000000)", msg.CorrelationID)
	require.Equal(t, uint32(5), msg.DeliveryCount)
	require.Equal(t, "t", msg.ApplicationProperties["tenant"])
	require.Equal(t, "{}", string(msg.Body))
}

func TestAConsumerHasKeysOfItsOwn(t *testing.T) {
	m := simple("x1", `{"a":1}`)
	none := admit(t, newAdmitter(t, admission.Config{}), m)
	billing := admit(t, newAdmitter(t, admission.Config{Consumer: "billing"}), m)
	shipping := admit(t, newAdmitter(t, admission.Config{Consumer: "shipping"}), m)
	require.Equal(t, []string{"x1", "~for.billing.x1", "~for.shipping.x1"}, []string{none.DocumentID, billing.DocumentID, shipping.DocumentID})
	require.Equal(t, identity.Key{Consumer: "billing", Kind: identity.String, Value: "x1"}, billing.Key)
}

// TestAChangedConfigurationIsNoConflict stores a message under one configuration and brings it again under every other that
// reads the same key.
func TestAChangedConfigurationIsNoConflict(t *testing.T) {
	configs := map[string]admission.Config{
		"plain":          {Content: admission.JSON},
		"ignoring":       {Content: admission.JSON, Ignore: []string{"/sentAt", "/data/at"}},
		"another ignore": {Content: admission.JSON, Ignore: []string{"/time"}},
		"only":           {Content: admission.JSON, Only: []string{"/data", "/id"}},
		"bytes":          {Content: admission.JSON, Form: "bytes"},
		"data":           {Content: admission.JSON, CloudEventData: true},
		"data and only":  {Content: admission.JSON, CloudEventData: true, Only: []string{"/a"}},
		"unwrapping":     {Content: admission.JSON, UnwrapJSONString: true},
		"all of it":      {Content: admission.JSON, CloudEventData: true, UnwrapJSONString: true, Ignore: []string{"/at"}},
	}
	event := `{"specversion":"1.0","id":"e1","source":"/s","time":"10:00","data":{"a":1,"at":2}}`
	binary := simple("m", `{"a":1,"data":1,"at":2}`)
	binary.ApplicationProperties = map[string]any{"cloudEvents:id": "e1", "cloudEvents:specversion": "1.0"}
	for text, m := range map[string]*azservicebus.ReceivedMessage{
		"an event": simple("m", event), "an event in a string": simple("m", `"`+strings.ReplaceAll(event, `"`, `\"`)+`"`), "an event in properties": binary,
	} {
		for before, first := range configs {
			for after, second := range configs {
				stored, refusal := newAdmitter(t, first).Admit(m)
				if refusal != nil {
					continue // a double-encoded event has no data unless it is unwrapped
				}
				later := newAdmitter(t, second)
				arrived, refusal := later.Admit(m)
				if refusal != nil {
					continue
				}
				again, err := later.Rehash(arrived, stored.Fingerprint.Parameters)
				require.NoError(t, err, "%s: %s, then %s", text, before, after)
				require.Equal(t, stored.Fingerprint, again, "%s: %s, then %s", text, before, after)
				content, err := later.Content(arrived, stored.Fingerprint.Parameters)
				require.NoError(t, err)
				require.Equal(t, string(stored.Body), string(content))
			}
		}
	}
}

func TestRehashSaysWhyItCannot(t *testing.T) {
	a := newAdmitter(t, admission.Config{})
	msg := admit(t, a, simple("1", `{"a":1}`))
	_, err := a.Rehash(msg, fingerprint.Parameters{Version: 9, Algorithm: "sha256", Form: "json"})
	require.ErrorIs(t, err, fingerprint.ErrUnknownParameters)
	parameters, err := fingerprint.NewParameters("json", nil, []string{"/b"})
	require.NoError(t, err)
	_, err = a.Rehash(msg, parameters)
	_, ok := errors.AsType[*fingerprint.Problem](err)
	require.True(t, ok, "%v", err)
	parameters = a.Parameters()
	parameters.Part = fingerprint.PartData
	_, err = a.Rehash(msg, parameters)
	refusal, ok := errors.AsType[*reason.Refusal](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason.MissingSelection, refusal.Reason)

	made := admission.Message{Body: []byte(`{"a":1.0}`)}
	f, err := a.Rehash(made, a.Parameters())
	require.NoError(t, err, "a message that a test made by hand has its body alone")
	require.Equal(t, msg.Fingerprint, f)
}

func TestTheKeyOfAMessageWhoseBodyIsUnreadable(t *testing.T) {
	m := simple("1042", "<order/>")
	key, _, refusal := newAdmitter(t, admission.Config{}).Key(m)
	require.Nil(t, refusal)
	require.Equal(t, identity.Text("1042"), key)
	_, _, refusal = newAdmitter(t, admission.Config{KeySource: admission.FromBody("/id")}).Key(m)
	require.Equal(t, reason.NotJSON, refusal.Reason)
	key, _, refusal = newAdmitter(t, admission.Config{KeySource: admission.FromBody("/id")}).Key(simple("x", `{"id":"7"}`))
	require.Nil(t, refusal)
	require.Equal(t, identity.Text("7"), key)
}

func TestTheDetailSaysWhatAnEventLacks(t *testing.T) {
	a := newAdmitter(t, admission.Config{KeySource: admission.FromCloudEvents()})
	for text, want := range map[string]string{
		`{"id":"1","source":"/s"}`:            `its body has no "specversion"`,
		`{"specversion":"1.0","id":"1"}`:      "CloudEvent's source, and it is missing",
		`{"specversion":"1.0","source":1}`:    "CloudEvent's source, and it is a number and not a string",
		`{"specversion":"1.0","source":"/s"}`: "CloudEvent's id, and it is missing",
	} {
		_, refusal := a.Admit(simple("m", text))
		require.Equal(t, reason.MissingMessageID, refusal.Reason)
		require.Contains(t, refusal.Detail, want)
	}
}

func TestNoMessageAtAll(t *testing.T) {
	for _, source := range []admission.KeySource{
		admission.FromMessageID(), admission.FromProperty("id"), admission.FromBody("/id"), admission.FromCloudEvents(),
	} {
		a := newAdmitter(t, admission.Config{KeySource: source})
		_, refusal := a.Admit(nil)
		require.NotNil(t, refusal)
		_, _, refusal = a.Key(nil)
		require.NotNil(t, refusal)
	}
}

func TestAnIDOfATypeThatAMQPDoesNotAllow(t *testing.T) {
	m := simple("", "{}")
	m.RawAMQPMessage = &azservicebus.AMQPAnnotatedMessage{Properties: &azservicebus.AMQPAnnotatedMessageProperties{MessageID: int32(7)}}
	_, refusal := newAdmitter(t, admission.Config{}).Admit(m)
	require.Equal(t, reason.UnsupportedMessageIDType, refusal.Reason)
	require.Contains(t, refusal.Detail, "int")
}

func TestAdmitLeavesTheMessageAlone(t *testing.T) {
	text := ` {"b":[2,1],"a":"\u0041"} `
	m := simple("1", text)
	m.RawAMQPMessage = &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{m.Body}}}
	msg := admit(t, newAdmitter(t, admission.Config{}), m)
	require.Equal(t, text, string(m.Body))
	require.Equal(t, text, string(msg.Body), "the body is handed over as it was sent")
}

func TestKeySourcesHaveATextualForm(t *testing.T) {
	for text, want := range map[string]admission.KeySource{
		"": admission.FromMessageID(), "message-id": admission.FromMessageID(), "cloudevents": admission.FromCloudEvents(),
		"property:NServiceBus.MessageId": admission.FromProperty("NServiceBus.MessageId"), "property:a:b": admission.FromProperty("a:b"),
		"body:/order/id": admission.FromBody("/order/id"),
	} {
		got, err := admission.ParseKeySource(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := admission.ParseKeySource(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"messageid", "property", "property:", "property: ", "property:a\n", "body:/a\u0000", "body:/a\u200b", "body:", "body:id", "body:/~", "correlation-id", "cloudevents:x"} {
		_, err := admission.ParseKeySource(text)
		require.Error(t, err, text)
	}
}

func TestAllFaultsOfAConfigurationAreReportedAtOnce(t *testing.T) {
	err := admission.Config{
		KeySource: admission.FromBody("id"), Consumer: " x", Content: "xml", MaxDepth: -1, MaxKeyBytes: -1,
		Body: body.Options{MaxBytes: -1, Binary: true}, Form: "text", Ignore: []string{""}, Only: []string{"x"},
	}.Validate()
	for _, field := range []string{"key source", "consumer", "Content", "MaxDepth", "MaxKeyBytes", "MaxBytes", "Binary", "form", "ignore", "only"} {
		require.ErrorContains(t, err, field)
	}
	err = admission.Config{
		Content: admission.Bytes, Form: "json", KeySource: admission.FromBody("/id"), CloudEventData: true, UnwrapJSONString: true, StrictContentType: true,
	}.Validate()
	for _, field := range []string{"Form", "KeySource", "CloudEventData", "UnwrapJSONString", "StrictContentType"} {
		require.ErrorContains(t, err, field)
	}
	for _, consumer := range []string{"\u200b", "\xff", strings.Repeat("x", 65), "billing\n", "a\tb", "a\u2028b", "a\u200bb", "\x7fa"} {
		require.ErrorContains(t, admission.Config{Consumer: consumer}.Validate(), "consumer")
	}
	require.ErrorContains(t, admission.Config{Ignore: []string{"/a"}, Only: []string{"/a/b"}}.Validate(), "never count")
	_, err = admission.New(admission.Config{Content: "xml"})
	require.ErrorContains(t, err, "xml")
	require.ErrorContains(t, admission.Config{Ignore: []string{"/sentAt\r"}}.Validate(), "nobody sees")
	require.ErrorContains(t, admission.Config{Only: []string{"/a\n"}}.Validate(), "nobody sees")
	require.NoError(t, admission.Config{Consumer: "Zoë & 二"}.Validate())
	require.NoError(t, admission.Config{}.Validate())
	require.NoError(t, admission.Config{Content: admission.Bytes, KeySource: admission.FromCloudEvents()}.Validate())
}

func TestOffsetsOfUnwrappedBodiesSayWhatTheyCountIn(t *testing.T) {
	m := simple("1", string(scenario.Gzip(t, []byte(`{"a":NaN}`))))
	m.ApplicationProperties = map[string]any{"Content-Encoding": "gzip"}
	_, refusal := newAdmitter(t, admission.Config{}).Admit(m)
	require.Equal(t, reason.NotJSON, refusal.Reason)
	require.Contains(t, refusal.Detail, "Offsets count in the content")
}

// TestMemoryStaysWithinAMultipleOfTheMessage counts all that is ever allocated for messages of a megabyte made to cost most.
func TestAPropertyInAnotherCaseIsNamed(t *testing.T) {
	a, err := admission.New(admission.Config{KeySource: admission.FromProperty("X-Order")})
	require.NoError(t, err)
	for _, tt := range []struct {
		name       string
		properties map[string]any
		says       string
	}{
		{"another case", map[string]any{"x-order": "1", "X-ORDER": "2"}, `there is no application property of this name. It has "X-ORDER", and names are compared with their case. The sender`},
		{"another case, and null", map[string]any{"x-order": nil}, "there is no application property of this name. The sender"},
		{"none", nil, "there is no application property of this name. The sender"},
	} {
		_, refusal := a.Admit(&azservicebus.ReceivedMessage{ApplicationProperties: tt.properties, Body: []byte(`{}`)})
		require.Equal(t, reason.MissingMessageID, refusal.Reason, tt.name)
		require.Contains(t, refusal.Detail, tt.says, tt.name)
	}
}

func TestABatchOfEventsIsCalledOne(t *testing.T) {
	a, err := admission.New(admission.Config{CloudEventData: true})
	require.NoError(t, err)
	_, refusal := a.Admit(&azservicebus.ReceivedMessage{MessageID: "1", Body: []byte(` [{"specversion":"1.0","id":"e","source":"/s","type":"t","data":{}}]`)})
	require.Equal(t, reason.MissingSelection, refusal.Reason)
	require.Contains(t, refusal.Detail, "each event as a message of its own")
}

func TestWhatIsWrongWithTheDataOfAnEventIsSaidOfTheData(t *testing.T) {
	a, err := admission.New(admission.Config{CloudEventData: true})
	require.NoError(t, err)
	_, refusal := a.Admit(&azservicebus.ReceivedMessage{MessageID: "1", Body: []byte(`{"specversion":"1.0","id":"e","source":"/s","type":"t","data":null}`)})
	require.Equal(t, reason.BodyNotObject, refusal.Reason)
	require.Contains(t, refusal.Detail, "the data of the CloudEvent")
}

func TestMemoryStaysWithinAMultipleOfTheMessage(t *testing.T) {
	const size, multiple = 1 << 20, 16
	a := newAdmitter(t, admission.Config{Ignore: []string{"/at"}})
	for name, text := range map[string]string{
		"numbers":      `{"a":[1` + strings.Repeat(",1", size/2) + `]}`,
		"many members": `{"zz":0` + members(size) + `}`,
		"escapes":      `{"a":"` + strings.Repeat(`\u0001`, size/6) + `"}`,
		"brackets":     strings.Repeat("[", size),
		"deep":         strings.Repeat(`{"n":0,"m":`, 120) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat(`,"a":0}`, 120),
		"long names":   strings.Repeat(`{"`+strings.Repeat("n", size/200)+`":`, 100) + `[1` + strings.Repeat(",1", size/4) + `]` + strings.Repeat("}", 100),
		"two sections": `{"a":"` + strings.Repeat("x", size) + `"}`,
		"gzip":         string(scenario.Gzip(t, bytes.Repeat([]byte("x"), 2*size))),
	} {
		t.Run(name, func(t *testing.T) {
			half := len(text) / 2
			m := &azservicebus.ReceivedMessage{MessageID: "1", RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{
				Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte(text[:half]), []byte(text[half:])}},
			}}
			if name == "gzip" {
				m.ApplicationProperties = map[string]any{"Content-Encoding": "gzip"}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, refusal := a.Admit(m)
			runtime.ReadMemStats(&after)
			require.Equal(t, name == "brackets" || name == "gzip", refusal != nil, "%v", refusal)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(multiple*max(len(text), body.DefaultMaxBytes)))
		})
	}
}

// members lists members whose names fall, so that every one has to be moved.
func members(size int) string {
	var b strings.Builder
	for n := size / 10; n > 0; n-- {
		fmt.Fprintf(&b, `,"%06x":0`, n)
	}
	return b.String()
}
