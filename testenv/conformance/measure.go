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

// measured is what became of the tests of one suite.
type measured struct {
	title   string
	results map[string]string
	known   map[string]string
}

// subject is something that upstream tests run against.
type subject interface {
	// prepare copies and builds the tests below a directory.
	prepare(ctx context.Context, dir string) (*suite, error)
	// environ are the variables of the tests.
	environ() []string
	refusals() []string
	close() error
}

// measure runs one suite of upstream tests against its subject. A suite of which no test has a name like the pattern has
// no results.
func measure(ctx context.Context, s settings, title string, known map[string]string, open func(context.Context) (subject, error), out io.Writer) (m measured, err error) {
	m = measured{title: title, known: known}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return m, fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	subject, err := open(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, subject.close()) }()
	suite, err := subject.prepare(ctx, dir)
	if err != nil {
		return m, err
	}
	if s.pattern != "" {
		chosen, err := regexp.Compile(s.pattern)
		if err != nil {
			return m, fmt.Errorf("-run: %w", err)
		}
		suite.tests = slices.DeleteFunc(suite.tests, func(name string) bool { return !chosen.MatchString(name) })
	}
	if len(suite.tests) == 0 {
		return m, nil
	}
	output, err := suite.run(ctx, subject.environ())
	if err != nil {
		return m, err
	}
	m.results = outcomes(suite.tests, output)
	if s.verbose || slices.ContainsFunc(suite.tests, func(name string) bool { return m.results[name] == failed && known[name] == "" }) {
		fmt.Fprintf(out, "%s\n", output)
	}
	for _, r := range subject.refusals() {
		fmt.Fprintln(out, "not implemented:", r)
	}
	return m, nil
}

// run executes the tests and returns their output. That tests fail is no error.
func (s *suite) run(ctx context.Context, environ []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "-test.v", "-test.count=1", "-test.run", "^("+strings.Join(s.tests, "|")+")$")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), environ...)
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
	trusted      string // the file with the certificates
	account      *cosmosdb.Account
	servers      []*cosmosdb.Server
	certificates []byte
	at           addresses
}

// openAccount starts an account with the settings that the upstream tests expect of Microsoft's emulator.
func openAccount(context.Context) (subject, error) {
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

func (d *doors) prepare(ctx context.Context, dir string) (*suite, error) {
	d.trusted = filepath.Join(dir, "trusted.pem")
	if err := os.WriteFile(d.trusted, d.certificates, 0o600); err != nil {
		return nil, fmt.Errorf("writing the certificates: %w", err)
	}
	return prepare(ctx, dir, d.at)
}

func (d *doors) environ() []string  { return []string{"EMULATOR=true", "SSL_CERT_FILE=" + d.trusted} }
func (d *doors) refusals() []string { return d.account.Refusals() }

func (d *doors) close() error {
	var errs []error
	for _, s := range d.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, d.account.Close())...)
}

// removeAll removes a copy of the module cache, whose directories are read-only.
func removeAll(dir string) error { return errors.Join(writable(dir), os.RemoveAll(dir)) }

// writable lets files be added to a copy of a module.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	})
}
