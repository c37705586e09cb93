// Package scenario reads streams of messages with what must become of each, for the tests of admission and of the whole
// path from queue to document. It is never part of a program.
package scenario

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

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/internal/messagejson"
	"github.com/orderworker/orderworker/worker/admission"
)

// A Scenario is one line of a file: a configuration, and what becomes of each message in turn.
type Scenario struct {
	Name     string     `json:"name"`
	Settings Settings   `json:"config"`
	Messages []Delivery `json:"messages"`
}

// Settings are those of admission that a scenario may change.
type Settings struct {
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

// The outcomes of a delivery that is not refused. A refused one has the word of its reason.
const (
	Stored    = "stored"
	Duplicate = "duplicate"
	Conflict  = "conflict"
)

// A Delivery is a message and its outcome, with a part of the detail of its refusal or its document id.
type Delivery struct {
	// Message is a message line.
	Message json.RawMessage `json:"message"`
	// RepeatID, RepeatBody and GzipZeros make an id or a body that is too long to write down.
	RepeatID   []Piece `json:"repeat_id"`
	RepeatBody []Piece `json:"repeat_body"`
	GzipZeros  int     `json:"gzip_zeros"`
	Want       string  `json:"want"`
	Detail     string  `json:"detail"`
	ID         string  `json:"id"`
}

// A Piece is a text and how often it is repeated.
type Piece struct {
	text  string
	times int
}

// UnmarshalJSON reads ["text", times].
func (p *Piece) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[2]any{&p.text, &p.times})
}

// Read returns the scenarios of a file of JSON lines.
func Read(t testing.TB, file string) []Scenario {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var all []Scenario
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s Scenario
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&s), "%s", lines.Bytes())
		all = append(all, s)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, all)
	return all
}

// Config is the configuration of admission that the settings stand for.
func (s Settings) Config(t testing.TB) admission.Config {
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

// Raw returns the message as it is sent.
func (d Delivery) Raw(t testing.TB) *azservicebus.AMQPAnnotatedMessage {
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
		raw.Body.Data = [][]byte{Gzip(t, make([]byte, d.GzipZeros))}
	}
	return raw
}

func repeated(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(strings.Repeat(p.text, p.times))
	}
	return b.String()
}

// Gzip returns data compressed.
func Gzip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}
