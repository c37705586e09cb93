package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The exit codes.
const (
	exitOK        = 0
	exitFailure   = 1
	exitUsage     = 2
	exitDifferent = 3
	exitAbsent    = 4
)

// system is what a process is given by its surroundings, so that tests can give it something else.
type system struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// onTerminal reports whether a stream is a terminal, so that a person sits there.
func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// exitError carries an exit code other than 1 through cobra.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: code, err: err}
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, sys system) int {
	root := newRoot(sys)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(sys.stderr, "orderworker: "+text)
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailure
}

func newRoot(sys system) *cobra.Command {
	root := group("orderworker", "Turn at-least-once messages into documents that are committed once")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetIn(sys.stdin)
	root.SetOut(sys.stdout)
	root.SetErr(sys.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return withCode(exitUsage, fmt.Errorf("%w. See %s --help", err, c.CommandPath()))
	})
	root.AddCommand(newRun(sys), newCheck(sys), newSend(sys), newDeadletter(sys), newKey(sys), newHealthcheck(sys), newVersion(sys))
	return root
}

// group is a command that only holds others. Alone it shows its help; with a word that it does not know it is a wrong use.
func group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return withCode(exitUsage, fmt.Errorf("%s has no command %q. See %s --help", c.CommandPath(), args[0], c.CommandPath()))
			}
			return c.Help()
		},
	}
}

// needArgs is cobra.ExactArgs with a usage error that says what was expected.
func needArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return withCode(exitUsage, fmt.Errorf("%s takes %s, not %d arguments", c.CommandPath(), describe(names), len(args)))
	}
}

func describe(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, " ")
}
