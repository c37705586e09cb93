package traffic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/traffic"
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
	done := func(m traffic.Message) traffic.Fate { return traffic.Fate{Message: m, Completed: true} }
	dead := func(m traffic.Message, reason string) traffic.Fate { return traffic.Fate{Message: m, Reason: reason} }

	tests := []struct {
		name   string
		fates  []traffic.Fate
		stored map[string]string
		want   string
	}{
		{name: "all is right", fates: []traffic.Fate{done(order), done(again), dead(other, "ContentConflict"), dead(broken, "NotJSON")}, stored: map[string]string{"1": `{"amount":40}`}},
		{name: "the other content won the race", fates: []traffic.Fate{dead(order, "ContentConflict"), dead(again, "ContentConflict"), done(other)}, stored: map[string]string{"1": `{"amount":41}`}},
		{name: "completed without being stored", fates: []traffic.Fate{done(order)}, want: "1 (new order) was completed, and nothing is stored under its id"},
		{name: "dead-lettered without being stored", fates: []traffic.Fate{dead(order, "ContentConflict")}, want: "nothing is stored under its id"},
		{name: "a conflict was swallowed", fates: []traffic.Fate{done(order), done(other)}, stored: map[string]string{"1": `{"amount":40}`}, want: "(reused id, other content) was completed, although something else is stored"},
		{name: "an honest repeat was dead-lettered", fates: []traffic.Fate{done(order), dead(again, "ContentConflict")}, stored: map[string]string{"1": `{"amount":40}`}, want: "although it is just what is stored"},
		{name: "a conflict with the wrong reason", fates: []traffic.Fate{done(order), dead(other, "MaxDeliveryCountExceeded")}, stored: map[string]string{"1": `{"amount":40}`}, want: "was dead-lettered as MaxDeliveryCountExceeded, although something else is stored"},
		{name: "an unreadable body was completed", fates: []traffic.Fate{done(broken)}, want: "although nobody can read it"},
		{name: "an unreadable body with the wrong reason", fates: []traffic.Fate{dead(broken, "ContentConflict")}, want: "although nobody can read it"},
		{name: "a document from nowhere", stored: map[string]string{"9": `{}`}, want: "9 is stored with content that nobody sent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wrong := traffic.Audit(tt.fates, tt.stored, words)
			if tt.want == "" {
				require.Empty(t, wrong)
				return
			}
			require.Len(t, wrong, 1)
			require.Contains(t, wrong[0], tt.want)
		})
	}
}
