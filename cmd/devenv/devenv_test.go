package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
)

// roleVariable makes this test program behave like a worker of a certain kind, see TestMain.
const roleVariable = "TEST_ROLE"

// TestMain lets the test program play workers that are not what they should be.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "broken":
		os.Stderr.WriteString("SERVICEBUS_QUEUE: it is Monday\n")
		os.Exit(2)
	case "careless":
		careless()
	}
}

// careless is a worker that completes whatever it gets and stores nothing.
func careless() {
	client, err := azservicebus.NewClientFromConnectionString(os.Getenv("SERVICEBUS_CONNECTION_STRING"), nil)
	if err != nil {
		os.Exit(1)
	}
	receiver, err := client.NewReceiverForQueue(os.Getenv("SERVICEBUS_QUEUE"), nil)
	if err != nil {
		os.Exit(1)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { <-stop; os.Exit(0) }()
	os.Stderr.WriteString("ready\n")
	for {
		messages, _ := receiver.ReceiveMessages(context.Background(), 10, nil)
		for _, m := range messages {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = receiver.CompleteMessage(ctx, m, nil)
			cancel()
		}
	}
}

// output collects what a command writes, from several goroutines.
type output struct {
	w *os.File
}

func (o output) String() string {
	text, err := os.ReadFile(o.w.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// call runs a command line like main, and returns its exit code and what it wrote.
func call(t *testing.T, ctx context.Context, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	var errs bytes.Buffer
	code = run(ctx, args, system{environ: environ, stdout: out, stderr: &errs})
	return code, output{out}.String(), errs.String()
}

// withWorkers builds the workers' programs as they are, and returns the arguments with them.
func withWorkers(t *testing.T, args ...string) []string {
	t.Helper()
	folder := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", folder+string(filepath.Separator), "../orderworker", "../shop").CombinedOutput()
	require.NoError(t, err, string(out))
	return append(args, "--worker", filepath.Join(folder, "orderworker"), "--shop", filepath.Join(folder, "shop"))
}

// playing are arguments with which this test program plays both workers.
func playing(args ...string) []string {
	return append(args, "--worker", os.Args[0], "--shop", os.Args[0])
}

func TestTheDemonstrationShowsWhatBecomesOfEachOrder(t *testing.T) {
	// Variables that point somewhere else do not mislead the worker.
	environ := append(os.Environ(), "SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "WORKER_NONSENSE=1")
	code, out, errs := call(t, t.Context(), environ, withWorkers(t, "demo")...)
	require.Zero(t, code, "%s\n%s", out, errs)
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"1001 new order committed, completed: the id was new: created",
		"committed, completed: the order and its 3 lines were created",
		"dead-lettered as NotJSON",
		"1001 again, the same bytes completed, nothing written: already stored, with the same hash",
		"ContentConflict",
		"They differ at /amount",
		"delivery 1 committed and its worker",
		"2001 payment of bill 1 committed, completed",
		"2001 again completed, nothing written",
		"dead-lettered as AlreadyPaid: another message has paid it",
		"dead-lettered as InsufficientFunds: the balance is 40 and the debit 60",
		"version 1 of the projection committed, completed: stale",
		"promises hold over the",
	} {
		require.Contains(t, flat, want)
	}
	require.NotContains(t, out, "WRONG")
}

func TestTortureOfTheRealWorkerKeepsEveryPromise(t *testing.T) {
	code, out, errs := call(t, t.Context(), os.Environ(), withWorkers(t, "torture", "--minutes", "0.1", "--seed", "1")...)
	require.Zero(t, code, "%s\n%s", out, errs)
	require.Regexp(t, regexp.MustCompile(`workers\s+\d+  [1-9]\d* killed`), out)
	require.Regexp(t, regexp.MustCompile(`faults\s+[1-9]`), out)
	require.Regexp(t, regexp.MustCompile(`[1-9]\d*  +0  A document is changed in one transaction with the record`), out)
	require.Contains(t, out, "Every promise was kept. Seed 1.")
}

func TestTortureFindsACarelessWorker(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	environ := append(os.Environ(), roleVariable+"=careless")
	code, out, errs := call(t, t.Context(), environ, playing("torture", "--minutes", "0.02", "--seed", "1")...)
	require.Equal(t, exitFailure, code)
	require.Contains(t, errs, "broken promise", out)
	require.Contains(t, errs, "Repeat with: devenv torture --minutes 0.02 --seed 1")
	kept := regexp.MustCompile(`the history is in (\S+)`).FindStringSubmatch(errs)
	require.NotEmpty(t, kept, errs)
	require.FileExists(t, kept[1])
}

func TestAWorkerThatDoesNotStartIsReportedWithItsOwnWords(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	environ := append(os.Environ(), roleVariable+"=broken")
	for _, command := range [][]string{{"demo"}, {"torture", "--minutes", "0.1"}} {
		code, _, errs := call(t, t.Context(), environ, playing(command...)...)
		require.Equal(t, exitFailure, code, command)
		require.Contains(t, errs, "it is Monday", command)
	}
}

// interrupting is a person who ends the program as soon as a word is shown.
type interrupting struct {
	io.Writer
	at   string
	stop context.CancelFunc
}

func (w interrupting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.at) {
		w.stop()
	}
	return w.Writer.Write(p)
}

func TestAnInterruptedDemonstrationLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	ctx, stop := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	environ := append(os.Environ(), roleVariable+"=careless")
	code := run(ctx, playing("demo"), system{environ: environ, stdout: interrupting{&out, "Worker 1 starts", stop}, stderr: &errs})
	require.Equal(t, exitFailure, code)
	require.Contains(t, errs.String(), "interrupted")
	require.NotContains(t, out.String(), "The logs of the workers")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheEnvironmentServesUntilItIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	o := serveOptions{host: "127.0.0.1", noDuplicate: true, lock: 7 * time.Second, deliveries: 4, historyFile: filepath.Join(t.TempDir(), "history.jsonl")}
	done := make(chan error, 1)
	errs, err := os.Create(filepath.Join(t.TempDir(), "errs"))
	require.NoError(t, err)
	defer errs.Close()
	go func() { done <- serve(ctx, o, testenv.Addresses{}, system{stdout: out, stderr: errs}) }()
	require.Eventually(t, func() bool { return strings.Contains(output{out}.String(), "/queues\n") }, 10*time.Second, 10*time.Millisecond)
	text := output{out}.String()
	require.Contains(t, text, "queue orders: lock 7s, 4 deliveries, no duplicate detection")

	settings := exports(text)
	client, err := azservicebus.NewClientFromConnectionString(settings["SERVICEBUS_CONNECTION_STRING"], nil)
	require.NoError(t, err)
	defer client.Close(context.Background())
	sender, err := client.NewSender(settings["SERVICEBUS_QUEUE"], nil)
	require.NoError(t, err)
	require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("{}")}, nil))

	// What is refused shows on the terminal, once.
	for range 2 {
		nc, err := net.Dial("tcp", strings.TrimPrefix(servicebusAddress.FindString(text), "sb://"))
		require.NoError(t, err)
		_, err = nc.Write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01"))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, nc) // until the broker hangs up
		require.NoError(t, nc.Close())
	}
	require.Eventually(t, func() bool {
		return strings.Contains(output{errs}.String(), "not implemented, and refused: Service Bus: TLS")
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, strings.Count(output{errs}.String(), "refused: Service Bus: TLS"))

	taken := testenv.Addresses{Cosmos: strings.TrimPrefix(settings["COSMOS_ENDPOINT"], "http://")}
	err = serve(ctx, serveOptions{}, taken, system{stdout: out})
	require.ErrorContains(t, err, "Cosmos DB cannot listen on "+taken.Cosmos+": another program does already")
	require.ErrorContains(t, err, "--port-offset")

	cancel()
	require.NoError(t, <-done)
	events, err := os.ReadFile(o.historyFile)
	require.NoError(t, err)
	require.Contains(t, string(events), `"op":"servicebus.send"`)
}

