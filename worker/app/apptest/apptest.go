// Package apptest runs a program of package app in a test, with its own command lines and settings, against the embedded
// environment over loopback sockets.
//
//	func TestMain(m *testing.M) { apptest.Main(m, program()) }
//
//	func TestPaymentsAreBookedOnce(t *testing.T) {
//		env := apptest.Start(t, nil, "WORKER_PARTITION=property:orderId")
//		worker := env.Work(program())
//		env.Send("pay-1", `{"amount":40}`)
//		env.WaitUntilSettled(time.Minute)
//		summary := worker.Stop()
//	}
//
// To test a handler without the program around it, see package workertest.
package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/worker/app"
	"github.com/orderworker/orderworker/worker/workertest"
)

// Env is an embedded environment for programs. Make one with [Start]. Its methods belong to the goroutine of the test.
type Env struct {
	*workertest.Env
	t       workertest.TB
	environ []string
}

// Start makes an environment that ends with the test. Adjust may be nil. Every program gets the settings, each NAME=value,
// beside those with which it finds the environment.
func Start(t workertest.TB, adjust func(*testenv.Options), settings ...string) *Env {
	t.Helper()
	if adjust == nil {
		adjust = func(*testenv.Options) {}
	}
	e := &Env{Env: workertest.Start(t, adjust), t: t}
	if _, err := e.Services.Serve(t.Context(), testenv.Addresses{}); err != nil {
		t.Fatalf("apptest: %v", err)
	}
	e.environ = append(e.Services.Environ(), "WORKER_HEALTH_ADDRESS=off", "WORKER_RETRY_SPREAD=1s")
	e.environ = append(e.environ, settings...)
	return e
}

// Put stores a document of another program, whole, with its partition key.
func (e *Env) Put(document string) {
	e.t.Helper()
	if err := e.Services.Account.Seed(e.Services.Database, e.Services.Container, document); err != nil {
		e.t.Fatalf("apptest: put: %v", err)
	}
}

// Document decodes a stored document into v.
func (e *Env) Document(id string, v any) {
	e.t.Helper()
	d, found := e.Services.Account.Document(e.Services.Database, e.Services.Container, id)
	if !found {
		e.t.Fatalf("apptest: document %q is not stored. Stored are %v", id, e.Services.Stored())
		return
	}
	if err := json.Unmarshal([]byte(d.Body), v); err != nil {
		e.t.Fatalf("apptest: document %q: %v", id, err)
	}
}

// Run executes one command line of a program, which must succeed, and returns its output.
func (e *Env) Run(p app.Program, args ...string) string {
	e.t.Helper()
	code, stdout, stderr := e.Command(p, "", args...)
	if code != 0 {
		e.t.Fatalf("apptest: %v exited with %d\n%s\n%s", args, code, stdout, stderr)
	}
	return stdout
}

// Command executes one command line of a program with a standard input, and returns its exit code and its outputs.
func (e *Env) Command(p app.Program, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	process := e.process(args, &out, &errs)
	process.Stdin = strings.NewReader(stdin)
	code = app.Run(e.t.Context(), p, process)
	return code, out.String(), errs.String()
}

func (e *Env) process(args []string, stdout, stderr *bytes.Buffer) app.Process {
	return app.Process{Args: args, Environ: slices.Clone(e.environ), Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr}
}

// A Worker is a program at work in the process of the test.
type Worker struct {
	t              workertest.TB
	cancel         context.CancelFunc
	stdout, stderr bytes.Buffer
	ended          chan int
	stopped        bool
}

// Work starts the worker of a program, with further flags. It ends with the test, or with [Worker.Stop].
func (e *Env) Work(p app.Program, flags ...string) *Worker {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.t.Context()))
	w := &Worker{t: e.t, cancel: cancel, ended: make(chan int, 1)}
	process := e.process(append([]string{"run"}, flags...), &w.stdout, &w.stderr)
	go func() { w.ended <- app.Run(ctx, p, process) }()
	e.t.Cleanup(func() { w.Stop() })
	return w
}

// Stop stops the worker and returns the counts of its outcomes, by the names in its summary line, such as "created".
func (w *Worker) Stop() map[string]int {
	w.t.Helper()
	if w.cancel(); !w.stopped {
		w.stopped = true
		if code := <-w.ended; code != 0 {
			w.t.Errorf("apptest: the worker exited with %d\n%s\n%s", code, &w.stdout, &w.stderr)
		}
	}
	return counts(w.stdout.Bytes())
}

// counts adds up the summary lines of a log.
func counts(log []byte) map[string]int {
	total := map[string]int{}
	for line := range bytes.Lines(log) {
		var members map[string]any
		if json.Unmarshal(line, &members) != nil || members["event"] != "summary" {
			continue
		}
		for name, value := range members {
			if n, ok := value.(float64); ok {
				total[name] += int(n)
			}
		}
	}
	return total
}
