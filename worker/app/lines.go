package app

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is the longest line read, in bytes, above any message that a queue takes.
const maxLine = 128 << 20

// maxFaults is how many faults of a file are shown. More help nobody, and most have one cause.
const maxFaults = 10

// openInput opens the file of this name, or for - the standard input.
func openInput(sys system, name string) (io.ReadCloser, error) {
	if name != "-" {
		return os.Open(name)
	}
	if onTerminal(sys.stdin) {
		fmt.Fprintln(sys.stderr, "reading from the terminal; end with Ctrl-D")
	}
	return io.NopCloser(sys.stdin), nil
}

// readLines decodes each line of a file that is not blank, by its number, or reports the first faults.
func readLines[T any](sys system, name string, decode func(line int, text []byte) (T, error)) ([]T, error) {
	in, err := openInput(sys, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if name == "-" {
		name = "standard input"
	}
	var values []T
	var faults []error
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	line := 0
	for len(faults) < maxFaults && scanner.Scan() {
		line++
		text := bytes.TrimSpace(bytes.TrimPrefix(scanner.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		v, err := decode(line, text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s, line %d: %w", name, line, err))
		}
		values = append(values, v)
	}
	if err := scanner.Err(); err != nil {
		faults = append(faults, fmt.Errorf("%s, line %d: it cannot be read, or has more than %d MiB: %w", name, line+1, maxLine>>20, err))
	}
	switch {
	case len(faults) == maxFaults:
		return nil, fmt.Errorf("nothing was done. The first %d faults are:\n%w", maxFaults, errors.Join(indent(faults)...))
	case len(faults) > 0:
		return nil, fmt.Errorf("nothing was done:\n%w", errors.Join(indent(faults)...))
	case len(values) == 0:
		return nil, fmt.Errorf("there is no message in %s. Nothing was done", name)
	}
	return values, nil
}

// indent makes a list of faults.
func indent[E error](faults []E) []error {
	out := make([]error, len(faults))
	for i, f := range faults {
		out[i] = fmt.Errorf("  - %w", f)
	}
	return out
}
