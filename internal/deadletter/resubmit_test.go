package deadletter_test

import (
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

var (
	off     = deadletter.DuplicateDetection{Known: true}
	tenMin  = deadletter.DuplicateDetection{Known: true, Window: 10 * time.Minute}
	week    = deadletter.DuplicateDetection{Known: true, Window: 7 * 24 * time.Hour}
	unknown = deadletter.DuplicateDetection{}
)

func TestSwallowed(t *testing.T) {
	resubmitted := func(at time.Time) map[string]any {
		return map[string]any{deadletter.PropertyResubmitCount: int32(1), deadletter.PropertyResubmitAt: at}
	}
	noID := messageOf(noon, nil)
	noID.Message.Properties.MessageID = ""
	for _, tt := range []struct {
		name    string
		message *deadletter.DeadLetter
		d       deadletter.DuplicateDetection
		want    bool
		until   time.Time
	}{
		{"the window is over", messageOf(noon.Add(-10*time.Minute), nil), tenMin, false, time.Time{}},
		{"the window is open for another second", messageOf(noon.Add(-10*time.Minute+time.Second), nil), tenMin, true, noon.Add(time.Second)},
		{"a window of a week", messageOf(noon.Add(-24*time.Hour), nil), week, true, noon.Add(6 * 24 * time.Hour)},
		{"it is off", messageOf(noon, nil), off, false, time.Time{}},
		{"it is not known and the longest is still open", messageOf(noon.Add(-24*time.Hour), nil), unknown, true, noon.Add(6 * 24 * time.Hour)},
		{"it is not known and even the longest is over", messageOf(noon.Add(-8*24*time.Hour), nil), unknown, false, time.Time{}},
		{"the age is not known", messageOf(time.Time{}, nil), tenMin, true, time.Time{}},
		{"the age is not known and it is off", messageOf(time.Time{}, nil), off, false, time.Time{}},
		{"it was resubmitted since", messageOf(noon.Add(-time.Hour), resubmitted(noon.Add(-time.Minute))), tenMin, true, noon.Add(9 * time.Minute)},
		{"no id is nothing to remember", noID, tenMin, false, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			until, dropped := deadletter.DroppedAsDuplicate(tt.message, tt.d, noon)
			require.Equal(t, tt.want, dropped)
			if tt.want {
				require.True(t, tt.until.Equal(until), "got %s", until)
			}
		})
	}
}

