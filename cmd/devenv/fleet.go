package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// fleet starts workers as processes of their own, each with a log file, and keeps track of them. Its methods may be called
// concurrently.
type fleet struct {
	program string
	environ []string
	logs    string // folder

	mu      sync.Mutex
	started int
	running []*process
}

// newFleet keeps the logs of its workers in a new folder among the system's temporary files.
func newFleet(program string, environ []string) (*fleet, error) {
	dir, err := os.MkdirTemp("", "orderworker-")
	if err != nil {
		return nil, fmt.Errorf("no folder for the logs of the workers: %w", err)
	}
	return &fleet{program: program, environ: environ, logs: dir}, nil
}

// start starts one more worker.
func (f *fleet) start() (*process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := fmt.Sprintf("worker %d", f.started+1)
	p, err := start(name, f.program, f.environ, f.logOf(name), "run")
	if err != nil {
		return nil, err
	}
	f.started++
	f.running = append(f.running, p)
	return p, nil
}

// alive returns the workers that have not ended, oldest first, and forgets the others. The error names those that ended
// although nobody asked them to, with the end of their logs.
func (f *fleet) alive() ([]*process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var alive []*process
	var errs []error
	for _, p := range f.running {
		ended, err := p.ended()
		if err != nil {
			errs = append(errs, fmt.Errorf("%w\n%s", err, f.lastLines(p)))
		}
		if !ended {
			alive = append(alive, p)
		}
	}
	f.running = alive
	return slices.Clone(alive), errors.Join(errs...)
}

// keep starts as many workers as are missing from n.
func (f *fleet) keep(n int) error {
	alive, err := f.alive()
	for range n - len(alive) {
		if err == nil {
			_, err = f.start()
		}
	}
	return err
}

// stop asks all workers to end at the same time, waits for them, and reports those that did not end well.
func (f *fleet) stop() error {
	alive, err := f.alive()
	errs := make([]error, len(alive), len(alive)+1)
	var group sync.WaitGroup
	for i, p := range alive {
		group.Go(func() { errs[i] = p.stop() })
	}
	group.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = nil
	return errors.Join(append(errs, err)...)
}

// discard removes the logs.
func (f *fleet) discard() { _ = os.RemoveAll(f.logs) }

// logOf is the file for the log of a worker.
func (f *fleet) logOf(worker string) string {
	return filepath.Join(f.logs, strings.ReplaceAll(worker, " ", "-")+".log")
}

// lastLines are the last lines of a worker's log, for an error.
func (f *fleet) lastLines(p *process) string {
	name := f.logOf(p.name)
	text, err := os.ReadFile(name)
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "the end of its log, " + name + ":\n  " + strings.Join(lines[max(0, len(lines)-5):], "\n  ")
}

// send sends messages, one JSON line each, with the program's own command.
func (f *fleet) send(ctx context.Context, lines ...string) error {
	cmd := exec.CommandContext(ctx, f.program, "send")
	cmd.Env = f.environ
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("orderworker send: %w\n%s", err, strings.TrimSpace(errs.String()))
	}
	return nil
}
