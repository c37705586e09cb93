package app

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/messagejson"
)

// maxLine is the longest line read, in bytes, above any message that a queue takes.
const maxLine = 128 << 20

// maxFaults is how many faults of a file are shown. More help nobody, and most have one cause.
const maxFaults = 10

// numbered is a message with its line, and the size of that line in bytes.
type numbered struct {
	line, size int
	message    *azservicebus.AMQPAnnotatedMessage
}

// readFile reads the messages of the file that args name, or else of the standard input.
func readFile(sys system, args []string) ([]numbered, error) {
	if len(args) == 0 || args[0] == "-" {
		if onTerminal(sys.stdin) {
			fmt.Fprintln(sys.stderr, "reading from the terminal; end with Ctrl-D")
		}
		return readLines("standard input", sys.stdin)
	}
	name := args[0]
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s", name)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s may not be read by this user", name)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder. Give a file of JSON lines", name)
	}
	return readLines(name, f)
}

// readLines reads messages, or reports the faults of all lines.
func readLines(name string, in io.Reader) ([]numbered, error) {
	var lines []numbered
	var faults []error
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	last := 0
	for scanner.Scan() {
		last++
		text := bytes.TrimSpace(bytes.TrimPrefix(scanner.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		m, err := messagejson.Decode(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s, line %d: %w", name, last, lineFault(err)))
			continue
		}
		lines = append(lines, numbered{line: last, size: len(text), message: m})
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		faults = append(faults, fmt.Errorf("%s, line %d: it is longer than %d MiB, and no queue takes such a message", name, last+1, maxLine>>20))
	case err != nil:
		faults = append(faults, fmt.Errorf("%s cannot be read to its end: %w", name, err))
	case len(lines) == 0 && len(faults) == 0:
		return nil, fmt.Errorf("there is no message in %s. Nothing was sent", name)
	}
	return lines, lineFaults(faults)
}

// lineFaults joins the first faults, and counts the others.
func lineFaults(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	shown := faults[:min(len(faults), maxFaults)]
	err := fmt.Errorf("nothing was sent:\n%w", errors.Join(indent(shown)...))
	if more := len(faults) - len(shown); more > 0 {
		err = fmt.Errorf("%w\n  and %d more; %d lines are wrong in all", err, more, len(faults))
	}
	return err
}

// lineFault adds to an unknown member those that there are.
func lineFault(err error) error {
	e, ok := errors.AsType[*messagejson.UnknownMemberError](err)
	if !ok {
		return err
	}
	meant := "."
	if best := closest(e.Name, messagejson.Members()); best != "" {
		meant = "; did you mean " + best + "?"
	}
	return fmt.Errorf("%w%s The members are %s", err, meant, strings.Join(messagejson.Members(), ", "))
}

// indent makes a list of faults.
func indent[E error](faults []E) []error {
	out := make([]error, len(faults))
	for i, f := range faults {
		out[i] = fmt.Errorf("  - %w", f)
	}
	return out
}