func TestResubmitIsRefusedWhereTheMessageWouldBeLost(t *testing.T) {
	session, yesterday := "s1", noon.Add(-24*time.Hour)
	with := func(change func(*amqp.Message)) *deadletter.DeadLetter {
		m := messageOf(yesterday, nil).Message
		change(m)
		b, _ := m.MarshalBinary()
		return deadletter.Parse(b)
	}
	plain := with(func(*amqp.Message) {})
	expired := with(func(m *amqp.Message) { m.Header = &amqp.MessageHeader{TTL: 2 * time.Minute} })
	for _, tt := range []struct {
		name    string
		message *deadletter.DeadLetter
		s       deadletter.Settings
		c       deadletter.Choice
		refused string
	}{
		{"a plain one", plain, deadletter.Settings{Queue: "orders", Duplicates: off}, deadletter.Choice{}, ""},
		{"duplicate detection remembers it", plain, deadletter.Settings{Queue: "orders", Duplicates: week}, deadletter.Choice{}, "2026-03-07 12:00:00 UTC"},
		{"duplicate detection is not known", plain, deadletter.Settings{Queue: "orders"}, deadletter.Choice{}, "not known whether the queue detects duplicates"},
		{"a subscription", plain, deadletter.Settings{Queue: "sales/Subscriptions/orders", Duplicates: off}, deadletter.Choice{}, "every subscription of the topic sales"},
		{"no session where one is needed", plain, deadletter.Settings{Queue: "orders", Duplicates: off, RequiresSession: true}, deadletter.Choice{}, "only messages of a session"},
		{"a session where one is needed", with(func(m *amqp.Message) { m.Properties.GroupID = &session }), deadletter.Settings{Queue: "orders", Duplicates: off, RequiresSession: true}, deadletter.Choice{}, ""},
		{"expired", expired, deadletter.Settings{Queue: "orders", Duplicates: off}, deadletter.Choice{}, "time to live of 2m0s ended"},
		{"expired with a new time to live", expired, deadletter.Settings{Queue: "orders", Duplicates: off}, deadletter.Choice{NewTTL: time.Hour}, ""},
		{"a time to live that would wrap around", expired, deadletter.Settings{Queue: "orders", Duplicates: off}, deadletter.Choice{NewTTL: 50 * 24 * time.Hour}, "cannot be sent"},
		{"not expired yet", with(func(m *amqp.Message) { m.Header = &amqp.MessageHeader{TTL: 25 * time.Hour} }), deadletter.Settings{Queue: "orders", Duplicates: off}, deadletter.Choice{}, ""},
		{"it comes back each time", with(func(m *amqp.Message) {
			m.ApplicationProperties = map[string]any{deadletter.PropertyResubmitCount: int32(5)}
		}), deadletter.Settings{Queue: "orders", Duplicates: off}, deadletter.Choice{}, "resubmitted 5 times"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := deadletter.OfferOf(deadletter.Resubmit, tt.message, deadletter.Verdict{Kind: deadletter.NeverApplied}, tt.s, tt.c, noon)
			if tt.refused == "" {
				require.Empty(t, o.Refused)
				return
			}
			require.Contains(t, o.Refused, tt.refused)
			require.Empty(t, deadletter.OfferOf(deadletter.Reprocess, tt.message, deadletter.Verdict{Kind: deadletter.NeverApplied}, tt.s, tt.c, noon).Refused,
				"in place is always open")
		})
	}
}

// full is a message in which every section and field is set.
func full() *amqp.Message {
	text := func(s string) *string { return &s }
	sequence, when := uint32(3), noon.Local()
	return &amqp.Message{
		Header:              &amqp.MessageHeader{Durable: true, Priority: 9, TTL: 24 * time.Hour, FirstAcquirer: true, DeliveryCount: 4},
		DeliveryAnnotations: amqp.Annotations{"x-opt-lock-token": amqp.UUID{1}},
		Annotations: amqp.Annotations{
			"x-opt-sequence-number": int64(7), "x-opt-enqueued-time": when, "x-opt-locked-until": when, "x-opt-deadletter-source": "orders",
			"x-opt-message-state": int32(0), "x-opt-enqueue-sequence-number": int64(7), "x-opt-scheduled-enqueue-time": when,
			"x-opt-partition-key": "s1", "own": int32(1),
		},
		Properties: &amqp.MessageProperties{
			MessageID: "m1", UserID: []byte("u"), To: text("x"), Subject: text("order"), ReplyTo: text("r"), CorrelationID: "c1",
			ContentType: text("application/json"), ContentEncoding: text("identity"), AbsoluteExpiryTime: &when, CreationTime: &when,
			GroupID: text("s1"), GroupSequence: &sequence, ReplyToGroupID: text("rs"),
		},
		ApplicationProperties: map[string]any{
			"DeadLetterReason": "BodyNotObject", "DeadLetterErrorDescription": "...", worker.PropertyReason: "BodyNotObject",
			worker.PropertyDocumentID: "m1", worker.PropertyStoredHash: "a", worker.PropertyArrivedHash: "b", worker.PropertyPaths: "/a", worker.PropertyVersion: "1",
			"tenant": "t1", "a": int64(1), "b": "2", "c": true, "null": nil, "empty": "", "int": int32(-1), "ubyte": uint8(1), "double": 1.5, "bin": []byte{0},
		},
		Data: [][]byte{[]byte("body")}, Footer: amqp.Annotations{"f": int32(1)},
	}
}

func encodedMessage(t *testing.T, m *amqp.Message) *deadletter.DeadLetter {
	t.Helper()
	b, err := m.MarshalBinary()
	require.NoError(t, err)
	return deadletter.Parse(b)
}

