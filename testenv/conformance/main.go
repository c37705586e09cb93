// Command conformance runs the emulator tests that azcosmos ships against the embedded Cosmos DB.
//
// The tests are those of the version of azcosmos in go.mod. They are copied from the module cache into a temporary
// directory, where the address of the emulator is replaced, built, and run against an account on free loopback ports. The
// last line counts what passed, failed and was skipped. The exit code is 0 when every failure is in the list of known
// ones, 1 when another test failed, 2 when the tests could not be run.
//
//	go run ./testenv/conformance [-v] [-run pattern]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code) //nolint:forbidigo // this is a main, though not one below cmd
}

// known are the upstream tests that the emulator does not pass, with the reason. README.md has the same list.
var known = map[string]string{}

// settings are the flags.
type settings struct {
	verbose bool
	pattern string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&s.verbose, "v", false, "show the output of the tests")
	flags.StringVar(&s.pattern, "run", "", "run only the tests whose name matches this regular expression")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	results, err := measure(ctx, s, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "conformance:", err)
		return 2
	}
	return report(stdout, results, known)
}

// report prints what became of each test that did not pass, and the count. It returns the exit code.
func report(w io.Writer, results map[string]string, known map[string]string) int {
	counts := map[string]int{}
	code := 0
	names := make([]string, 0, len(results))
	for name := range results {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		outcome := results[name]
		counts[outcome]++
		reason, isKnown := known[name]
		switch {
		case outcome == failed && isKnown:
			fmt.Fprintf(w, "known failure: %s: %s\n", name, reason)
		case outcome == failed:
			fmt.Fprintf(w, "FAILED: %s\n", name)
			code = 1
		case outcome == skipped:
			fmt.Fprintf(w, "skipped: %s\n", name)
		case isKnown:
			fmt.Fprintf(w, "passes now, take it off the list of known failures: %s\n", name)
		}
	}
	fmt.Fprintf(w, "azcosmos emulator tests: %d passed, %d failed, %d skipped of %d\n",
		counts[passed], counts[failed], counts[skipped], len(results))
	return code
}
