package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
)

// maxRun bounds the run of all tests.
const maxRun = 5 * time.Minute

// measure starts an account, runs the upstream tests against it and returns the outcome of each.
func measure(ctx context.Context, s settings, out io.Writer) (results map[string]string, err error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	doors, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, doors.close()) }()
	suite, err := prepare(ctx, dir, doors.at)
	if err != nil {
		return nil, err
	}
	if s.pattern != "" {
		chosen, err := regexp.Compile(s.pattern)
		if err != nil {
			return nil, fmt.Errorf("-run: %w", err)
		}
		suite.tests = slices.DeleteFunc(suite.tests, func(name string) bool { return !chosen.MatchString(name) })
	}
	if len(suite.tests) == 0 {
		return nil, errors.New("no test has such a name")
	}
	output, err := suite.run(ctx, doors.certificates)
	if err != nil {
		return nil, err
	}
	results = outcomes(suite.tests, output)
	if s.verbose || slices.ContainsFunc(suite.tests, func(name string) bool { return results[name] == failed && known[name] == "" }) {
		fmt.Fprintf(out, "%s\n", output)
	}
	for _, r := range doors.account.Refusals() {
		fmt.Fprintln(out, "not implemented:", r)
	}
	return results, nil
}

// run executes the tests and returns their output. That tests fail is no error.
func (s *suite) run(ctx context.Context, certificates []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	trusted := filepath.Join(s.dir, "trusted.pem")
	if err := os.WriteFile(trusted, certificates, 0o600); err != nil {
		return nil, fmt.Errorf("writing the certificates: %w", err)
	}
	cmd := exec.CommandContext(ctx, s.binary, "-test.v", "-test.count=1", "-test.run", "^("+strings.Join(s.tests, "|")+")$")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "EMULATOR=true", "SSL_CERT_FILE="+trusted)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && (!exited || ctx.Err() != nil) {
		return nil, fmt.Errorf("running the upstream tests: %w\n%s", errors.Join(err, ctx.Err()), output.Bytes())
	}
	return output.Bytes(), nil
}

// doors are an account and its two gateways.
type doors struct {
	account      *cosmosdb.Account
	servers      []*cosmosdb.Server
	certificates []byte
	at           addresses
}

// open starts an account with the settings that the upstream tests expect of Microsoft's emulator.
func open() (*doors, error) {
	routing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a port: %w", err)
	}
	compute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a port: %w", err), routing.Close())
	}
	advertised := routing.Addr().String()
	account, err := cosmosdb.New(cosmosdb.Options{Consistency: "Strong", AcceptTokens: true, AdvertisedHost: advertised})
	if err != nil {
		return nil, errors.Join(err, routing.Close(), compute.Close())
	}
	d := &doors{account: account, at: addresses{
		routing:    fmt.Sprintf("localhost:%d", routing.Addr().(*net.TCPAddr).Port),
		advertised: advertised,
		compute:    fmt.Sprintf("localhost:%d", compute.Addr().(*net.TCPAddr).Port),
	}}
	first, err := account.ServeTLS(routing)
	if err != nil {
		return nil, errors.Join(err, routing.Close(), compute.Close())
	}
	d.add(first)
	second, err := cosmosdb.ServeTLS(compute, account.ComputeGateway())
	if err != nil {
		return nil, errors.Join(err, d.close(), compute.Close())
	}
	d.add(second)
	return d, nil
}

func (d *doors) add(s *cosmosdb.Server) {
	d.servers = append(d.servers, s)
	d.certificates = append(d.certificates, s.CertificatePEM()...)
}

func (d *doors) close() error {
	var errs []error
	for _, s := range d.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, d.account.Close())...)
}

// removeAll removes a copy of the module cache, whose directories are read-only.
func removeAll(dir string) error {
	return errors.Join(filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	}), os.RemoveAll(dir))
}
