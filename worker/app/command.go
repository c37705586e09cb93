package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	program        Program
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// named puts the name of the program into a text.
func (s system) named(text string) string {
	return strings.ReplaceAll(text, "{program}", s.program.Name)
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
	root.SetArgs(append([]string{}, args...)) // nil would stand for the words of the process
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(sys.stderr, sys.program.Name+": "+text)
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailure
}

func newRoot(sys system) *cobra.Command {
	root := group(sys.program.Name, sys.program.Summary)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetIn(sys.stdin)
	root.SetOut(sys.stdout)
	root.SetErr(sys.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return withCode(exitUsage, fmt.Errorf("%w. See %s --help", flagFault(err), c.CommandPath()))
	})
	root.SetUsageFunc(usage)
	root.SetHelpCommand(newHelp(root))
	root.AddCommand(newRun(sys), newCheck(sys), newSend(sys), newGet(sys), newDeadletter(sys), newOutbox(sys), newHealthcheck(sys), newVersion(sys))
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

// newHelp shows the help of a command. Cobra's own ends well for a command that there is not.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return withCode(exitUsage, fmt.Errorf("there is no command %q. See %s --help", strings.Join(args, " "), root.CommandPath()))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// flagFault says in plain words which value of a flag is wrong. The parser's own text quotes the Go function that refused it.
func flagFault(err error) error {
	e, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	kinds := map[string]string{"bool": "true or false", "int": "a whole number", "int64": "a whole number", "duration": "a duration such as 90s or 5m"}
	return fmt.Errorf("--%s %q is not %s", e.GetFlag().Name, e.GetValue(), cmp.Or(kinds[e.GetFlag().Value.Type()], "a value that it takes"))
}

// needArgs is cobra.ExactArgs with a usage error that says what was expected.
func needArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return withCode(exitUsage, fmt.Errorf("%s takes %s, and was given %s. See %s --help",
			c.CommandPath(), cmp.Or(strings.Join(names, " "), "no arguments"), cmp.Or(strings.Join(args, " "), "nothing"), c.CommandPath()))
	}
}
