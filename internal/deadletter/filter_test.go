package deadletter_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func TestMessagesAreFoundByTextKeyNumberAndForLackOfAReason(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		subject, session, encoding := "Invoice", "desk-7", "gzip"
		plain := message("a", `{"city":"Zürich"}`)
		plain.Properties.Subject, plain.Properties.GroupID, plain.Properties.CorrelationID = &subject, &session, "corr-9"
		w.bury("One", plain)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(`{"city":"Basel"}`))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		packed := message("b", b.String())
		packed.Properties.ContentEncoding = &encoding
		packed.ApplicationProperties = map[string]any{"tenant": "north"}
		w.bury("", packed)
		w.bury("Two", message("a", "not readable"))
		for name, tt := range map[string]struct {
			f    deadletter.Filter
			want string
		}{
			"part of the body in any case":      {deadletter.Filter{Text: "zÜRI"}, "1"},
			"a compressed body":                 {deadletter.Filter{Text: "basel"}, "2"},
			"a subject":                         {deadletter.Filter{Text: "invoice"}, "1"},
			"a correlation id":                  {deadletter.Filter{Text: "corr-9"}, "1"},
			"a session":                         {deadletter.Filter{Text: "desk-7"}, "1"},
			"a property":                        {deadletter.Filter{Text: "NORTH"}, "2"},
			"a sequence number":                 {deadletter.Filter{Text: "3"}, "3"},
			"a text and a verdict":              {deadletter.Filter{Text: "a", Kinds: []deadletter.Kind{deadletter.Unreadable}}, "3"},
			"nothing like it":                   {deadletter.Filter{Text: "nosuch"}, ""},
			"one key, also one that is no JSON": {deadletter.Filter{Key: "a"}, "1 3"},
			"no reason":                         {deadletter.Filter{Reasons: []string{deadletter.NoReason}}, "2"},
			"chosen numbers":                    {deadletter.Filter{Sequences: []int64{3, 1}}, "1 3"},
			"chosen numbers and a reason":       {deadletter.Filter{Sequences: []int64{3, 1}, Reasons: []string{"Two"}}, "3"},
			"no numbers that were chosen":       {deadletter.Filter{Sequences: []int64{}}, ""},
		} {
			var got []string
			for _, item := range w.list(tt.f) {
				got = append(got, deadletter.Value(item.DeadLetter.Sequence))
			}
			require.Equal(t, tt.want, strings.Join(got, " "), name)
		}
	})
}

func TestAnUnreadableMessageIsShownWithWhatIsStoredUnderItsKey(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		w.apply("a", `{"n":1}`)
		for _, m := range []*amqp.Message{message("a", "n=1"), message("b", "n=2"), message(" ", "n=3")} {
			w.bury("NotJSON", m)
		}
		items := w.list(deadletter.Filter{})
		require.JSONEq(t, `{"n":1}`, string(items[0].Stored))
		require.Empty(t, items[0].Absence)
		require.NotContains(t, items[0].Verdict.Detail, "could be read was applied")
		require.Contains(t, items[1].Absence, "Nothing is stored under its key")
		require.Contains(t, items[1].Verdict.Detail, items[1].Absence, "the page and the command say the same")
		require.Contains(t, items[2].Absence, "no key")
		w.bury("ContentConflict", message("a", `{"n":2}`))
		require.Empty(t, w.list(deadletter.Filter{})[3].Absence, "what is stored is shown")
	})
}

func TestADumpFitsAPhone(t *testing.T) {
	m := message("a", "\xff\x00{\"key\":\"v\"}")
	require.Equal(t, "0000  ff 00 7b 22 6b 65 79 22  ..{\"key\"\n0008  3a 22 76 22 7d           :\"v\"}", deadletter.BodyOf(m, 100).Text)
}
