package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running worker, a process of its own. Its methods may be called concurrently.
type process struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed when it has ended; err may be read then
	err  error

	mu      sync.Mutex // guards what follows
	expects bool       // somebody asked it to end
}

// start runs a program with its output in a new file.
func start(name, path string, env []string, logFile string, args ...string) (*process, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not start: %w", name, err), log.Close())
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = log.Close() // the process wrote it, not we
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) asked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expects = true
}

// kill ends the process at once, as SIGKILL does, and returns when it is gone.
func (p *process) kill() {
	p.asked()
	// An error means that it has ended by itself.
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to end, as a platform does with SIGTERM, and kills it when it takes longer than patience. It returns
// nil when the process ended with exit code 0.
func (p *process) stop(patience time.Duration) error {
	p.asked()
	p.awaitFirstWord(patience)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.kill()
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
		return fmt.Errorf("%s did not end within %v after SIGTERM and was killed", p.name, patience)
	}
	if p.err != nil {
		return fmt.Errorf("%s was asked to end and ended with %w", p.name, p.err)
	}
	return nil
}

// awaitFirstWord returns when the process has logged something or has ended, or after the limit. A signal that arrives before
// the process listens for it would end it like SIGKILL.
func (p *process) awaitFirstWord(limit time.Duration) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		if info, err := p.log.Stat(); err != nil || info.Size() > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-p.done:
			return
		case <-timer.C:
			return
		}
	}
}

// crashed returns an error when the process has ended badly although nobody asked it to end. A worker that ended well was
// asked by somebody else.
func (p *process) crashed() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expects || p.err == nil {
		return nil
	}
	return fmt.Errorf("%s ended by itself: %v", p.name, p.cmd.ProcessState)
}

// findWorker returns the path of the worker's program: the given one, or the one that was built next to this program.
func findWorker(given string) (string, error) {
	path := given
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("cannot tell where this program is: %w. Give --worker PATH", err)
		}
		path = filepath.Join(filepath.Dir(self), "orderworker"+executableSuffix())
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && given == "":
		return "", fmt.Errorf("the worker is not built: there is no %s. Run make build, or give --worker PATH", path)
	case err != nil:
		return "", fmt.Errorf("--worker: %w", err)
	case info.IsDir():
		return "", fmt.Errorf("--worker: %s is a folder. Give the program itself", path)
	}
	return path, nil
}

func executableSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// foreign are the prefixes of variables that would point a worker somewhere else than at the embedded environment.
var foreign = [...]string{"SERVICEBUS_", "COSMOS_", "WORKER_", "AZURE_", "OTEL_"}

// workerEnvironment is our own environment without what would mislead a worker, and with the given settings.
func workerEnvironment(environ, settings []string) []string {
	var env []string
	for _, pair := range environ {
		if !hasPrefix(pair, foreign[:]) {
			env = append(env, pair)
		}
	}
	return append(env, settings...)
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
