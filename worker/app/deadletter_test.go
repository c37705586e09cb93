package app

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// desk is an environment with dead letters, and a person with the commands.
type desk struct {
	t        *testing.T
	env      *testenv.Env
	settings map[string]string
	// archives leaves the default archive to discard and apply; else it is a file of the test.
	archives bool
}

// hostileText tries to be more than text in a terminal.
const hostileText = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u009b2J\x7f\U000e0041"

// newDesk buries four messages: 1 was applied, 2 was not, 3 is a conflict, and 4 cannot be read and is hostile.
func newDesk(t *testing.T) *desk {
	t.Helper()
	env, settings := serve(t, testenv.Options{Adjust: func(q *servicebus.Queue) {
		q.RequiresDuplicateDetection, q.DeadLetteringOnMessageExpiration, q.LockDuration = false, true, 5*time.Second
	}})
	settings["WORKER_DUPLICATE_DETECTION_WINDOW"], settings["WORKER_LOCK_DURATION"] = "0s", "5s"
	d := &desk{t: t, env: env, settings: settings}
	stored := `{"message_id":"m1","body":{"amount":40}}` + "\n" + `{"message_id":"m3","body":{"amount":40,"note":"a"}}` + "\n"
	code, _, stderr := d.runWith(stored, "import", "-", "--execute", "--reason", "set up")
	require.Equal(t, exitOK, code, stderr)
	d.bury("m1", `{"amount":4e1}`)
	d.bury("m2", `{"amount":1,"lines":[{"sku":"a"},{"sku":"b"}]}`)
	d.bury("m3", `{"amount":50}`)
	d.bury(hostileText, "no json "+hostileText)
	return d
}

// bury sends a message that has expired already.
func (d *desk) bury(id, body string) {
	d.t.Helper()
	d.buryWith(servicebus.Properties{MessageID: id}, body)
}

func (d *desk) buryWith(p servicebus.Properties, body string) {
	d.t.Helper()
	d.buryMessage(servicebus.Message{Properties: &p}, body)
}

func (d *desk) buryMessage(m servicebus.Message, body string) {
	d.t.Helper()
	before := dead(d.t, d.env)
	ttl := uint32(1)
	m.Header, m.BodyKind, m.Data = &servicebus.Header{TTL: &ttl}, servicebus.BodyData, [][]byte{[]byte(body)}
	_, err := d.env.Broker.Send("orders", m)
	require.NoError(d.t, err)
	for dead(d.t, d.env) == before {
		require.NoError(d.t, d.t.Context().Err())
	}
}

func (d *desk) run(args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	return d.runWith("", args...)
}

func (d *desk) runWith(stdin string, args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	discards := args[0] == "discard" || args[0] == "apply"
	if discards && !slices.Contains(args, "--archive") && !slices.Contains(args, "--no-archive") && !d.archives {
		args = append(args, "--archive", d.file("discarded.jsonl"))
	}
	return execute(d.t, environOf(d.settings), stdin, append([]string{"deadletter"}, args...)...)
}

func (d *desk) ok(args ...string) string {
	d.t.Helper()
	code, stdout, stderr := d.run(args...)
	require.Equal(d.t, exitOK, code, "%s\n%s", stdout, stderr)
	return stdout
}

func (d *desk) file(name string) string { return filepath.Join(d.t.TempDir(), name) }

func TestDeadLettersAreListedForPeopleForProgramsAndForSpreadsheets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	table := d.ok("list")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, lines, 6)
	require.Regexp(t, `^1 +already-applied +TTLExpiredException +\d+s +m1 +expired$`, lines[1])
	require.Regexp(t, `^2 +never-applied`, lines[2])
	require.Regexp(t, `^3 +conflict`, lines[3])
	require.Regexp(t, `^4 +unreadable`, lines[4])
	require.Equal(t, "4 dead letters: 1 never-applied, 1 already-applied, 1 conflict, 1 unreadable", lines[5])

	var messages []messageJSON
	require.NoError(t, json.Unmarshal([]byte(d.ok("list", "-o", "json", "--verdict", "conflict,never applied")), &messages))
	require.Len(t, messages, 2)
	require.Equal(t, deadletter.NeverApplied, messages[0].Verdict)
	require.Equal(t, "m2", messages[0].DocumentID)

	var groups []deadletter.Group
	require.NoError(t, json.Unmarshal([]byte(d.ok("list", "--group", "reason", "-o", "json")), &groups))
	require.Equal(t, "TTLExpiredException", groups[0].Name)
	require.Equal(t, 4, groups[0].Count)

	d.bury(`=HYPERLINK("http://evil")`, `{}`)
	rows, err := csv.NewReader(strings.NewReader(d.ok("list", "-o", "csv"))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, `'=HYPERLINK("http://evil")`, rows[5][1])
	require.Equal(t, 5, dead(t, d.env), "looking touches nothing")
}

