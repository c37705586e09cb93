// Package app makes a program out of a message handler: run, check, send, dead-letter review, settings, health and
// telemetry.
//
// Exit codes: 0 for success, 1 for a failure while working, 2 for a wrong command or configuration, 3 when check found
// something that must be fixed or diff found a difference, 4 when there is nothing to compare with.
package app

import (
	"context"
	"os"

	"github.com/orderworker/orderworker/worker"
)

// A Program is what [Main] needs to know of a message consumer.
type Program struct {
	// Name names the program in its help, logs and telemetry, in the records that it stores and in the messages that it
	// dead-letters.
	Name string
	// Handler says what each message stands for.
	Handler worker.Handler
	// Types are the types of the documents that Handler returns. A container that cannot hold them is refused at the start.
	Types []string
}

// Main executes the command line of this process for p and exits with its exit code.
func Main(p Program) {
	os.Exit(run(context.Background(), os.Args[1:], system{
		program: p, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}))
}
