package traffic

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

var words = Words{Conflict: "ContentConflict", Unreadable: []string{"NotJSON"}}

func TestTheSameSeedMakesTheSameStream(t *testing.T) {
	first := NewStream(42, "t-").Take(500)
	require.Equal(t, first, NewStream(42, "t-").Take(500))
	require.NotEqual(t, first, NewStream(43, "t-").Take(500))
}

func TestAStreamHasMessagesOfEveryKind(t *testing.T) {
	kinds := map[Kind]int{}
	for _, m := range NewStream(1, "t-").Take(1000) {
		kinds[m.Kind]++
	}
	for _, k := range []Kind{New, Lines, Again, Reordered, Conflicting, Unreadable} {
		require.Greater(t, kinds[k], 20, k)
	}
}

func TestAReorderedOrderSaysTheSameAndAConflictingOneDoesNot(t *testing.T) {
	original := map[string]any{}
	for _, m := range NewStream(7, "t-").Take(2000) {
		if !m.Readable() {
			continue
		}
		var body any
		require.NoError(t, json.Unmarshal(m.Body, &body))
		switch m.Kind {
		case New, Lines:
			require.NotContains(t, original, m.ID)
			original[m.ID] = body
		case Conflicting:
			require.NotEqual(t, original[m.ID], body)
		default:
			require.Equal(t, original[m.ID], body, m.Kind)
		}
	}
}

func TestAuditHoldsEveryMessageToWhatIsStored(t *testing.T) {
	order := Message{ID: "1", Body: []byte(`{"amount":40}`), Kind: New}
	again := Message{ID: "1", Body: []byte(`{ "amount": 4e1 }`), Kind: Reordered}
	other := Message{ID: "1", Body: []byte(`{"amount":41}`), Kind: Conflicting}
	broken := Message{ID: "2", Body: []byte(`{`), Kind: Unreadable}
	lines := Message{ID: "1", Body: []byte(`{"lines":[{"sku":"a"},{"sku":"b"}]}`), Kind: Lines}
	orders := func(body string, lines ...string) map[string]storedOrder {
		return map[string]storedOrder{"1": {Body: body, Lines: lines}}
	}
	done := func(m Message) Outcome { return Outcome{Message: m, Completed: true} }
	dead := func(m Message, reason string) Outcome {
		return Outcome{Message: m, Reason: reason}
	}

	tests := []struct {
		name     string
		outcomes []Outcome
		stored   map[string]storedOrder
		want     string
	}{
		{name: "all is right", outcomes: []Outcome{done(order), done(again), dead(other, "ContentConflict"), dead(broken, "NotJSON")}, stored: orders(`{"amount":40}`)},
		{name: "the other content won the race", outcomes: []Outcome{dead(order, "ContentConflict"), dead(again, "ContentConflict"), done(other)}, stored: orders(`{"amount":41}`)},
		{name: "completed without being stored", outcomes: []Outcome{done(order)}, want: "1 (new order) was completed, and nothing is stored under its id"},
		{name: "dead-lettered without being stored", outcomes: []Outcome{dead(order, "ContentConflict")}, want: "nothing is stored under its id"},
		{name: "a conflict was swallowed", outcomes: []Outcome{done(order), done(other)}, stored: orders(`{"amount":40}`), want: "(reused id, other content) was completed, although something else is stored"},
		{name: "an honest repeat was dead-lettered", outcomes: []Outcome{done(order), dead(again, "ContentConflict")}, stored: orders(`{"amount":40}`), want: "although it is just what is stored"},
		{name: "a conflict with the wrong reason", outcomes: []Outcome{done(order), dead(other, "MaxDeliveryCountExceeded")}, stored: orders(`{"amount":40}`), want: "was dead-lettered as MaxDeliveryCountExceeded, although something else is stored"},
		{name: "an unreadable body was completed", outcomes: []Outcome{done(broken)}, want: "although nobody can read it"},
		{name: "an unreadable body with the wrong reason", outcomes: []Outcome{dead(broken, "ContentConflict")}, want: "although nobody can read it"},
		{name: "an order without its lines", outcomes: []Outcome{done(lines)}, stored: orders(`{"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"sku":"a"}`), want: "1 is stored with 2 lines and documents for 1"},
		{name: "an order with the lines of another", outcomes: []Outcome{done(lines)}, stored: orders(`{"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"sku":"a"}`, `{"sku":"c"}`), want: "documents for 2, or others"},
		{name: "an order with its lines", outcomes: []Outcome{done(lines)}, stored: orders(`{"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"sku":"a"}`, `{"sku":"b"}`)},
		{name: "a document from nowhere", stored: map[string]storedOrder{"9": {Body: `{}`}}, want: "9 is stored with content that nobody sent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wrong := auditOrders(tt.outcomes, tt.stored, words)
			if tt.want == "" {
				require.Empty(t, wrong)
				return
			}
			require.Len(t, wrong, 1)
			require.Contains(t, wrong[0], tt.want)
		})
	}
}

func TestStoredSortsDocumentsIntoOrders(t *testing.T) {
	orders, err := storedOrders(map[string]string{
		"1":             `{"id":"1","type":"order","order":{"amount":40},"request":{}}`,
		"1~part.line-2": `{"id":"1~part.line-2","type":"line","line":{"sku":"b"}}`,
		"1~part.line-1": `{"id":"1~part.line-1","type":"line","line":{"sku":"a"}}`,
		"2":             `{"id":"2","type":"order","order":{}}`,
	})
	require.NoError(t, err)
	require.Equal(t, map[string]storedOrder{"1": {Body: `{"amount":40}`, Lines: []string{`{"sku":"a"}`, `{"sku":"b"}`}}, "2": {Body: `{}`}}, orders)
}

func TestStoredRefusesADocumentInAnotherForm(t *testing.T) {
	for _, text := range []string{`{`, `{"order":{}}`, `{"type":1}`, `{"type":"order"}`} {
		_, err := storedOrders(map[string]string{"1": text})
		require.ErrorContains(t, err, "document 1")
	}
	_, err := storedOrders(map[string]string{"1": `{"type":"order","order":{}}`, "1~part.line-1": `{}`})
	require.ErrorContains(t, err, "line 1 of 1")
}

func TestGuardKnowsWhichDocumentBelongsToWhich(t *testing.T) {
	guard, further := Guard("1~part.line-1")
	require.True(t, further)
	require.Equal(t, "1", guard)
	_, further = Guard("1")
	require.False(t, further)
}