var servicebusAddress = regexp.MustCompile(`sb://[0-9.:]+`)

func TestRefusalsArePrintedOnceAndNotWithoutEnd(t *testing.T) {
	var out writer
	r := &refusals{out: &out, told: map[string]bool{}}
	for i := range 3 * maxRefusals {
		r.tell("Cosmos DB", fmt.Sprint("JOIN ", i/2))
	}
	require.Equal(t, maxRefusals+1, strings.Count(string(out), "\n"))
	require.Contains(t, string(out), "not implemented, and refused: Cosmos DB: JOIN 0\n")
	require.Contains(t, string(out), "further refusals are not printed")
}

func TestThePortsAreThoseOfTheOfficialEmulators(t *testing.T) {
	at, err := serveOptions{host: "127.0.0.1"}.addresses()
	require.NoError(t, err)
	require.Equal(t, testenv.Addresses{AMQP: "127.0.0.1:5672", Management: "127.0.0.1:5300", Cosmos: "127.0.0.1:8081"}, at)
	at, err = serveOptions{host: "::1", portOffset: 1000}.addresses()
	require.NoError(t, err)
	require.Equal(t, testenv.Addresses{AMQP: "[::1]:6672", Management: "[::1]:6300", Cosmos: "[::1]:9081"}, at)
}

