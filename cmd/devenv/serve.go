package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
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

	maxOffset = 65535 - portCosmos
)

// The lock durations that Service Bus and the worker take.
const (
	minLock = 5 * time.Second
	maxLock = 5 * time.Minute
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
	f.IntVar(&o.portOffset, "port-offset", 0, fmt.Sprintf("number added to the ports 5672, 5300 and 8081, for when they are taken; from 0 to %d", maxOffset))
	f.StringVar(&o.config, "config", "", "queues, in the format of the official emulator's Config.json; the default has the queue orders")
	f.StringVar(&o.queue, "queue", "", "queue to print settings for; the default is the first")
	f.BoolVar(&o.noDuplicate, "no-duplicate-detection", false, "switch duplicate detection off, so that every copy reaches the worker")
	f.DurationVar(&o.lock, "lock-duration", 0, "lock duration of every queue, instead of what the configuration says; from 5s to 5m")
	f.IntVar(&o.deliveries, "max-delivery-count", 0, "maximum delivery count of every queue, instead of what the configuration says")
	f.StringVar(&o.historyFile, "history", "", "file to write everything that happened to, as JSON lines, at the end")
}

func newServe(sys system) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "devenv",
		Short: "An embedded Service Bus and Cosmos DB on this machine",
		Long: `An embedded Service Bus and Cosmos DB on this machine, until Ctrl-C.

They speak the real protocols on the ports of Microsoft's emulators, without TLS. These unmodified clients are tried
against them (make clients): Go (azservicebus, azcosmos), JavaScript (@azure/service-bus, @azure/cosmos), Python
(azure-servicebus, azure-cosmos) and Java (azure-messaging-servicebus, azure-cosmos in gateway mode with
COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true). .NET has not been tried. The Service Bus connection string must say
UseDevelopmentEmulator=true, as the one that is printed does.

There are queues with dead-letter queues, locks, schedules and duplicate detection, and containers with batches, patches,
queries, change feed and time to live. There are no topics, subscriptions, sessions, transactions, administration client,
stored procedures, JOIN, GROUP BY, DISTINCT or aggregates but COUNT. What is missing is refused with an error, and printed
here. All is kept in memory and gone at the end.`,
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
	env, err := o.environment(sys.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close(), saveHistory(env.History, o.historyFile)) }()
	at, err := env.Serve(ctx, addresses)
	if err != nil {
		return withCure(err)
	}
	o.introduce(sys.stdout, env, at)
	<-ctx.Done()
	fmt.Fprintln(sys.stdout, "\nStopped.")
	return nil
}

func (o serveOptions) addresses() (testenv.Addresses, error) {
	if o.portOffset < 0 || o.portOffset > maxOffset {
		return testenv.Addresses{}, &usageError{fmt.Errorf("--port-offset %d: give a number from 0 to %d, so that no port is above 65535", o.portOffset, maxOffset)}
	}
	at := func(port int) string { return net.JoinHostPort(o.host, strconv.Itoa(port+o.portOffset)) }
	return testenv.Addresses{AMQP: at(portAMQP), Management: at(portManagement), Cosmos: at(portCosmos)}, nil
}

func (o serveOptions) environment(refused io.Writer) (*testenv.Env, error) {
	options := testenv.Options{Queue: o.queue, Adjust: o.adjust}
	refusals := &refusals{out: refused, told: map[string]bool{}}
	options.Broker.OnRefusal = func(what string) { refusals.tell("Service Bus", what) }
	options.Account.OnRefusal = func(what string) { refusals.tell("Cosmos DB", what) }
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
	if d := env.Queue.LockDuration; d < minLock || d > maxLock {
		return nil, errors.Join(&usageError{fmt.Errorf("queue %s: a lock duration of %v is not possible, neither in Azure nor for the worker. Give --lock-duration from 5s to 5m", env.Queue.Name, d)}, env.Close())
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
func (o serveOptions) introduce(w io.Writer, env *testenv.Env, at testenv.Addresses) {
	fmt.Fprintf(w, "Embedded Service Bus and Cosmos DB. All is kept in memory and gone after Ctrl-C.\n\n")
	fmt.Fprintf(w, "  Service Bus  sb://%s  queue %s: %s\n", at.AMQP, env.Queue.Name, describeQueue(env.Queue))
	fmt.Fprintf(w, "  Management   http://%s/health and /queues\n", at.Management)
	fmt.Fprintf(w, "  Cosmos DB    http://%s  database %s, container %s\n", at.Cosmos, env.Database, env.Container)
	fmt.Fprintf(w, "\nSettings for the worker; paste them into another terminal:\n\n")
	printExports(w, env, at)
	if note := o.note(); note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	worker := workerCommand()
	fmt.Fprintf(w, "\nThen, for example:\n\n")
	fmt.Fprintf(w, "%s run\n", worker)
	fmt.Fprintf(w, "echo '{\"message_id\":\"1042\",\"body\":{\"orderId\":\"1042\",\"amount\":40}}' | %s send\n", worker)
	fmt.Fprintf(w, "curl -s http://%s/queues\n", fromHere(at.Management))
}

func describeQueue(q servicebus.Queue) string {
	duplicates := "no duplicate detection"
	if q.RequiresDuplicateDetection {
		duplicates = fmt.Sprintf("duplicate detection %v", q.DuplicateDetectionHistoryTimeWindow)
	}
	return fmt.Sprintf("lock %v, %d deliveries, %s", q.LockDuration, q.MaxDeliveryCount, duplicates)
}

// printExports prints the settings for a worker on this machine.
func printExports(w io.Writer, env *testenv.Env, at testenv.Addresses) {
	local := strings.NewReplacer(at.AMQP, fromHere(at.AMQP), at.Cosmos, fromHere(at.Cosmos))
	for _, s := range env.Settings() {
		fmt.Fprintf(w, "export %s=%s\n", s.Name, quote(local.Replace(s.Value)))
	}
}

// fromHere is an address by which a program on this machine reaches what listens there. One that stands for every address of
// the machine is no address to connect to, and the worker does not take it for this machine.
func fromHere(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		return address
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// note says who can use the settings when others than this machine are let in.
func (o serveOptions) note() string {
	ip, err := netip.ParseAddr(o.host)
	switch {
	case o.host == "localhost", err == nil && ip.IsLoopback():
		return ""
	case o.host == "", err == nil && ip.IsUnspecified():
		return "Others on the network are let in too. The settings are for this machine, by the address 127.0.0.1: without TLS the worker\ntakes no other."
	}
	return "The worker takes no address without TLS but this machine's own, so it will refuse " + o.host + ".\nTo let in others and use the worker here, give --host 0.0.0.0."
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
