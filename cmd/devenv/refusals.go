package main

import (
	"fmt"
	"io"
	"sync"
)

// maxRefusals bounds how many refusals are printed. A program may ask for the same thing under new names for days.
const maxRefusals = 100

// refusals prints what a client asked for and the environment does not implement, each once.
type refusals struct {
	out io.Writer

	mu   sync.Mutex
	told map[string]bool // guarded by mu
}

// tell prints a refusal unless it was printed before.
func (r *refusals) tell(service, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := service + ": " + what
	if r.told[line] || len(r.told) >= maxRefusals {
		return
	}
	r.told[line] = true
	fmt.Fprintln(r.out, "not implemented, and refused: "+line)
	if len(r.told) == maxRefusals {
		fmt.Fprintln(r.out, "further refusals are not printed")
	}
}