func TestAnEmptyListIsStillAListForPrograms(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Equal(t, "[]\n", d.ok("list", "-o", "json", "--message-id", "nosuch"))
	_, _, stderr := d.run("list", "-o", "yaml")
	require.Contains(t, stderr, "neither table, json nor csv")
	require.Equal(t, "none of 4 dead letters match\n", d.ok("list", "--message-id", "nosuch"))
}

func TestWhatMessagesCarryDoesNothingToATerminal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, args := range [][]string{{"list"}, {"show", "4"}, {"list", "--group", "reason"}, {"discard", "4", "--reason", "x"}, {"plan"}, {"log"}, {"export", "4"}, {"list", "-o", "json"}, {"show", "4", "-o", "json"}, {"log", "-o", "json"}, {"list", "-o", "csv"}} {
		_, stdout, stderr := d.run(args...)
		require.NotRegexp(t, `[\x00-\x08\x0b-\x1f\x7f-\x{9f}]|\p{Cf}`, stdout+stderr, "%v", args)
	}
	require.Contains(t, d.ok("show", "4"), `\x1b[2J`)
	require.NotContains(t, d.ok("show", "4"), "forwarded from", "it lies where it was dead-lettered")
}

func TestShowSaysWhatItMeansAndWhatEachActionWouldDo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, want := range []string{"never-applied", "was not applied", "reprocess: Runs the worker's own steps", "resubmit is refused: Its time to live", "Warning: Nothing of this message is stored"} {
		require.Contains(t, d.ok("show", "2"), want)
	}
	require.Contains(t, d.ok("show", "3"), "    - 40\n    + 50")
	var one messageJSON
	require.NoError(t, json.Unmarshal([]byte(d.ok("show", "3", "-o", "json")), &one))
	require.Len(t, one.Differences, 2)
	require.Len(t, one.Offers, 3)
	code, _, stderr := d.run("show", "99")
	require.Equal(t, exitAbsent, code)
	require.Contains(t, stderr, "no dead letter 99")
}

func TestACompressedBodyIsShownAsTheWorkerReadsIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	_, err := z.Write([]byte(`{"amount":40}`))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	encoding := servicebus.Symbol("gzip")
	d.buryWith(servicebus.Properties{MessageID: "m5", ContentEncoding: &encoding}, compressed.String())
	require.Regexp(t, `Body \(data, \d+ bytes, as the worker reads it\)\n  {"amount":40}\n`, d.ok("show", "5"))
	require.Contains(t, d.ok("show", "5", "--body", "4"), "as the worker reads it, the beginning)\n  {\"am\n")
}

func TestDiffTellsByItsExitCode(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for sequence, want := range map[string]int{"1": exitOK, "2": exitAbsent, "3": exitDifferent, "4": exitAbsent} {
		code, stdout, stderr := d.run("diff", sequence)
		require.Equal(t, want, code, "%s: %s %s", sequence, stdout, stderr)
	}
	_, stdout, _ := d.run("diff", "3", "-o", "json")
	var changes []deadletter.Change
	require.NoError(t, json.Unmarshal([]byte(stdout), &changes))
	require.Equal(t, deadletter.Change{Path: "/amount", Kind: "changed", Stored: "40", Arrived: "50"}, changes[0])
}

