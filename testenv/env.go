// Package testenv is one environment for the worker: an embedded Service Bus and an embedded Cosmos DB that share a plan of
// faults and a history.
//
// It has two doors with the same code behind them. In memory, for tests in testing/synctest bubbles: [Env.Dial] goes into
// the NewWebSocketConn of azservicebus, and the Transport of [Env.Account] into the client options of azcosmos. On loopback
// sockets, for the demonstration and for real processes: [Env.Serve] listens, and [Env.Settings] are the worker's variables,
// the same that it has in Azure.
//
// Nothing here imports an Azure SDK or the worker, so that a mistake that they share with the environment cannot cancel
// itself out. Production code never imports this package.
package testenv

import (
	"cmp"
	"context"
	_ "embed" // config.json
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// DefaultConfig is the configuration of Service Bus that is used unless another is given, in the format of the official
// emulator.
//
//go:embed config.json
var DefaultConfig string

// Options say what an environment is like. The zero value is the queue of [DefaultConfig] and the container orders/orders.
type Options struct {
	// Config is a configuration in the format of the official emulator's Config.json. Defaults to DefaultConfig.
	Config io.Reader
	// Queue is the queue of the worker, or the subscription as topic/Subscriptions/name. Defaults to the first queue of the configuration.
	Queue string
	// Adjust changes the queues of the configuration, for example to shorten their locks. It may be nil.
	Adjust func(*servicebus.Queue)
	// Database and Container hold the documents. Default to orders.
	Database, Container string
	// PartitionKey is the path of the partition key. Defaults to /pk.
	PartitionKey string
	// DefaultTTL is the time to live of documents that have none of their own, in seconds; -1 is never. Defaults to -1.
	DefaultTTL int
	// Faults plans what goes wrong. Defaults to nothing.
	Faults *fault.Plan
	// History records what happens. Defaults to a new log without a limit.
	History *history.Log
	// Broker and Account are further options of the two emulators. What is named above wins.
	Broker  servicebus.Options
	Account cosmosdb.Options
}

// Env is a running environment. Its methods are safe for concurrent use.
type Env struct {
	Broker  *servicebus.Broker
	Account *cosmosdb.Account
	Faults  *fault.Plan
	History *history.Log
	// Queue is the configuration of the worker's queue.
	Queue servicebus.Queue
	// Database and Container hold the documents.
	Database, Container string

	doors *doors
}

// New makes an environment. Inside a testing/synctest bubble it must be made and closed in the bubble. Options that make no
// sense are reported all at once.
func New(o Options) (*Env, error) {
	o.Database, o.Container = cmp.Or(o.Database, "orders"), cmp.Or(o.Container, "orders")
	o.PartitionKey = cmp.Or(o.PartitionKey, "/pk")
	o.DefaultTTL = cmp.Or(o.DefaultTTL, -1)
	if o.Faults == nil {
		o.Faults = fault.Script()
	}
	if o.History == nil {
		o.History = history.New()
	}
	config, queue, err := readQueues(o)
	if err != nil {
		return nil, err
	}
	o.Broker.Config, o.Broker.Faults, o.Broker.History = config, o.Faults, o.History
	o.Account.Faults, o.Account.History = o.Faults, o.History
	broker, brokerErr := servicebus.New(o.Broker)
	account, accountErr := newAccount(o)
	if err := errors.Join(brokerErr, accountErr); err != nil {
		return nil, err
	}
	return &Env{
		Broker: broker, Account: account, Faults: o.Faults, History: o.History, Queue: queue,
		Database: o.Database, Container: o.Container, doors: &doors{},
	}, nil
}

// readQueues returns the adjusted configuration, and the worker's queue in it.
func readQueues(o Options) (servicebus.Config, servicebus.Queue, error) {
	if o.Config == nil {
		o.Config = strings.NewReader(DefaultConfig)
	}
	config, err := servicebus.ReadConfig(o.Config)
	if err != nil {
		return config, servicebus.Queue{}, err
	}
	if o.Adjust != nil {
		for i := range config.Queues {
			o.Adjust(&config.Queues[i])
		}
	}
	if topic, name, ok := strings.Cut(o.Queue, subscriptions); ok {
		q, err := subscriptionOf(config, topic, name, o.Adjust)
		return config, q, err
	}
	if len(config.Queues) == 0 {
		return config, servicebus.Queue{}, errors.New("the configuration has no queue")
	}
	i := 0
	if o.Queue != "" {
		i = slices.IndexFunc(config.Queues, func(q servicebus.Queue) bool { return strings.EqualFold(q.Name, o.Queue) })
	}
	if i < 0 {
		return config, servicebus.Queue{}, fmt.Errorf("the configuration has no queue %q", o.Queue)
	}
	return config, withDefaults(&config.Queues[i]), nil
}

// withDefaults fills in what the worker must know of its queue.
func withDefaults(q *servicebus.Queue) servicebus.Queue {
	q.LockDuration = cmp.Or(q.LockDuration, time.Minute)
	q.MaxDeliveryCount = cmp.Or(q.MaxDeliveryCount, 10)
	q.DuplicateDetectionHistoryTimeWindow = cmp.Or(q.DuplicateDetectionHistoryTimeWindow, 10*time.Minute)
	return *q
}

// subscriptionOf returns a subscription of the configuration, adjusted, under its path.
func subscriptionOf(config servicebus.Config, topic, name string, adjust func(*servicebus.Queue)) (servicebus.Queue, error) {
	for _, t := range config.Topics {
		for i := range t.Subscriptions {
			q := &t.Subscriptions[i].Queue
			if !strings.EqualFold(t.Name, topic) || !strings.EqualFold(q.Name, name) {
				continue
			}
			if adjust != nil {
				adjust(q)
			}
			own := withDefaults(q)
			own.Name = t.Name + subscriptions + q.Name
			return own, nil
		}
	}
	return servicebus.Queue{}, fmt.Errorf("the configuration has no subscription %q of a topic %q", name, topic)
}

func newAccount(o Options) (*cosmosdb.Account, error) {
	account, err := cosmosdb.New(o.Account)
	if err != nil {
		return nil, err
	}
	err = account.CreateContainer(o.Database, cosmosdb.ContainerSpec{
		ID: o.Container, PartitionKey: []string{o.PartitionKey}, KeyVersion: 2, DefaultTTL: o.DefaultTTL,
		IndexNothing: true, // as in the templates: documents are read by id alone
	})
	return account, err
}

// Dial opens an in-memory connection to Service Bus.
func (e *Env) Dial(ctx context.Context) (net.Conn, error) { return e.Broker.Dial(ctx) }

// Stored returns the ids of all documents in the worker's container.
func (e *Env) Stored() []string {
	ids := []string{}
	for _, d := range e.Account.Documents(e.Database, e.Container) {
		ids = append(ids, d.ID)
	}
	return ids
}

// Expect is what always holds in this environment, for [history.Check]: what is stored, and how long locks last.
func (e *Env) Expect() history.Expect {
	return history.Expect{Stored: e.Stored(), LockDuration: e.Queue.LockDuration}
}

// Close stops serving, cuts all connections and waits for every goroutine of the environment. What happened can still be
// read afterwards.
func (e *Env) Close() error {
	err := e.doors.close()
	e.Broker.Close()
	return errors.Join(err, e.Account.Close(), e.doors.wait())
}