func copied(t *testing.T, l *deadletter.DeadLetter, c deadletter.Choice, plain bool) *amqp.Message {
	t.Helper()
	before := string(l.Encoded)
	b, err := deadletter.Copy(l, c, noon, plain)
	require.NoError(t, err)
	require.Equal(t, before, string(l.Encoded), "the message stays as it is")
	var m amqp.Message
	require.NoError(t, m.UnmarshalBinary(b))
	return &m
}

func TestACopyKeepsEverythingThatIsTheSenders(t *testing.T) {
	want := full()
	want.Header.FirstAcquirer, want.Header.DeliveryCount = false, 0
	want.DeliveryAnnotations = nil
	want.Annotations = amqp.Annotations{"x-opt-partition-key": "s1", "own": int32(1)}
	want.ApplicationProperties = map[string]any{
		"tenant": "t1", "a": int64(1), "b": "2", "c": true, "null": nil, "empty": "", "int": int32(-1), "ubyte": uint8(1), "double": 1.5, "bin": []byte{0},
	}
	require.Equal(t, want, copied(t, encodedMessage(t, full()), deadletter.Choice{}, true))
	want.ApplicationProperties[deadletter.PropertyResubmitCount] = int32(1)
	want.ApplicationProperties[deadletter.PropertyResubmitAt] = noon.Local()
	require.Equal(t, want, copied(t, encodedMessage(t, full()), deadletter.Choice{}, false))
}

func TestACopyCountsOn(t *testing.T) {
	l := encodedMessage(t, &amqp.Message{ApplicationProperties: map[string]any{deadletter.PropertyResubmitCount: int32(2), deadletter.PropertyResubmitAt: noon.Add(-time.Hour)}})
	m := copied(t, l, deadletter.Choice{}, false)
	require.Equal(t, map[string]any{deadletter.PropertyResubmitCount: int32(3), deadletter.PropertyResubmitAt: noon.Local()}, m.ApplicationProperties)
}

func TestANewTimeToLiveReplacesTheOldTimes(t *testing.T) {
	m := copied(t, encodedMessage(t, full()), deadletter.Choice{NewTTL: time.Hour}, true)
	require.Equal(t, time.Hour, m.Header.TTL)
	require.True(t, m.Header.Durable)
	require.Nil(t, m.Properties.AbsoluteExpiryTime)
	require.Nil(t, m.Properties.CreationTime)
	require.Equal(t, "c1", m.Properties.CorrelationID)
	m = copied(t, encodedMessage(t, &amqp.Message{Data: [][]byte{{1}}}), deadletter.Choice{NewTTL: time.Hour}, true)
	require.Equal(t, time.Hour, m.Header.TTL, "also where no header was")
}

func TestABodyOfAnyKindIsCopiedByteForByte(t *testing.T) {
	symbol := []byte{0, 0x53, 0x77, 0xA3, 3, 'a', 'b', 'c'} // an amqp-value that the client library would send as a string
	null := []byte{0, 0x53, 0x77, 0x40}                     // and one that it would not send at all
	body := func(m *amqp.Message) []byte { return encodedMessage(t, m).Encoded }
	for name, b := range map[string][]byte{
		"binary":   body(&amqp.Message{Data: [][]byte{{8, 0x96, 1, 0xff, 0xfe}}}),
		"with BOM": body(&amqp.Message{Data: [][]byte{[]byte("\ufeff{\"orderId\":\"A-1\"}")}}),
		"text":     body(&amqp.Message{Value: `{"orderId":"A-1","amount":40}`}),
		"sections": body(&amqp.Message{Data: [][]byte{[]byte("ab"), []byte("cd")}}),
		"sequence": body(&amqp.Message{Sequence: [][]any{{int32(1), "b"}, {nil}}}),
		"symbol":   symbol, "null": null, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := deadletter.Copy(deadletter.Parse(b), deadletter.Choice{}, noon, true)
			require.NoError(t, err)
			require.Equal(t, b, append([]byte{}, got...))
		})
	}
}

