package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
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

There are queues and topics with subscriptions, rules, sessions, dead-letter queues, locks, schedules, duplicate detection
and the administration API, and containers with batches, patches, queries, change feed and time to live. There are no
transactions, stored procedures, JOIN, GROUP BY, DISTINCT or aggregates but COUNT. What is missing is refused
with an error, and printed here. All is kept in memory and gone at the end.`,
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
		return withFix(err)
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

// withFix adds what to do about a port in use.
func withFix(err error) error {
	if _, ok := errors.AsType[*testenv.PortInUseError](err); !ok {
		return err
	}
	return fmt.Errorf("%w\nStop that program (is another devenv or an emulator running?), or take other ports with --port-offset 1000", err)
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
