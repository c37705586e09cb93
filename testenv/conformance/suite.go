package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

// suite is a copy of the upstream package with its address replaced.
type suite struct {
	dir    string
	binary string
	tests  []string
}

// addresses are where the tests find the emulator, as host:port.
type addresses struct{ routing, advertised, compute string }

// prepare copies the upstream package into dir, points it at the addresses, and builds it.
func prepare(ctx context.Context, dir string, at addresses) (*suite, error) {
	source, err := locate(ctx, module)
	if err != nil {
		return nil, err
	}
	s := &suite{dir: filepath.Join(dir, "azcosmos"), binary: filepath.Join(dir, "azcosmos.test")}
	if err := os.CopyFS(s.dir, os.DirFS(source)); err != nil {
		return nil, fmt.Errorf("copying the upstream tests: %w", err)
	}
	if err := redirect(s.dir, at); err != nil {
		return nil, err
	}
	if s.tests, err = emulatorTests(s.dir); err != nil {
		return nil, err
	}
	return s, s.build(ctx)
}

// locate returns the directory of a module in the module cache, in the version that go.mod asks for.
func locate(ctx context.Context, module string) (string, error) {
	if out, err := exec.CommandContext(ctx, "go", "mod", "download", module).CombinedOutput(); err != nil {
		return "", fmt.Errorf("downloading %s: %w\n%s", module, err, out)
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("%s is not in the module cache; run this inside the repository: %w", module, err)
	}
	return dir, nil
}

// replacement is one text in the upstream tests.
type replacement struct{ file, old, new string }

// redirect replaces the addresses. The address inside the tests' fake token stays.
func redirect(dir string, at addresses) error {
	return replaceAll(dir, module, []replacement{
		{"emulator_test.go", `newEmulatorTestsWithEndpoint(t, "https://localhost:8081/")`, `newEmulatorTestsWithEndpoint(t, "https://` + at.routing + `/")`},
		{"emulator_test.go", `newEmulatorTestsWithEndpoint(t, "https://localhost:8903/")`, `newEmulatorTestsWithEndpoint(t, "https://` + at.compute + `/")`},
		{"emulator_cosmos_global_endpoint_manager_test.go", `"https://localhost:8081/"`, `"https://` + at.routing + `/"`},
		{"emulator_cosmos_global_endpoint_manager_test.go", `"https://127.0.0.1:8081/"`, `"https://` + at.advertised + `/"`},
	})
}

// replaceAll carries out replacements in a copy of a module, each of which must find something.
func replaceAll(dir, module string, list []replacement) error {
	for _, r := range list {
		path := filepath.Join(dir, r.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading the upstream tests: %w", err)
		}
		if !bytes.Contains(text, []byte(r.old)) {
			return fmt.Errorf("%s of %s no longer has %s; adapt testenv/conformance", r.file, module, r.old)
		}
		if err := replaceFile(path, bytes.ReplaceAll(text, []byte(r.old), []byte(r.new))); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a file whose copy the module cache has left read-only.
func replaceFile(path string, text []byte) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("replacing an address in the upstream tests: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("replacing an address in the upstream tests: %w", err)
	}
	return nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// emulatorTests lists the tests that need an emulator.
func emulatorTests(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "emulator_cosmos_*_test.go"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("the upstream package has no emulator tests"), err)
	}
	var names []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("reading the upstream tests: %w", err)
		}
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	return names, nil
}

// build compiles the tests. The copy is a module of its own, with its own checksums.
func (s *suite) build(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.binary, ".")
	build.Dir = s.dir
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the upstream tests: %w\n%s", err, out)
	}
	return nil
}

// Outcomes of a test.
const (
	passed  = "passed"
	failed  = "failed"
	skipped = "skipped"
)

var outcomeLine = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (Test\w+) `)

// outcomes reads the verbose output of a test binary. A test that has no outcome there did not pass.
func outcomes(tests []string, output []byte) map[string]string {
	results := map[string]string{}
	for _, name := range tests {
		results[name] = failed
	}
	words := map[string]string{"PASS": passed, "FAIL": failed, "SKIP": skipped}
	for _, m := range outcomeLine.FindAllSubmatch(output, -1) {
		if name := string(m[2]); results[name] != "" {
			results[name] = words[string(m[1])]
		}
	}
	return results
}
