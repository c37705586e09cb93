// Command conformance runs the emulator tests that azcosmos ships against the embedded Cosmos DB, and the live tests
// that azservicebus ships against the embedded Service Bus.
//
// The tests are those of the versions in go.mod. They are copied from the module cache into a temporary directory, where
// their addresses or their fixture are replaced, built, and run against the services on free loopback ports. The last
// lines count what passed, failed and was skipped. The exit code is 0 when every failure is in the list of known ones, 1
// when another test failed or every test was skipped, 2 when the tests could not be run.
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

// The upstream tests that the embedded services do not pass, with the reason. README.md has the same lists.
var (
	knownOfAccounts = map[string]string{}
	knownOfClients  = map[string]string{
		"TestClientUsingCustomEndpoint":    "it wants the port of TLS, and the embedded Service Bus speaks plain AMQP",
		"TestReceiveWithDifferentWaitTime": "it wants messages to trickle in, and here all are there at once",
	}
	knownOfAdministration = map[string]string{}
)

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
	var all []measured
	for _, suite := range []struct {
		title string
		known map[string]string
		open  func(context.Context) (subject, error)
	}{{"azcosmos emulator tests", knownOfAccounts, openAccount},
		{"azservicebus live tests", knownOfClients, openQueues(liveClients)},
		{"azservicebus live tests of administration", knownOfAdministration, openQueues(liveAdministration)},
	} {
		m, err := measure(ctx, s, suite.title, suite.known, suite.open, stdout)
		if err != nil {
			fmt.Fprintln(stderr, "conformance:", err)
			return 2
		}
		all = append(all, m)
	}
	return conclude(stdout, all)
}

// conclude reports on every suite that had tests to run. That none had is a mistake.
func conclude(w io.Writer, all []measured) int {
	code, ran := 0, false
	for _, m := range all {
		if len(m.results) > 0 {
			ran = true
			code = max(code, report(w, m.title, m.results, m.known))
		}
	}
	if !ran {
		fmt.Fprintln(w, "no test has such a name")
		return 2
	}
	return code
}

// report prints what became of each test that did not pass, and the count. It returns the exit code. A suite of which
// every test was skipped says nothing, and is not green.
func report(w io.Writer, title string, results map[string]string, known map[string]string) int {
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
	if counts[passed] == 0 {
		fmt.Fprintln(w, "NOTHING PASSED: this run says nothing")
		code = 1
	}
	fmt.Fprintf(w, "%s: %d passed, %d failed, %d skipped of %d\n",
		title, counts[passed], counts[failed], counts[skipped], len(results))
	return code
}
