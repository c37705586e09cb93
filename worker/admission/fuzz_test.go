package admission_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// FuzzAdmit sends messages of every shape to every kind of configuration. Nothing may panic, a refusal has a known reason
// and a short detail, and what is admitted keeps every promise that stores and handlers rely on.
func FuzzAdmit(f *testing.F) {
	for _, s := range scenarios(f) {
		for _, d := range s.Messages {
			m := received(d.Raw(f))
			if content := m.Body; len(content) < 1<<12 {
				f.Add(m.MessageID, content, uint8(0), contentType(m), "Content-Encoding", "gzip", uint16(0))
				f.Add(m.MessageID, content, uint8(1), contentType(m), "cloudEvents:id", "e1", uint16(0xFFFF))
			}
		}
	}
	f.Add("", []byte(`{"id":1}`), uint8(5), "application/json", "ce-source", "/s", uint16(3))
	f.Fuzz(func(t *testing.T, id string, content []byte, shape uint8, contentType, name, property string, switches uint16) {
		cfg := fuzzConfig(switches)
		a, err := admission.New(cfg)
		if err != nil {
			return // a combination that a configuration may not have
		}
		m := fuzzMessage(id, content, shape, contentType, name, property)
		msg, refusal := a.Admit(m)
		if refusal != nil {
			require.Contains(t, admissionReasons, refusal.Reason)
			require.Less(t, len(refusal.Detail), 1000)
			require.True(t, utf8.ValidString(refusal.Detail), "%q", refusal.Detail)
			return
		}
		require.NotEmpty(t, msg.Body)
		require.NotEmpty(t, msg.Key.Value)
		require.Equal(t, msg.Key.DocumentID(), msg.DocumentID)
		require.LessOrEqual(t, len(msg.DocumentID), identity.MaxDocumentID)
		require.Len(t, msg.Fingerprint.Hash, 64)
		if cfg.Content != admission.Bytes {
			require.True(t, json.Valid(msg.Body), "%q", msg.Body)
		}
		if cfg.Content == "" {
			require.NoError(t, json.Unmarshal(msg.Body, new(map[string]json.RawMessage)))
		}
		again, err := a.Rehash(msg, msg.Fingerprint.Parameters)
		require.NoError(t, err)
		require.Equal(t, msg.Fingerprint, again)
		key, _, refusal := a.Key(m)
		require.Nil(t, refusal)
		require.Equal(t, msg.Key, key)
	})
}

// admissionReasons are the words that admission may give.
var admissionReasons = []string{
	reason.MissingMessageID, reason.UnsupportedMessageIDType, reason.KeyTooLong, reason.InvalidKey, reason.EmptyBody, reason.UnsupportedBody,
	reason.DataContractBody, reason.UnsupportedEncoding, reason.InvalidCompression, reason.InvalidUTF8, reason.NotJSON, reason.DuplicateName,
	reason.BodyNotObject, reason.TooDeep, reason.TooLarge, reason.NumberOutOfRange, reason.MissingSelection, reason.InvalidEnvelope,
	reason.UnsupportedContentType,
}

func contentType(m *azservicebus.ReceivedMessage) string {
	if m.ContentType == nil {
		return ""
	}
	return *m.ContentType
}

func fuzzConfig(switches uint16) admission.Config {
	on := func(bit int) bool { return switches>>bit&1 == 1 }
	cfg := admission.Config{
		RefuseTypedIDs: on(0), CloudEventData: on(1), UnwrapJSONString: on(2), StrictContentType: on(3),
		KeySource: []admission.KeySource{
			admission.FromMessageID(), admission.FromProperty("id"), admission.FromBody("/id"), admission.FromCloudEvents(),
		}[switches>>4&3],
		Content: []admission.Content{"", admission.JSON, admission.Bytes, ""}[switches>>6&3],
	}
	if on(8) {
		cfg.Ignore = []string{"/sentAt", "/data/0"}
	}
	if on(9) {
		cfg.Only = []string{"/data", "/id"}
	}
	if on(10) {
		cfg.Form = "bytes"
	}
	if on(11) {
		cfg.Consumer = "c"
	}
	return cfg
}

func fuzzMessage(id string, content []byte, shape uint8, contentType, name, property string) *azservicebus.ReceivedMessage {
	m := &azservicebus.ReceivedMessage{MessageID: id, Body: content, ContentType: &contentType}
	m.ApplicationProperties = map[string]any{name: property}
	raw := &azservicebus.AMQPAnnotatedMessage{Properties: &azservicebus.AMQPAnnotatedMessageProperties{MessageID: id}}
	half := len(content) / 2
	switch shape % 12 {
	case 0:
		return m
	case 1:
		raw.Body.Data = [][]byte{content}
	case 2:
		raw.Body.Data = [][]byte{content[:half], nil, content[half:]}
	case 3:
		raw.Body.Value = string(content)
	case 4:
		raw.Body.Value = content
	case 5:
		raw.Body.Data, raw.Properties.MessageID = [][]byte{content}, uint64(half)
	case 6:
		raw.Body.Data, raw.Properties.MessageID = [][]byte{content}, content
	case 7:
		raw.Body.Data, raw.Properties.MessageID = [][]byte{content}, amqp.UUID{byte(half)}
	case 8:
		raw.Body.Sequence = [][]any{{string(content)}}
	case 9:
		raw.Body.Value = map[string]any{id: content}
	case 10:
		raw.Body.Data, raw.Properties.ContentEncoding = [][]byte{content}, &property
		m.ApplicationProperties = map[string]any{name: content, "x": nil}
	case 11:
		raw.Properties = nil
	}
	m.RawAMQPMessage = raw
	return m
}