func TestActingNeedsAReasonAndIsRecorded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	code, _, stderr := d.run("reprocess", "2")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--reason")
	require.Contains(t, d.ok("reprocess", "2", "--reason", "ticket 7", "--dry-run"), "would-act")
	require.Equal(t, 4, dead(t, d.env))
	require.Contains(t, d.ok("reprocess", "2", "--reason", "ticket 7", "--actor", "ann"), "2  m2  reprocess applied")
	require.Equal(t, 3, dead(t, d.env))
	require.Contains(t, d.env.Stored(), "m2~part.line-2", "the worker's own handler made the lines too")
	code, _, stderr = d.run("reprocess", "2", "--reason", "again")
	require.Equal(t, exitAbsent, code)
	require.Contains(t, stderr, "there is no dead letter 2 in orders")
	code, stdout, stderr := d.run("discard", "1", "2", "--reason", "again")
	require.Equal(t, exitFailure, code, "one of them is not there")
	require.Contains(t, stdout, "2    discard gone: The dead letter is not there")
	require.Contains(t, stderr, "1 of 2 not done")
	require.Equal(t, 2, dead(t, d.env))

	var entries []deadletter.Entry
	require.NoError(t, json.Unmarshal([]byte(d.ok("log", "--sequence", "2", "-o", "json")), &entries))
	require.Len(t, entries, 2)
	require.Equal(t, []any{deadletter.Done, "applied", "ann", "ticket 7", deadletter.NeverApplied, "m2"},
		[]any{entries[0].State, entries[0].Result, entries[0].Actor, entries[0].Why, entries[0].Verdict, entries[0].MessageID})
	require.Contains(t, d.ok("log"), "by ann: ticket 7")
	require.Contains(t, d.ok("log", "--message-id", "nosuch"), "nothing was done")
}

func TestWhatMakesNoSenseIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a conflict":             {[]string{"reprocess", "3", "--reason", "x"}, exitFailure, "come straight back"},
		"an unreadable one":      {[]string{"resubmit", "4", "--reason", "x"}, exitFailure, "cannot read"},
		"expired":                {[]string{"resubmit", "2", "--reason", "x"}, exitFailure, "new time to live"},
		"a loss":                 {[]string{"discard", "2", "--reason", "x"}, exitFailure, "lost for good"},
		"a time to live of none": {[]string{"resubmit", "2", "--reason", "x", "--ttl", "0s"}, exitUsage, "--ttl"},
		"no number":              {[]string{"discard", "x", "--reason", "x"}, exitUsage, "sequence number"},
		"nothing":                {[]string{"discard", "--reason", "x"}, exitUsage, "sequence numbers"},
		"a verdict that is none": {[]string{"list", "--verdict", "maybe"}, exitUsage, "never-applied"},
		"a group that is none":   {[]string{"list", "--group", "colour"}, exitUsage, "neither verdict nor reason"},
		"an age that is none":    {[]string{"list", "--older-than", "old"}, exitUsage, "--older-than"},
		"a form that is none":    {[]string{"list", "-o", "xml"}, exitUsage, "-o"},
		"no command":             {[]string{"explode"}, exitUsage, "explode"},
	} {
		code, stdout, stderr := d.run(tt.args...)
		require.Equal(t, tt.code, code, "%s: %s %s", name, stdout, stderr)
		require.Contains(t, stdout+stderr, tt.says, name)
	}
	require.Equal(t, 4, dead(t, d.env))
}

func TestResubmitIsCautiousWhenNobodySaysWhatTheQueueDetects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	args := []string{"resubmit", "2", "--ttl", "1h", "--reason", "x"}
	delete(d.settings, "WORKER_DUPLICATE_DETECTION_WINDOW")
	code, stdout, _ := d.run(args...)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stdout, "not known whether the queue detects duplicates")
	d.settings["WORKER_DUPLICATE_DETECTION_WINDOW"] = "10m"
	_, stdout, _ = d.run(args...)
	require.Contains(t, stdout, "Duplicate detection remembers this MessageId")
	d.settings["WORKER_DUPLICATE_DETECTION_WINDOW"] = "0s"
	require.Contains(t, d.ok(args...), "resubmitted")
	c, err := d.env.Broker.Counts("orders")
	require.NoError(t, err)
	require.Equal(t, 1, c.Active)
}

func TestWhatIsDiscardedIsKeptInAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	d := newDesk(t)
	d.archives = true
	code, _, stderr := d.run("discard", "3", "--reason", "agreed", "--accept-warning")
	require.Equal(t, exitOK, code, stderr)
	names, err := filepath.Glob("discarded-orderworker-*.jsonl")
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.Contains(t, stderr, "1 discarded dead letter(s) are kept in "+names[0])
	info, err := os.Stat(names[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	text, err := os.ReadFile(names[0])
	require.NoError(t, err)
	require.Contains(t, string(text), `"message_id":"m3"`)

	plan := d.file("plan.jsonl")
	d.ok("plan", "--file", plan)
	code, _, stderr = d.run("apply", plan, "--execute", "--reason", "agreed", "--archive", names[0])
	require.Equal(t, exitOK, code, stderr)
	text, err = os.ReadFile(names[0])
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(text, []byte("\n")), "it is appended, and what is reprocessed is no discard")
	require.Contains(t, string(text), `"message_id":"m1"`)

	code, _, stderr = d.run("discard", "4", "--reason", "agreed", "--accept-warning", "--no-archive")
	require.Equal(t, exitOK, code, stderr)
	require.NotContains(t, stderr, "kept in")
	names, err = filepath.Glob("*")
	require.NoError(t, err)
	require.Len(t, names, 1)
}

