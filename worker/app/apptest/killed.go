package apptest

import (
	"os"
	"os/exec"
	"sync"

	"github.com/orderworker/orderworker/worker/app"
)

// roleVariable makes a test binary the program that it tests.
const roleVariable = "APPTEST_PROGRAM"

// Main is for TestMain: it lets the test binary be the program when [Env.Spawn] has started it, and runs the tests otherwise.
func Main(m interface{ Run() int }, p app.Program) {
	if os.Getenv(roleVariable) != "" {
		app.Main(p)
	}
	os.Exit(m.Run())
}

// A Child is the program at work in a process of its own. It can be killed.
type Child struct {
	cmd  *exec.Cmd
	kill sync.Once
	done chan struct{}
}

// Spawn starts the worker of the program that TestMain gave to [Main]. It is killed at the end of the test.
func (e *Env) Spawn() *Child {
	e.t.Helper()
	c := &Child{cmd: exec.Command(os.Args[0], "run"), done: make(chan struct{})}
	c.cmd.Env = append(append(os.Environ(), roleVariable+"=1"), e.environ...)
	if err := c.cmd.Start(); err != nil {
		e.t.Fatalf("apptest: %v", err)
		return nil
	}
	go func() {
		defer close(c.done)
		_ = c.cmd.Wait() // it is killed
	}()
	e.t.Cleanup(func() {
		c.Kill()
		<-c.done
	})
	return c
}

// Kill kills the process as SIGKILL does. It does not wait, so that a fault of the environment can call it.
func (c *Child) Kill() {
	c.kill.Do(func() { _ = c.cmd.Process.Kill() }) // the only error is that it has ended
}

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }
