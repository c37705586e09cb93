package traffic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/traffic"
)

var words = traffic.Words{Conflict: "ContentConflict", Unreadable: []string{"NotJSON"}}

func TestTheSameSeedMakesTheSameStream(t *testing.T) {
	first := traffic.NewStream(42, "t-").Take(500)
	require.Equal(t, first, traffic.NewStream(42, "t-").Take(500))
	require.NotEqual(t, first, traffic.NewStream(43, "t-").Take(500))
}

func TestAStreamHasMessagesOfEveryKind(t *testing.T) {
	kinds := map[traffic.Kind]int{}
	for _, m := range traffic.NewStream(1, "t-").Take(1000) {
		kinds[m.Kind]++
	}
	for _, k := range []traffic.Kind{traffic.New, traffic.Lines, traffic.Again, traffic.Reordered, traffic.Conflicting, traffic.Unreadable} {
		require.Greater(t, kinds[k], 20, k)
	}
}

func TestAReorderedOrderSaysTheSameAndAConflictingOneDoesNot(t *testing.T) {
	original := map[string]any{}
	for _, m := range traffic.NewStream(7, "t-").Take(2000) {
		if !m.Readable() {
			continue
		}
		var body any
		require.NoError(t, json.Unmarshal(m.Body, &body))
		switch m.Kind {
		case traffic.New, traffic.Lines:
			require.NotContains(t, original, m.ID)
			original[m.ID] = body
		case traffic.Conflicting:
			require.NotEqual(t, original[m.ID], body)
		default:
			require.Equal(t, original[m.ID], body, m.Kind)
		}
	}
}

func TestAuditHoldsEveryMessageToWhatIsStored(t *testing.T) {
	order := traffic.Message{ID: "1", Body: []byte(`{"amount":40}`), Kind: traffic.New}
	again := traffic.Message{ID: "1", Body: []byte(`{ "amount": 4e1 }`), Kind: traffic.Reordered}
	other := traffic.Message{ID: "1", Body: []byte(`{"amount":41}`), Kind: traffic.Conflicting}
	broken := traffic.Message{ID: "2", Body: []byte(`{`), Kind: traffic.Unreadable}
	lines := traffic.Message{ID: "1", Body: []byte(`{"lines":[{"sku":"a"},{"sku":"b"}]}`), Kind: traffic.Lines}
	orders := func(body string, lines ...string) map[string]traffic.Order {
		return map[string]traffic.Order{"1": {Body: body, Lines: lines}}
	}
	done := func(m traffic.Message) traffic.Outcome { return traffic.Outcome{Message: m, Completed: true} }
	dead := func(m traffic.Message, reason string) traffic.Outcome {
		return traffic.Outcome{Message: m, Reason: reason}
	}

	tests := []struct {
		name     string
		outcomes []traffic.Outcome
		stored   map[string]traffic.Order
		want     string
	}{
		{name: "all is right", outcomes: []traffic.Outcome{done(order), done(again), dead(other, "ContentConflict"), dead(broken, "NotJSON")}, stored: orders(`{"amount":40}`)},
		{name: "the other content won the race", outcomes: []traffic.Outcome{dead(order, "ContentConflict"), dead(again, "ContentConflict"), done(other)}, stored: orders(`{"amount":41}`)},
		{name: "completed without being stored", outcomes: []traffic.Outcome{done(order)}, want: "1 (new order) was completed, and nothing is stored under its id"},
		{name: "dead-lettered without being stored", outcomes: []traffic.Outcome{dead(order, "ContentConflict")}, want: "nothing is stored under its id"},
		{name: "a conflict was swallowed", outcomes: []traffic.Outcome{done(order), done(other)}, stored: orders(`{"amount":40}`), want: "(reused id, other content) was completed, although something else is stored"},
		{name: "an honest repeat was dead-lettered", outcomes: []traffic.Outcome{done(order), dead(again, "ContentConflict")}, stored: orders(`{"amount":40}`), want: "although it is just what is stored"},
		{name: "a conflict with the wrong reason", outcomes: []traffic.Outcome{done(order), dead(other, "MaxDeliveryCountExceeded")}, stored: orders(`{"amount":40}`), want: "was dead-lettered as MaxDeliveryCountExceeded, although something else is stored"},
		{name: "an unreadable body was completed", outcomes: []traffic.Outcome{done(broken)}, want: "although nobody can read it"},
		{name: "an unreadable body with the wrong reason", outcomes: []traffic.Outcome{dead(broken, "ContentConflict")}, want: "although nobody can read it"},
		{name: "an order without its lines", outcomes: []traffic.Outcome{done(lines)}, stored: orders(`{"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"sku":"a"}`), want: "1 is stored with 2 lines and documents for 1"},
		{name: "an order with the lines of another", outcomes: []traffic.Outcome{done(lines)}, stored: orders(`{"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"sku":"a"}`, `{"sku":"c"}`), want: "documents for 2, or others"},
		{name: "an order with its lines", outcomes: []traffic.Outcome{done(lines)}, stored: orders(`{"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"sku":"a"}`, `{"sku":"b"}`)},
		{name: "a document from nowhere", stored: map[string]traffic.Order{"9": {Body: `{}`}}, want: "9 is stored with content that nobody sent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wrong := traffic.Audit(tt.outcomes, tt.stored, words)
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
	orders, err := traffic.Stored(map[string]string{
		"1":             `{"id":"1","type":"order","order":{"amount":40},"request":{}}`,
		"1~part.line-2": `{"id":"1~part.line-2","type":"line","line":{"sku":"b"}}`,
		"1~part.line-1": `{"id":"1~part.line-1","type":"line","line":{"sku":"a"}}`,
		"2":             `{"id":"2","type":"order","order":{}}`,
	})
	require.NoError(t, err)
	require.Equal(t, map[string]traffic.Order{"1": {Body: `{"amount":40}`, Lines: []string{`{"sku":"a"}`, `{"sku":"b"}`}}, "2": {Body: `{}`}}, orders)
}

func TestStoredRefusesADocumentInAnotherForm(t *testing.T) {
	for _, text := range []string{`{`, `{"order":{}}`, `{"type":1}`, `{"type":"order"}`} {
		_, err := traffic.Stored(map[string]string{"1": text})
		require.ErrorContains(t, err, "document 1")
	}
	_, err := traffic.Stored(map[string]string{"1": `{"type":"order","order":{}}`, "1~part.line-1": `{}`})
	require.ErrorContains(t, err, "line 1 of 1")
}

func TestGuardKnowsWhichDocumentBelongsToWhich(t *testing.T) {
	guard, further := traffic.Guard("1~part.line-1")
	require.True(t, further)
	require.Equal(t, "1", guard)
	_, further = traffic.Guard("1")
	require.False(t, further)
}
