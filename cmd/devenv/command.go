package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// system is what a process is given by its surroundings, so that tests can give it something else.
type system struct {
	environ        []string
	stdout, stderr io.Writer
}

// terminal reports whether stdout is a terminal.
func (s system) terminal() bool {
	f, isFile := s.stdout.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

func (s system) say(format string, args ...any) { fmt.Fprintf(s.stdout, format+"\n", args...) }

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// run executes one command line and returns its exit code. The first SIGINT, SIGTERM or SIGHUP asks the command to stop, the
// second ends the process. A terminal that closes must stop the workers too, which do not hear of it themselves.
func run(ctx context.Context, args []string, sys system) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := newRoot(sys)
	root.SetArgs(append([]string{}, args...)) // nil would stand for the words of the process
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(sys.stderr, "devenv: "+err.Error())
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

func newRoot(sys system) *cobra.Command {
	root := newServe(sys)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions = cobra.CompletionOptions{HiddenDefaultCmd: true}
	root.SetOut(sys.stdout)
	root.SetErr(sys.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w. See %s --help", err, c.CommandPath())}
	})
	root.AddCommand(newDemo(sys), newTorture(sys))
	return root
}

// noArgs refuses arguments with an error that names them.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{fmt.Errorf("%s takes no argument %q. See %s --help", c.CommandPath(), args[0], c.CommandPath())}
}
