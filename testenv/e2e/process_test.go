package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// processLock is the shortest lock that the worker takes: what a killed process held comes back after it, in real time.
const processLock = 5 * time.Second

// patience bounds every wait for a real process. Only a failure takes so long.
const patience = time.Minute

// TestARealWorkerIsKilledAndAnotherCarriesOn kills the program itself, as it is shipped, with SIGKILL over real sockets: one
// process after the other at another point, each over a message of its own, and at the end one that lives.
func TestARealWorkerIsKilledAndAnotherCarriesOn(t *testing.T) {
	program := build(t)
	const plain, lined, other = `{"amount":40}`, `{"amount":40,"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"amount":41}`
	deaths := []struct {
		when   string
		stored bool // under this id, with the plain body, before the worker dies
		id     string
		body   string
		rule   func(kill fault.Action) *fault.Rule
	}{
		{when: "before it has done anything", id: "1", body: plain, rule: func(k fault.Action) *fault.Rule { return fault.On(history.Lock).After(k) }},
		{when: "before its document is created", id: "2", body: plain, rule: func(k fault.Action) *fault.Rule { return fault.On(history.CreateDocument).Before(lost(k)) }},
		{when: "between commit and complete", id: "3", body: plain, rule: func(k fault.Action) *fault.Rule { return fault.On(history.CreateDocument).After(k) }},
		{when: "between commit and complete of an order with lines", id: "4", body: lined, rule: func(k fault.Action) *fault.Rule { return fault.On(history.ExecuteBatch).After(k) }},
		{when: "before its complete has an effect", id: "5", body: plain, rule: func(k fault.Action) *fault.Rule { return fault.On(history.Complete).Before(lost(k)) }},
		{when: "after its complete had an effect", id: "6", body: plain, rule: func(k fault.Action) *fault.Rule { return fault.On(history.Complete).After(k) }},
		{when: "while it compares a conflict", stored: true, id: "7", body: other, rule: func(k fault.Action) *fault.Rule { return fault.On(history.ReadDocument).After(k) }},
		{when: "before its dead-lettering has an effect", stored: true, id: "8", body: other, rule: func(k fault.Action) *fault.Rule { return fault.On(history.DeadLetter).Before(lost(k)) }},
	}
	w := newSocketEnv(t)
	for _, d := range deaths {
		doomed := w.run(program)
		if d.stored {
			w.send(order(d.id, plain))
			w.until("the first order to be stored", func() bool { return w.count(history.Complete, d.id, true) == 1 })
		}
		w.Faults.Add(d.rule(fault.Call(doomed.kill)).Key(d.id))
		w.send(order(d.id, d.body))
		w.await(doomed.done)
		require.Equal(t, "signal: killed", doomed.err.Error(), "%s: %s", d.when, &doomed.log)
	}
	w.run(program)
	w.drained()
	w.close()
}

// lost makes the request get lost too.
func lost(kill fault.Action) fault.Action {
	kill.Kind = fault.Drop
	return kill
}

func TestARealWorkerGivesBackWhatItCannotFinish(t *testing.T) {
	program := build(t)
	w := newSocketEnv(t)
	// The store holds every create for longer than the worker may take to stop.
	first := w.run(program)
	for _, id := range []string{"1", "2", "3", "4"} {
		w.Faults.Add(fault.On(history.CreateDocument).Key(id).Before(fault.Reply(503, 0)), fault.On(history.CreateDocument).Key(id).Times(8).Before(fault.Wait(10*time.Second)))
		w.send(order(id, `{"amount":40}`))
	}
	w.until("the worker to hold one, for it has proven nothing yet", func() bool { return w.counts().Locked == 1 })
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	w.await(first.done)
	require.NoError(t, first.err, "a worker that is asked to stop ends with exit code 0: %s", &first.log)
	require.Zero(t, w.counts().Locked, "no lock is left behind, so another worker has the messages at once")
	w.Faults.Clear()
	w.run(program)
	w.drained()
	w.close()
}

// build builds the worker's program as it is shipped.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "orderworker")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/orderworker").CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// socketEnv is an environment outside of bubbles, on loopback sockets.
type socketEnv struct {
	*env
	processes []*process
}

func newSocketEnv(t *testing.T) *socketEnv {
	t.Helper()
	w := &socketEnv{env: newEnv(t, testenv.Options{Adjust: func(q *servicebus.Queue) { q.LockDuration = processLock }})}
	_, err := w.Serve(context.Background(), testenv.Addresses{})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, p := range w.processes {
			p.kill()
		}
		require.NoError(t, w.Env.Close())
	})
	return w
}

// process is a running worker program.
type process struct {
	cmd  *exec.Cmd
	log  bytes.Buffer // may be read when done is closed
	done chan struct{}
	err  error
	once sync.Once
}

// run starts the program with the variables that it has in Azure.
func (w *socketEnv) run(program string) *process {
	w.t.Helper()
	p := &process{cmd: exec.Command(program, "run"), done: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "WORKER_HEALTH_ADDRESS=off", "WORKER_DRAIN_TIMEOUT=1s", "WORKER_LOCK_DURATION=" + processLock.String()}, w.Environ()...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	require.NoError(w.t, p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	w.processes = append(w.processes, p)
	return p
}

// kill is SIGKILL. It returns when the process is gone, so that nothing that is answered afterwards reaches it.
func (p *process) kill() {
	p.once.Do(func() { _ = p.cmd.Process.Kill() })
	<-p.done
}

func (w *socketEnv) alive() int {
	n := 0
	for _, p := range w.processes {
		select {
		case <-p.done:
		default:
			n++
		}
	}
	return n
}

func (w *socketEnv) counts() servicebus.Counts {
	w.t.Helper()
	c, err := w.Broker.Counts(w.Queue.Name)
	require.NoError(w.t, err)
	return c
}

func (w *socketEnv) drained() {
	w.t.Helper()
	w.until("the queue to be empty", func() bool { c := w.counts(); return c.Total() == c.DeadLettered })
}

// until waits in real time.
func (w *socketEnv) until(what string, holds func() bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			require.Fail(w.t, "waited too long for "+what)
		}
	}
}

func (w *socketEnv) await(done <-chan struct{}) {
	w.t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(w.t, "the process did not end")
	}
}

// close stops the workers that are left, and checks. A process that has just started would not hear the signal yet.
func (w *socketEnv) close() {
	w.t.Helper()
	w.until("the workers to receive", func() bool {
		n, err := w.Broker.Links(w.Queue.Name, servicebus.Receivers)
		require.NoError(w.t, err)
		return n == w.alive()
	})
	for _, p := range w.processes {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err == nil {
			w.await(p.done)
			require.NoError(w.t, p.err, "a worker that is asked to stop ends with exit code 0: %s", &p.log)
		}
	}
	require.NoError(w.t, w.check())
}
