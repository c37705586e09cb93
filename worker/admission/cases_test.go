package admission_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/body"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/messagejson"
)

// scenario is one line of testdata/cases.jsonl: a configuration, and what becomes of each message in turn.
type scenario struct {
	Name     string     `json:"name"`
	Config   settings   `json:"config"`
	Messages []delivery `json:"messages"`
}

type settings struct {
	Key                string   `json:"key"`
	RefuseTypedIDs     bool     `json:"refuse_typed_ids"`
	RefuseValue        bool     `json:"refuse_value"`
	RefuseDataContract bool     `json:"refuse_data_contract"`
	UnwrapJSONString   bool     `json:"unwrap_json_string"`
	CloudEventData     bool     `json:"cloud_event_data"`
	StrictContentType  bool     `json:"strict_content_type"`
	Content            string   `json:"content"`
	Form               string   `json:"form"`
	Ignore             []string `json:"ignore"`
	Only               []string `json:"only"`
}

// delivery is a message and its outcome: stored, duplicate, conflict, or the reason of its refusal, with a part of the
// detail or of the document id.
type delivery struct {
	Message    json.RawMessage `json:"message"`
	RepeatID   []piece         `json:"repeat_id"`
	RepeatBody []piece         `json:"repeat_body"`
	GzipZeros  int             `json:"gzip_zeros"`
	Want       string          `json:"want"`
	Detail     string          `json:"detail"`
	ID         string          `json:"id"`
}

// piece is a text and how often it stands there.
type piece struct {
	text  string
	times int
}

func (p *piece) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[2]any{&p.text, &p.times})
}

func scenarios(t testing.TB) []scenario {
	t.Helper()
	f, err := os.Open("testdata/cases.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var all []scenario
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s scenario
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&s), "%s", lines.Bytes())
		all = append(all, s)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, all)
	return all
}

func (s settings) config(t testing.TB) admission.Config {
	t.Helper()
	source, err := admission.ParseKeySource(s.Key)
	require.NoError(t, err)
	return admission.Config{
		KeySource: source, RefuseTypedIDs: s.RefuseTypedIDs,
		Content: admission.Content(s.Content), Body: body.Options{RefuseValue: s.RefuseValue, RefuseDataContract: s.RefuseDataContract},
		CloudEventData: s.CloudEventData, UnwrapJSONString: s.UnwrapJSONString, StrictContentType: s.StrictContentType,
		Form: s.Form, Ignore: s.Ignore, Only: s.Only,
	}
}

func (d delivery) received(t testing.TB) *azservicebus.ReceivedMessage {
	t.Helper()
	raw, err := messagejson.Decode(d.Message)
	require.NoError(t, err, "%s", d.Message)
	if d.RepeatID != nil {
		raw.Properties.MessageID = repeated(d.RepeatID)
	}
	if d.RepeatBody != nil {
		raw.Body.Data = [][]byte{[]byte(repeated(d.RepeatBody))}
	}
	if d.GzipZeros > 0 {
		raw.Body.Data = [][]byte{gzipOf(t, make([]byte, d.GzipZeros))}
	}
	return received(raw)
}

func repeated(pieces []piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(strings.Repeat(p.text, p.times))
	}
	return b.String()
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// received makes of a raw message what the SDK's receiver makes of it.
func received(raw *azservicebus.AMQPAnnotatedMessage) *azservicebus.ReceivedMessage {
	m := &azservicebus.ReceivedMessage{RawAMQPMessage: raw, ApplicationProperties: raw.ApplicationProperties}
	if len(raw.Body.Data) == 1 {
		m.Body = raw.Body.Data[0]
	}
	if p := raw.Properties; p != nil {
		m.MessageID, _ = p.MessageID.(string)
		if id, ok := p.CorrelationID.(string); ok {
			m.CorrelationID = &id
		}
		m.ContentType, m.Subject, m.SessionID = p.ContentType, p.Subject, p.GroupID
		if raw.Header != nil {
			m.DeliveryCount = raw.Header.DeliveryCount + 1
		}
	}
	return m
}

// TestEveryMessageIsJudgedRight plays each scenario against the smallest possible store: what was admitted first under an
// id stands there, with its fingerprint.
func TestEveryMessageIsJudgedRight(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			a, err := admission.New(s.Config.config(t))
			require.NoError(t, err)
			stored := map[string]admission.Message{}
			for i, d := range s.Messages {
				m := d.received(t)
				msg, refusal := a.Admit(m)
				got := judge(t, a, stored, msg, refusal)
				require.Equal(t, d.Want, got, "message %d: %v", i+1, refusal)
				if d.ID != "" {
					require.Equal(t, d.ID, msg.DocumentID, "message %d", i+1)
				}
				if refusal != nil {
					require.Contains(t, refusal.Detail, d.Detail, "message %d", i+1)
					requireReadable(t, refusal, m)
				}
			}
		})
	}
}

func judge(t *testing.T, a *admission.Admitter, stored map[string]admission.Message, msg admission.Message, refusal *admission.Refusal) string {
	t.Helper()
	if refusal != nil {
		require.Zero(t, msg, "a refused message is nothing")
		return refusal.Reason
	}
	earlier, exists := stored[msg.DocumentID]
	if !exists {
		stored[msg.DocumentID] = msg
		return "stored"
	}
	require.Equal(t, earlier.Key, msg.Key, "two keys met")
	again, err := a.Rehash(msg, earlier.Fingerprint.Recipe)
	require.NoError(t, err)
	require.Equal(t, msg.Fingerprint, again, "one recipe, one hash")
	differences := fingerprint.Compare(earlier.Body, msg.Body, earlier.Fingerprint.Recipe, 10)
	if again.Equal(earlier.Fingerprint) {
		require.Empty(t, differences)
		return "duplicate"
	}
	require.NotEmpty(t, differences)
	return "conflict"
}

// requireReadable holds a refusal to what a person needs, and to what must not leak.
func requireReadable(t *testing.T, r *admission.Refusal, m *azservicebus.ReceivedMessage) {
	t.Helper()
	require.NotEmpty(t, r.Reason)
	require.Greater(t, len(r.Detail), 40, "a sentence: %q", r.Detail)
	require.Less(t, len(r.Detail), 700, "two sentences: %q", r.Detail)
	require.True(t, strings.HasSuffix(r.Detail, "."), "%q", r.Detail)
	if len(m.Body) > 12 {
		require.NotContains(t, r.Detail, string(m.Body[:12]))
	}
}