func TestAPropertyOfATypeThatNobodyDecodesIsCopiedToo(t *testing.T) {
	decimal := append([]byte{0xA1, 1, 'd', 0x94}, make([]byte, 16)...)
	section := append([]byte{0, 0x53, 0x74, 0xC1, byte(1 + len(decimal)), 2}, decimal...)
	got, err := deadletter.Copy(deadletter.Parse(section), deadletter.Choice{}, noon, true)
	require.NoError(t, err)
	require.Contains(t, string(got), string(decimal))
}

func TestASecondCopyUnderOneIDIsNotSentWhileDuplicateDetectionRemembersTheFirst(t *testing.T) {
	const window = 10 * time.Minute
	for name, resubmit := range map[string]func(w *world, first, second int64) []deadletter.Outcome{
		"together": func(w *world, first, second int64) []deadletter.Outcome {
			return w.act(command(deadletter.Resubmit), first, second)
		},
		"one after the other": func(w *world, first, second int64) []deadletter.Outcome {
			return append(w.act(command(deadletter.Resubmit), first), w.act(command(deadletter.Resubmit), second)...)
		},
		"by a plan": func(w *world, _, _ int64) []deadletter.Outcome {
			_, steps, _ := w.plan(deadletter.Planning{Action: deadletter.Resubmit})
			a := application(steps)
			a.Pace.Canary = []int{10}
			var out []deadletter.Outcome
			a.Outcome = func(o deadletter.Outcome) { out = append(out, o) }
			w.applyPlan(a)
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{
				queue: func(q *servicebus.Queue) {
					q.RequiresDuplicateDetection, q.DuplicateDetectionHistoryTimeWindow = true, window
				},
				settings: func(s *deadletter.Settings) { s.Duplicates.Window = window },
			}, func(t *testing.T, w *world) {
				first := w.bury("Timeout", message("m1", `{"a":1}`))
				time.Sleep(window + time.Second)
				second := w.bury("Timeout", message("m1", `{"a":2}`))
				time.Sleep(window + time.Second)
				out := resubmit(w, first, second)
				require.Equal(t, deadletter.Resubmitted, out[0].Result, out[0].Detail)
				require.Equal(t, deadletter.Refused, out[1].Result, out[1].Detail)
				require.Contains(t, out[1].Detail, "Another message with this MessageId")
				require.Equal(t, 1, w.count("orders").Active)
				require.Equal(t, 1, w.count(dead).Active, "what would have been dropped is still there")
				time.Sleep(window + time.Second)
				require.Equal(t, deadletter.Resubmitted, w.act(command(deadletter.Resubmit), second)[0].Result)
				require.Equal(t, 2, w.count("orders").Active)
			})
		})
	}
}

func TestAFixedMessageIsNotSentWhileDuplicateDetectionRemembersTheLastFix(t *testing.T) {
	const window = 10 * time.Minute
	inBubble(t, setup{settings: func(s *deadletter.Settings) { s.Duplicates.Window = window }}, func(t *testing.T, w *world) {
		l, err := deadletter.ImportLine([]byte(`{"message_id":"m1","message_annotations":{"map":[["x-opt-sequence-number",3],["x-opt-enqueued-time",{"timestamp":"1999-01-01T00:00:00Z"}]]},"body":{"a":1}}`))
		require.NoError(t, err)
		fixed, err := deadletter.ImportLine([]byte(`{"message_id":"m1","message_annotations":{"map":[["x-opt-sequence-number",3],["x-opt-enqueued-time",{"timestamp":"1999-01-01T00:00:00Z"}]]},"body":{"a":2}}`))
		require.NoError(t, err)
		out := imported(t, w.review, command(deadletter.Resubmit), l)
		require.Equal(t, deadletter.Resubmitted, out.Result, out.Detail)
		out = imported(t, w.review, command(deadletter.Resubmit), fixed)
		require.Equal(t, deadletter.Refused, out.Result, out.Detail)
	})
}
