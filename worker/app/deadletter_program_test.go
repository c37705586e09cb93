package app

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// buryOf buries a message that a worker of a program has dead-lettered.
func (d *desk) buryOf(program, id, body string) {
	d.t.Helper()
	d.buryMessage(servicebus.Message{
		Properties:            &servicebus.Properties{MessageID: id},
		ApplicationProperties: servicebus.Map{{Key: worker.PropertyProgram, Value: program}, {Key: worker.PropertyDocumentID, Value: id}},
	}, body)
}

func TestDeadLettersOfAnotherProgramAreLeftToIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	stored := len(d.env.Stored())
	d.buryOf("shop-payments", "pay-4", `{"amount":5}`)
	for _, args := range [][]string{
		{"reprocess", "5", "--reason", "x"}, {"resubmit", "5", "--reason", "x"}, {"discard", "5", "--reason", "x", "--accept-warning"},
		{"reprocess", "5", "--reason", "x", "--accept-warning", "--accept-unknown-program"}, {"reprocess", "5", "--dry-run"},
	} {
		code, stdout, _ := d.run(args...)
		require.Equal(t, exitFailure, code, "%v: %s", args, stdout)
		require.Contains(t, stdout, "belongs to the program shop-payments")
		require.Contains(t, stdout, "shop-payments deadletter "+args[0]+" 5")
	}
	plan := d.file("plan.jsonl")
	d.ok("plan", "--message-id", "pay-4", "--file", plan, "--action", "reprocess")
	d.ok("apply", plan, "--execute", "--reason", "x")
	require.Len(t, d.env.Stored(), stored, "nothing is stored")
	require.Equal(t, 5, dead(t, d.env), "and nothing removed")
	require.Contains(t, d.ok("show", "5"), "other-program")

	code, _, stderr := d.run("discard", "5", "--reason", "x", "--program", "shop-payments")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--i-know")
	require.Contains(t, d.ok("discard", "5", "--reason", "x", "--program", "shop-payments", "--i-know"), "discarded")
}

func TestAPlanOfAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	plan := d.file("plan.jsonl")
	d.ok("plan", "--file", plan)
	shop := testProgram()
	shop.Name = "shop-payments"
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"deadletter", "apply", plan}, system{program: shop, environ: environOf(d.settings), stdout: &out, stderr: &errs})
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs.String(), "orderworker deadletter apply")
}

func TestAMessageWithoutAProgramBesideThoseOfAnotherIsAskedAbout(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buryOf("shop-payments", "pay-4", `{"amount":5}`)
	code, stdout, _ := d.run("reprocess", "2", "--reason", "x")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stdout, "--accept-unknown-program")
	require.Contains(t, d.ok("reprocess", "2", "--reason", "x", "--accept-unknown-program"), "applied")
}

func TestSettingsThatDifferFromTheWorkersAreSaid(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.buryOf("orderworker", "m5", `{"amount":5}`)
	for name, value := range map[string]string{"WORKER_CONSUMER": "billing", "WORKER_KEY": "property:x"} {
		d.settings[name] = value
		require.Contains(t, d.ok("list", "--from-sequence", "5"), "other-settings", name)
		require.NotContains(t, d.ok("plan"), `"sequence":5`)
		code, stdout, _ := d.run("reprocess", "5", "--reason", "x")
		require.Equal(t, exitFailure, code)
		require.Contains(t, stdout, "document id m5")
		delete(d.settings, name)
	}
	require.Contains(t, d.ok("reprocess", "5", "--reason", "x"), "applied")
}
