package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// The ports of Microsoft's emulators.
const (
	portAMQP       = 5672
	portManagement = 5300
	portCosmos     = 8081
)

// serveOptions are the flags of the environment alone.
type serveOptions struct {
	host        string
	portOffset  int
	config      string
	queue       string
	noDuplicate bool
	lock        time.Duration
	deliveries  int
	historyFile string
}

func (o *serveOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.host, "host", "127.0.0.1", "address to listen on. Anything but this machine's own lets others in, who need no password worth the name")
	f.IntVar(&o.portOffset, "port-offset", 0, "number added to the ports 5672, 5300 and 8081, for when they are taken")
	f.StringVar(&o.config, "config", "", "queues, in the format of the official emulator's Config.json; the default has the queue orders")
	f.StringVar(&o.queue, "queue", "", "queue to print settings for; the default is the first")
	f.BoolVar(&o.noDuplicate, "no-duplicate-detection", false, "switch duplicate detection off, so that every copy reaches the worker")
	f.DurationVar(&o.lock, "lock-duration", 0, "lock duration of every queue, instead of what the configuration says")
	f.IntVar(&o.deliveries, "max-delivery-count", 0, "maximum delivery count of every queue, instead of what the configuration says")
	f.StringVar(&o.historyFile, "history", "", "file to write everything that happened to, as JSON lines, at the end")
}

func newServe(sys system) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "devenv",
		Short: "An embedded Service Bus and Cosmos DB on this machine",
		Long: `An embedded Service Bus and Cosmos DB on this machine, until Ctrl-C.

They speak the real protocols on the ports of Microsoft's emulators, so that unmodified programs work against them. All is
kept in memory and gone at the end.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			addresses, err := o.addresses()
			if err != nil {
				return err
			}
			return serve(c.Context(), o, addresses, sys)
		},
	}
	o.bind(c.Flags())
	return c
}

// serve runs the environment on the addresses until ctx is done.
func serve(ctx context.Context, o serveOptions, addresses testenv.Addresses, sys system) (err error) {
	env, err := o.environment()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close(), saveHistory(env.History, o.historyFile)) }()
	at, err := env.Serve(ctx, addresses)
	if err != nil {
		return withCure(err)
	}
	introduce(sys.stdout, env, at)
	<-ctx.Done()
	fmt.Fprintln(sys.stdout, "\nStopped.")
	return nil
}

func (o serveOptions) addresses() (testenv.Addresses, error) {
	if o.portOffset < 0 || portCosmos+o.portOffset > 65535 {
		return testenv.Addresses{}, &usageError{fmt.Errorf("--port-offset %d: the ports must stay between %d and 65535; the largest offset is %d", o.portOffset, portManagement, 65535-portCosmos)}
	}
	at := func(port int) string { return net.JoinHostPort(o.host, strconv.Itoa(port+o.portOffset)) }
	return testenv.Addresses{AMQP: at(portAMQP), Management: at(portManagement), Cosmos: at(portCosmos)}, nil
}

func (o serveOptions) environment() (*testenv.Env, error) {
	options := testenv.Options{Queue: o.queue, Adjust: o.adjust}
	if o.config != "" {
		f, err := os.Open(o.config)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--config: %w", err)}
		}
		defer f.Close()
		options.Config = f
	}
	if o.historyFile == "" {
		options.History = history.NewBounded(10_000) // nobody will read it, and this may run for weeks
	}
	env, err := testenv.New(options)
	if err != nil {
		return nil, &usageError{err}
	}
	return env, nil
}

func (o serveOptions) adjust(q *servicebus.Queue) {
	if o.noDuplicate {
		q.RequiresDuplicateDetection = false
	}
	if o.lock != 0 {
		q.LockDuration = o.lock
	}
	if o.deliveries != 0 {
		q.MaxDeliveryCount = o.deliveries
	}
}

// withCure adds what to do about a port in use.
func withCure(err error) error {
	if _, ok := errors.AsType[*testenv.PortInUseError](err); !ok {
		return err
	}
	return fmt.Errorf("%w\nStop that program (is another devenv or an emulator running?), or take other ports with --port-offset 1000", err)
}

// introduce says what there is, and how to use it.
func introduce(w io.Writer, env *testenv.Env, at testenv.Addresses) {
	fmt.Fprintf(w, "Embedded Service Bus and Cosmos DB. All is kept in memory and gone after Ctrl-C.\n\n")
	fmt.Fprintf(w, "  Service Bus  sb://%s  queue %s: %s\n", at.AMQP, env.Queue.Name, describeQueue(env.Queue))
	fmt.Fprintf(w, "  Management   http://%s/health and /queues\n", at.Management)
	fmt.Fprintf(w, "  Cosmos DB    http://%s  database %s, container %s\n", at.Cosmos, env.Database, env.Container)
	fmt.Fprintf(w, "\nSettings for the worker; paste them into another terminal:\n\n")
	printExports(w, env)
	worker := workerCommand()
	fmt.Fprintf(w, "\nThen, for example:\n\n")
	fmt.Fprintf(w, "%s run\n", worker)
	fmt.Fprintf(w, "echo '{\"message_id\":\"1042\",\"body\":{\"orderId\":\"1042\",\"amount\":40}}' | %s send\n", worker)
	fmt.Fprintf(w, "curl -s http://%s/queues\n", at.Management)
}

func describeQueue(q servicebus.Queue) string {
	duplicates := "no duplicate detection"
	if q.RequiresDuplicateDetection {
		duplicates = fmt.Sprintf("duplicate detection %v", q.DuplicateDetectionHistoryTimeWindow)
	}
	return fmt.Sprintf("lock %v, %d deliveries, %s", q.LockDuration, q.MaxDeliveryCount, duplicates)
}

func printExports(w io.Writer, env *testenv.Env) {
	for _, s := range env.Settings() {
		fmt.Fprintf(w, "export %s=%s\n", s.Name, quote(s.Value))
	}
}

// quote makes one word of a text for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// workerCommand is how a person in the current folder starts the worker.
func workerCommand() string {
	path, err := findWorker("")
	if err != nil {
		return "go run ./cmd/orderworker"
	}
	here, err := os.Getwd()
	if err != nil {
		return quote(path)
	}
	if rel, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(rel, "..") {
		return "./" + filepath.ToSlash(rel)
	}
	return quote(path)
}

// saveHistory writes a log to a file, when one is wanted.
func saveHistory(l *history.Log, name string) (err error) {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("--history: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = l.WriteTo(f)
	return err
}