func TestAnArchiveHoldsOnlyWhatIsRemoved(t *testing.T) {
	t.Parallel()
	message := func(n int64) *deadletter.DeadLetter {
		l, err := deadletter.ImportLine([]byte(fmt.Sprintf(`{"message_id":"m%d","body":{"n":%d}}`, n, n)))
		require.NoError(t, err)
		l.Sequence = n
		return l
	}
	name := filepath.Join(t.TempDir(), "archive.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("before\n"), 0o600))
	a := &archive{name: name}
	for n := int64(1); n <= 4; n++ {
		require.NoError(t, a.Keep(message(n)))
	}
	a.Drop(2)
	a.Drop(4)
	require.NoError(t, a.Keep(message(4)), "it was tried again")
	writable, broken := a.file, errorOnWrite(t, name)
	a.file = broken
	require.Error(t, a.Keep(message(5)), "the disk takes no more")
	a.file = writable
	n, err := a.close()
	require.NoError(t, err)
	require.Equal(t, 3, n, "what could not be kept is not counted")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^before\n[^\n]*"m1"[^\n]*\n[^\n]*"m3"[^\n]*\n[^\n]*"m4"[^\n]*\n$`, string(text))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	fresh := &archive{name: filepath.Join(t.TempDir(), "fresh.jsonl")}
	require.NoError(t, fresh.Keep(message(1)))
	fresh.Drop(1)
	n, err = fresh.close()
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoFileExists(t, fresh.name)
}

// errorOnWrite opens a file that cannot be written to.
func errorOnWrite(t *testing.T, name string) *os.File {
	f, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestAPlanIsMadeLookedAtAndApplied(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	plan := d.file("plan.jsonl")
	code, _, stderr := d.run("plan", "--file", plan)
	require.Equal(t, exitOK, code)
	require.Contains(t, stderr, "2 of 4 dead letters are in the plan. Nothing was done.")
	code, _, stderr = d.run("plan", "--file", plan)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "exists already")
	require.Contains(t, d.ok("apply", plan), "Nothing was done")
	code, _, stderr = d.run("apply", plan, "--execute")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--reason")
	require.Equal(t, 4, dead(t, d.env))
	stdout := d.ok("apply", plan, "--execute", "--reason", "ticket 8", "--rate", "100/s")
	require.Regexp(t, `1 +applied\n1 +discarded`, stdout)
	require.Equal(t, 2, dead(t, d.env))
	require.Regexp(t, `2 +gone`, d.ok("apply", plan, "--execute", "--reason", "again"))
	require.Contains(t, d.ok("log"), "ticket 8")
}

func TestAPlanThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	plan := d.file("plan.jsonl")
	d.ok("plan", "--file", plan)
	text, err := os.ReadFile(plan)
	require.NoError(t, err)
	for name, tt := range map[string]struct{ text, says string }{
		"cut":           {string(text[:len(text)-40]), "not a whole plan"},
		"changed":       {strings.Replace(string(text), "reprocess", "discard", 1), "changed after it was made"},
		"another queue": {"", "made for queue"},
	} {
		changed, extra := d.file("changed.jsonl"), []string(nil)
		if tt.text == "" {
			tt.text, extra = string(text), []string{"--queue", "others"}
		}
		require.NoError(t, os.WriteFile(changed, []byte(tt.text), 0o600))
		code, _, stderr := d.run(append([]string{"apply", changed, "--execute", "--reason", "x"}, extra...)...)
		require.Equal(t, exitUsage, code, name)
		require.Contains(t, stderr, tt.says, name)
	}
	require.Equal(t, 4, dead(t, d.env))
}

func TestWhatIsExportedCanBeMendedAndImported(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := d.file("export.jsonl")
	d.ok("export", "--verdict", "never-applied,unreadable", "--file", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	code, stdout, _ := d.run("import", file)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stdout, "1 of 2 would be")
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &fields))
	fields["body"] = map[string]any{"amount": 9}
	fixed, err := json.Marshal(fields)
	require.NoError(t, err)
	code, stdout, stderr := d.runWith(lines[0]+"\n"+string(fixed)+"\n", "import", "-", "--execute", "--reason", "fixed by hand")
	require.Equal(t, exitOK, code, stdout+stderr)
	require.Contains(t, d.env.Stored(), "m2")
	require.Contains(t, d.ok("list", "--message-id", "m2"), "already-applied", "the dead letters stay, and their verdicts tell")
	code, _, stderr = d.runWith("{\"nosuch\":1}\n", "import", "-")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "nothing was done")
}

func TestWhatCannotBeReachedIsExplained(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	code, _, stderr := d.run("list", "--queue", "nosuch")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `queue "nosuch"`)
	require.NoError(t, d.env.Broker.SetRights("orders", servicebus.Send))
	code, _, stderr = d.run("list")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "Data Receiver")
	require.NoError(t, d.env.Broker.SetRights("orders", servicebus.Listen))
	code, stdout, _ := d.run("resubmit", "2", "--ttl", "1h", "--reason", "x")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stdout, "Send")
	require.Equal(t, 4, dead(t, d.env))
}

func TestThePageIsServedOnThisMachineUntilItIsStopped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"deadletter", "serve", "--address", "127.0.0.1:0"}, system{program: testProgram(), environ: environOf(d.settings), stdin: strings.NewReader(""), stdout: in, stderr: io.Discard})
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "looking only")
	address := strings.Fields(line[strings.Index(line, "http://"):])[0]
	resp, err := http.Get(address)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), "Dead letters of orders")
	stop()
	require.Equal(t, exitOK, <-code)
}

func TestAPageThatMayActLetsOneBrowserInByThePrintedAddress(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"deadletter", "serve", "--address", "127.0.0.1:0", "--write", "--actor", "ann"}, system{program: testProgram(), environ: environOf(d.settings), stdin: strings.NewReader(""), stdout: in, stderr: io.Discard})
	}()
	lines := bufio.NewScanner(out)
	next := func() string {
		require.True(t, lines.Scan())
		return lines.Text()[strings.Index(lines.Text(), "http://"):]
	}
	plain, entry := strings.Fields(next())[0], next()
	resp, err := http.Get(plain)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "another user of this machine")
	printed := make(chan string, 1)
	go func() { printed <- next() }()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	resp, err = (&http.Client{Jar: jar}).Get(entry)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NotEqual(t, entry, <-printed, "the address for the next browser")
	resp, err = http.Get(entry)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "it works once")
	stop()
	require.Equal(t, exitOK, <-code)
}

func TestThePageIsNotServedToStrangers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, args := range map[string][]string{
		"every address":          {"--address", ":8090"},
		"another machine":        {"--address", "10.0.0.1:8090"},
		"a proxy without a name": {"--address", ":8090", "--behind-proxy"},
		"a proxy and an actor":   {"--behind-proxy", "--host", "a.test", "--actor", "ann"},
		"no address":             {"--address", "here"},
	} {
		code, _, stderr := d.run(append([]string{"serve"}, args...)...)
		require.Equal(t, exitUsage, code, "%s: %s", name, stderr)
	}
}
