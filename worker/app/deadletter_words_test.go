package app

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
)

func TestShowForProgramsHasTheWholeMessage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	subject := "payment"
	d.buryWith(servicebus.Properties{MessageID: "m1", Subject: &subject, CorrelationID: "c-1"}, `{"amount":41}`)
	var one struct {
		Body       string
		Properties map[string]string
		Facts      []struct{ Name, Value string }
		Stored     json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(d.ok("show", "5", "-o", "json")), &one))
	require.Equal(t, `{"amount":41}`, one.Body)
	require.Equal(t, "TTLExpiredException", one.Properties["DeadLetterReason"])
	require.JSONEq(t, `{"amount":40}`, string(one.Stored))
	require.Contains(t, one.Facts, struct{ Name, Value string }{"Subject", "payment"})
	text := d.ok("show", "5")
	for _, want := range []string{"subject", "payment", "correlation id", "c-1", "time to live", "1 other dead letter(s) with this key"} {
		require.Contains(t, text, want)
	}
}

func TestAReasonIsSelectedAsItIs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Equal(t, "none of 4 dead letters match\n", d.ok("list", "--reason", "TTLExpiredException,Nothing"), "a comma is part of a reason")
	require.Contains(t, d.ok("list", "--reason", "Nothing", "--reason", "TTLExpiredException"), "4 dead letters")
	require.Contains(t, d.ok("list", "--reason", `he said "no"`), "none of 4")
	code, _, stderr := d.run("list", "--reason", "")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--reason is empty")
}

func TestDiffOfWhatCannotBeComparedIsNoSuccess(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buryOf("shop-payments", "m1", `{"amount":40}`)
	code, stdout, _ := d.run("diff", "5")
	require.NotEqual(t, exitOK, code)
	require.NotContains(t, stdout, "the same")
}

func TestOnlyWhatIsRemovedIsArchived(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := d.file("kept.jsonl")
	code, _, _ := d.run("discard", "1", "2", "--reason", "x", "--archive", file)
	require.Equal(t, exitFailure, code, "the second was never applied")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(kept), `"m1"`)
	require.NotContains(t, string(kept), `"m2"`)
	require.Contains(t, d.ok("log"), "orders")
}

func TestAnActionIsTriedWithoutAReason(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Contains(t, d.ok("reprocess", "2", "--dry-run"), "would-act")
	require.Equal(t, 4, dead(t, d.env))
}

func TestForwardedDeadLettersAreHintedAtAndListed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("discard", "1", "2", "3", "4", "--reason", "x", "--accept-warning")
	_, err := d.env.Broker.Send("orders", servicebus.Message{
		Properties: &servicebus.Properties{MessageID: "f-1"}, BodyKind: servicebus.BodyData, Data: [][]byte{[]byte(`{"a":1}`)},
		ApplicationProperties: servicebus.Map{{Key: "DeadLetterReason", Value: "TooLarge"}},
	})
	require.NoError(t, err)
	require.Contains(t, d.ok("list"), "--forwarded")
	require.Contains(t, d.ok("list", "--forwarded"), "f-1")
}
