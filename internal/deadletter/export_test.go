package deadletter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

// odd has values that a decoding client loses the type of, or cannot decode.
func odd(t *testing.T, section []byte) []byte {
	head := encode(t, &amqp.Message{Properties: &amqp.MessageProperties{MessageID: "m1"}})
	return append(head, section...)
}

func TestAnExportComesBackAsItWas(t *testing.T) {
	withoutCount := full()
	withoutCount.Header.DeliveryCount, withoutCount.DeliveryAnnotations = 0, nil
	symbol := odd(t, append(encode(t, &amqp.Message{ApplicationProperties: map[string]any{"s": amqp.Symbol("abc"), "t": "abc"}}), 0, 0x53, 0x77, 0xA3, 1, 'v'))
	decimal := append([]byte{0, 0x53, 0x74, 0xC1, 21, 2, 0xA1, 1, 'd', 0x94}, make([]byte, 16)...)
	for name, tt := range map[string]struct {
		encoded  []byte
		readable bool
	}{
		"every field":           {encode(t, withoutCount), true},
		"a typed id":            {encode(t, &amqp.Message{Properties: &amqp.MessageProperties{MessageID: amqp.UUID{1}}, Value: []byte{1, 2}}), true},
		"a list":                {odd(t, encode(t, &amqp.Message{Sequence: [][]any{{int32(1), "b"}}})), true},
		"no body":               {odd(t, nil), true},
		"symbols":               {symbol, true},
		"a null body":           {odd(t, []byte{0, 0x53, 0x77, 0x40}), false},
		"an array":              {odd(t, encode(t, &amqp.Message{Value: []int64{1, 2}})), false},
		"a decimal":             {odd(t, decimal), false},
		"control characters":    {odd(t, encode(t, &amqp.Message{ApplicationProperties: map[string]any{"a": "\x1b[31m\u202e\u009b\x7f\U000e0041"}, Data: [][]byte{{0xff, 0}}})), true},
		"what is no UTF-8 text": {encode(t, &amqp.Message{Properties: &amqp.MessageProperties{MessageID: "a"}, Data: [][]byte{{0xff}, {0xfe}}}), true},
	} {
		t.Run(name, func(t *testing.T) {
			l := deadletter.Parse(tt.encoded)
			line, err := deadletter.ExportLine(l)
			require.NoError(t, err)
			require.NotContains(t, string(line), "\n")
			require.NotRegexp(t, `[[:cntrl:]]|\p{Cf}`, string(line))
			require.Equal(t, tt.readable, !strings.Contains(string(line), "encoded_b64"), string(line))
			back, err := deadletter.ImportLine(line)
			require.NoError(t, err)
			want, err := deadletter.Copy(l, deadletter.Choice{}, noon, true)
			require.NoError(t, err)
			got, err := deadletter.Copy(back, deadletter.Choice{}, noon, true)
			require.NoError(t, err)
			require.Equal(t, deadletter.Parse(want).Message, deadletter.Parse(got).Message)
			require.Equal(t, l.Sequence, back.Sequence)
		})
	}
}

func TestALineThatIsNoMessageIsRefused(t *testing.T) {
	for _, line := range []string{"", "{", `{"encoded_b64":"AAAA"}`, `{"nosuch":1}`, "[]"} {
		_, err := deadletter.ImportLine([]byte(line))
		require.Error(t, err, line)
	}
}

func TestAnImportIsAppliedOrSentOnce(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("NotJSON", message("m1", `{"a":1`))
		item, err := w.review.Find(t.Context(), n)
		require.NoError(t, err)
		line, err := deadletter.ExportLine(item.DeadLetter)
		require.NoError(t, err)
		broken, err := deadletter.ImportLine(line)
		require.NoError(t, err)
		require.Equal(t, deadletter.Refused, w.dryImport(command(deadletter.Reprocess), broken).Result)

		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		fields["body"] = `{"a":1}`
		line, err = json.Marshal(fields)
		require.NoError(t, err)
		fixed, err := deadletter.ImportLine(line)
		require.NoError(t, err)
		require.Equal(t, deadletter.WouldAct, w.dryImport(command(deadletter.Reprocess), fixed).Result)
		for _, want := range []deadletter.Result{deadletter.Resubmitted, deadletter.Resubmitted} {
			out := imported(t, w.review, command(deadletter.Resubmit), fixed)
			require.Equal(t, want, out.Result, out.Detail)
		}
		require.Equal(t, 1, w.count("orders").Active, "the second time the first is recognised")
		for _, want := range []deadletter.Result{deadletter.Applied, deadletter.Duplicate} {
			out := imported(t, w.review, command(deadletter.Reprocess), fixed)
			require.Equal(t, want, out.Result, out.Detail)
		}
		require.Equal(t, 1, w.mem.Creations("m1"))
		require.Equal(t, 1, w.count(dead).Active, "nothing was removed")
		require.Equal(t, "import", w.ledger.entries[0].Origin)
	})
}

func TestAnImportThatWasFixedAgainIsSentAgain(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("NotJSON", message("m1", `{"a":1`))
		item, err := w.review.Find(t.Context(), n)
		require.NoError(t, err)
		line, err := deadletter.ExportLine(item.DeadLetter)
		require.NoError(t, err)
		importFixed := func(old, fixed string) deadletter.Outcome {
			l, err := deadletter.ImportLine([]byte(strings.Replace(string(line), old, fixed, 1)))
			require.NoError(t, err)
			out := imported(t, w.review, command(deadletter.Resubmit), l)
			return out
		}
		require.Equal(t, deadletter.Resubmitted, importFixed(`{\"a\":1`, `{\"a\":1}`).Result)
		require.Contains(t, importFixed(`{\"a\":1`, `{\"a\":1}`).Detail, "is not sent again")
		require.Empty(t, importFixed(`{\"a\":1`, `{\"a\":2}`).Detail, "the first fix was a mistake")
		require.Equal(t, 2, w.count("orders").Active)
	})
}

func TestMessagesOfAFileWithoutAnIDAreToldApart(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		var err error
		w.pipeline, err = worker.NewPipeline(worker.Config{Admission: admission.Config{KeySource: admission.FromProperty("order")}}, w.store, worker.HandlerFunc(handle))
		require.NoError(t, err)
		r := w.reviewer()
		for _, id := range []string{"a", "b"} {
			l, err := deadletter.ImportLine([]byte(`{"application_properties":{"order":"` + id + `"},"body":{"a":1}}`))
			require.NoError(t, err)
			out := imported(t, r, command(deadletter.Resubmit), l)
			require.Equal(t, deadletter.Resubmitted, out.Result, out.Detail)
		}
		require.Equal(t, 2, w.count("orders").Active)
	})
}

func TestASendOfAFixedMessageIsNotTakenForOneOfTheDeadLetter(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		n := w.bury("Timeout", message("m1", `{"a":1}`))
		item, err := w.review.Find(t.Context(), n)
		require.NoError(t, err)
		line, err := deadletter.ExportLine(item.DeadLetter)
		require.NoError(t, err)
		fixed, err := deadletter.ImportLine([]byte(strings.Replace(string(line), `{\"a\":1}`, `{\"a\":2}`, 1)))
		require.NoError(t, err)
		out := imported(t, w.review, command(deadletter.Resubmit), fixed)
		require.Equal(t, deadletter.Resubmitted, out.Result, out.Detail)
		require.Equal(t, deadletter.Resubmitted, w.act(command(deadletter.Resubmit), n)[0].Result)
		require.Equal(t, 2, w.count("orders").Active, "what the dead letter says was sent too")
	})
}