// exports reads what the environment tells people to paste.
func exports(text string) map[string]string {
	values := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^export (\w+)='(.*)'$`).FindAllStringSubmatch(text, -1) {
		values[m[1]] = m[2]
	}
	return values
}

func TestAWrongCommandLineIsExplained(t *testing.T) {
	empty := t.TempDir()
	wrong := filepath.Join(empty, "wrong.json")
	require.NoError(t, os.WriteFile(wrong, []byte(`{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[]}]}}`), 0o600))
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"an unknown command", []string{"tortuer"}, exitUsage, `no argument "tortuer"`},
		{"an unknown flag", []string{"demo", "--fast"}, exitUsage, "See devenv demo --help"},
		{"an argument too many", []string{"demo", "now"}, exitUsage, `no argument "now"`},
		{"a port that does not exist", []string{"--port-offset", "60000"}, exitUsage, "from 0 to 57454"},
		{"a configuration that is not there", []string{"--config", filepath.Join(empty, "none.json")}, exitUsage, "--config"},
		{"a configuration without a queue", []string{"--config", wrong}, exitUsage, "queue"},
		{"a queue that does not exist", []string{"--queue", "invoices"}, exitUsage, `no queue "invoices"`},
		{"a lock that no queue can have", []string{"--lock-duration", "1h"}, exitUsage, "LockDuration"},
		{"a worker that is not there", []string{"demo", "--worker", filepath.Join(empty, "none")}, exitFailure, "--worker"},
		{"a worker that is a folder", []string{"demo", "--worker", empty}, exitFailure, "is a folder"},
		{"a worker that was not built", []string{"torture"}, exitFailure, "make build"},
		{"no time", []string{"torture", "--minutes", "0"}, exitUsage, "--minutes"},
		{"no workers", []string{"torture", "--workers", "0"}, exitUsage, "--workers"},
		{"no messages", []string{"torture", "--rate", "0"}, exitUsage, "--rate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, _, errs := call(t, t.Context(), nil, tt.args...)
			require.Equal(t, tt.code, code, errs)
			require.Contains(t, errs, tt.want)
			require.True(t, strings.HasPrefix(errs, "devenv: "))
		})
	}
}

func TestQuoteMakesOneWordForAShell(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quote(`a'b;c $HOME "d"`)).Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("there is no sh on this machine")
	}
	require.NoError(t, err)
	require.Equal(t, `a'b;c $HOME "d"`, string(out))
}

func TestWorkerEnvironmentKeepsWhatDoesNotMislead(t *testing.T) {
	got := workerEnvironment([]string{"PATH=/bin", "COSMOS_KEY=x", "AZURE_CLIENT_ID=y", "OTEL_SERVICE_NAME=z", "HOME=/"}, []string{"COSMOS_KEY=own"})
	require.Equal(t, []string{"PATH=/bin", "HOME=/", "COSMOS_KEY=own"}, got)
}
