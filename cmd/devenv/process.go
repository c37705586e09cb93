package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// patience is how long a worker may take to end after SIGTERM: a little more than its drain timeout.
const patience = 20 * time.Second

// process is a running worker, a process of its own. Its methods may be called concurrently.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   *os.File
	term  context.CancelFunc // sends SIGTERM, and SIGKILL after patience
	asked atomic.Bool        // somebody asked it to end
	done  chan struct{}      // closed when it has ended; err may be read then
	err   error
}

// start runs a program with its output in a new file.
func start(name, path string, env []string, logFile string, args ...string) (*process, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	ctx, term := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	apart(cmd)
	if err := cmd.Start(); err != nil {
		term()
		return nil, errors.Join(fmt.Errorf("%s did not start: %w", name, err), log.Close())
	}
	p := &process{name: name, cmd: cmd, log: log, term: term, done: make(chan struct{})}
	go func() {
		if p.err = cmd.Wait(); errors.Is(p.err, context.Canceled) {
			p.err = nil // it ended well after SIGTERM
		}
		_ = log.Close() // the process wrote it, not we
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process at once, as SIGKILL does, and returns when it is gone.
func (p *process) kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Kill() // an error means that it has ended by itself
	<-p.done
}

// stop asks the process to end, as a platform does with SIGTERM, and kills it when it takes longer than patience. It returns
// nil when the process ended with exit code 0.
func (p *process) stop() error {
	p.asked.Store(true)
	p.awaitFirstWord()
	p.term()
	<-p.done
	if p.err != nil {
		return fmt.Errorf("%s was asked to end and ended within %v with %w", p.name, patience, p.err)
	}
	return nil
}

// awaitFirstWord returns when the process has logged something or has ended, or after a limit. A signal that arrives before
// the process listens for it would end it like SIGKILL.
func (p *process) awaitFirstWord() {
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		if info, err := p.log.Stat(); err != nil || info.Size() > 0 {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-p.done:
			return
		}
	}
}

// ended reports whether the process has ended. The error tells that it ended badly although nobody asked it to end; a worker
// that ended well was asked by somebody else.
func (p *process) ended() (bool, error) {
	select {
	case <-p.done:
	default:
		return false, nil
	}
	if p.asked.Load() || p.err == nil {
		return true, nil
	}
	return true, fmt.Errorf("%s ended by itself: %v", p.name, p.cmd.ProcessState)
}
