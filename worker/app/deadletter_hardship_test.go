package app

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	plans "github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/worker"
)

func TestAFaultOfThisMachineIsNotTakenForOneOfTheBroker(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	missing := d.file("missing") + "/file"
	for name, args := range map[string][]string{
		"a plan for no folder":    {"plan", "--file", missing},
		"an export to no folder":  {"export", "--file", missing},
		"an archive in no folder": {"discard", "1", "--reason", "x", "--archive", missing},
		"a page on a port in use": {"serve", "--address", l.Addr().String()},
		"a page on no port":       {"serve", "--address", "127.0.0.1:99999"},
	} {
		code, _, stderr := d.run(args...)
		require.Equal(t, exitFailure, code, "%s: %s", name, stderr)
		require.NotContains(t, stderr, "broker", name)
		require.NotContains(t, stderr, "devenv", name)
	}
	require.Equal(t, 4, dead(t, d.env), "nothing was removed")
}

func TestAPlanForAReasonThatIsTheWhyOfAnActionSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	code, _, stderr := d.run("plan", "--file", d.file("plan"), "--reason", "ticket 4711")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stderr, "dead-lettered for the reason ticket 4711")
	require.Contains(t, stderr, "why it is done is for apply")
}

func TestAStoreThatDoesNotAnswerIsNotTakenForTheBroker(t *testing.T) {
	t.Parallel()
	r := &review{config: config{connectionString: "Endpoint=sb://127.0.0.1:1"}}
	err := r.explain(&worker.UnavailableError{Cause: context.DeadlineExceeded})
	require.ErrorContains(t, err, "store unavailable")
	require.NotContains(t, err.Error(), "broker")
}

func TestValuesThatWouldSelectOrAllowMoreThanMeantAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, says string
		args       []string
	}{
		{"an empty MessageId of a script", "--message-id is empty", []string{"plan", "--action", "discard", "--accept-warning", "--message-id", ""}},
		{"an empty reason", "--reason is empty", []string{"export", "--reason", ""}},
		{"an empty verdict", "--verdict is empty", []string{"list", "--verdict", ""}},
		{"an empty time", "--older-than is empty", []string{"list", "--older-than", ""}},
		{"an empty MessageId of the log", "--message-id is empty", []string{"log", "--message-id", ""}},
		{"a time in the future", "lies in the future. Give how long ago", []string{"list", "--older-than=-5h"}},
		{"a log of the future", "lies in the future", []string{"log", "--since=-5h"}},
		{"less than one step", "--max -3 is less than nothing. Give zero or more", []string{"plan", "--max", "-3"}},
		{"less than one message", "--limit -1", []string{"list", "--limit", "-1"}},
		{"less than no body", "--body -5", []string{"show", "1", "--body", "-5"}},
		{"less than no failure", "--max-failures -1", []string{"apply", "plan", "--max-failures", "-1"}},
		{"a rate that is no number", "is not a number a second", []string{"apply", "plan", "--rate", "nan"}},
		{"a rate of nearly nothing", "is not a number a second", []string{"apply", "plan", "--rate", "1e-300"}},
		{"a reason as long as a book", "more than 500 characters", []string{"reprocess", "1", "--reason", strings.Repeat("é", 501)}},
		{"numbers and a selection", "Give one of the two", []string{"export", "1", "--verdict", "conflict"}},
		{"no reason to act", "--reason is missing", []string{"reprocess", "1", "--reason", ""}},
	} {
		code, stdout, stderr := execute(t, nil, "", append([]string{"deadletter"}, tt.args...)...)
		require.Equal(t, exitUsage, code, "%s: %s", tt.name, stderr)
		require.Contains(t, stderr, tt.says, tt.name)
		require.Empty(t, stdout, tt.name)
	}
}

func TestAListThatFailsIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	code, stdout, _ := d.run("list", "-o", "json", "--queue", "nosuch")
	require.Equal(t, exitFailure, code)
	require.Empty(t, stdout)
}

func TestAnImportWaitsForAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env.Faults.Add(plans.On("cosmosdb.create").Times(6).Before(plans.Reply(503, 0)))
	code, stdout, stderr := d.runWith(`{"message_id":"i1","body":{"amount":2}}`+"\n", "import", "-", "--execute", "--reason", "ticket 9")
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, "0  i1  reprocess applied (never-applied)\n", stdout)
}

// It is not parallel, since every test that waits for a signal would get this one.
func TestAFileThatIsNotWholeIsRemovedAtASignal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "plan.jsonl")
	ctx, release := interruptible(t.Context())
	defer release()
	err := writeFile(name, io.Discard, func(out io.Writer) error {
		_, err := io.WriteString(out, "half")
		require.NoError(t, err)
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(os.Interrupt))
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorContains(t, err, "interrupted")
	require.NoFileExists(t, name)
}

func TestProgressFitsOnOneLineOfATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := &meter{out: &out, terminal: true, width: func() int { return 10 }}
	m.show("12 of 4300: 12 applied")
	require.Equal(t, "\r\x1b[K12 of 43…", out.String())
}

func TestAPauseIsShownAndNothingElse(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := &meter{out: &out}
	m.pause("")
	require.Empty(t, out.String())
	m.pause("the store cannot be used now")
	require.Equal(t, "the store cannot be used now\n", out.String())
}

func TestAListSaysWhyTheStoreGaveNoAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	table := d.ok("list", "--container", "nosuch")
	require.Contains(t, table, "4 dead letters: 1 unreadable, 3 undecided\nundecided because of this: ")
	require.Contains(t, table, "404")
	require.NotContains(t, d.ok("list"), "because")
}

func TestAPlanOfWhichSomethingIsNoLongerTrueEndsWithWhatWasLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	plan := d.file("plan.jsonl")
	d.ok("plan", "--file", plan)
	code, _, stderr := d.runWith(`{"message_id":"m2","body":{"amount":2}}`+"\n", "import", "-", "--execute", "--reason", "another version")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, d.ok("apply", plan), "skipped", "saying so is no failure")
	code, stdout, stderr := d.run("apply", plan, "--execute", "--reason", "ticket 8")
	require.Equal(t, exitFailure, code)
	require.Regexp(t, `1 +discarded\n1 +skipped`, stdout)
	require.Contains(t, stderr, "1 left as they were")
	require.Equal(t, 3, dead(t, d.env))
}

func TestTheFilesToKeepWhatIsDiscardedInHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, describePlan(&out, "orderworker", deadletter.PlanSummary{Seen: 2, Steps: 2, Counts: []deadletter.PlanCount{
		{Verdict: deadletter.Conflict, Action: deadletter.Discard, Count: 1}, {Verdict: deadletter.Unreadable, Action: deadletter.Discard, Count: 1},
	}}, ""))
	require.Contains(t, out.String(), "--verdict conflict --file kept-conflict.jsonl")
	require.Contains(t, out.String(), "--verdict unreadable --file kept-unreadable.jsonl")
}
