// Package app makes a whole program out of a message handler: run, check, send, get, the review of dead letters, settings,
// health and telemetry.
//
//	package main
//
//	func main() {
//		app.Main(app.Program{Name: "shop-payments", Handler: worker.HandlerFunc(payment), Types: []string{"payment", "entry"}})
//	}
//
// The program in docs/examples/payments is a complete one. Those who want only the engine in a process of their own use
// package worker.
//
// Exit codes: 0 for success, 1 for a failure while working, 2 for a wrong command, configuration or [Program], 3 when check
// found something that must be fixed or diff found a difference, 4 when there is nothing to show or to compare with.
package app

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Main executes the command line of this process for p and exits with its exit code.
func Main(p Program) {
	os.Exit(Run(context.Background(), p, Process{Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
}

// A Process is what [Run] is given by its surroundings in place of the operating system's. Every field must be set, but Args
// and Environ may be empty.
type Process struct {
	// Args are the words of the command line without the name of the program, and Environ is in the form of [os.Environ].
	Args, Environ []string
	Stdin         io.Reader
	Stdout        io.Writer
	Stderr        io.Writer
}

// Run executes one command line for p and returns its exit code, as [Main] does for this process. It ends early with ctx, so
// that a test can start a worker and stop it. Several may run at once. Signals and the variables OTEL_* and AZURE_* are those
// of the process all the same.
func Run(ctx context.Context, p Program, in Process) int {
	if err := p.validate(); err != nil {
		fmt.Fprintln(in.Stderr, err)
		return exitUsage
	}
	return run(ctx, in.Args, system{program: p.withDefaults(), environ: in.Environ, stdin: in.Stdin, stdout: in.Stdout, stderr: in.Stderr})
}
