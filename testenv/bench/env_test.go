package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// The latencies of a round trip in a region, as the wanted figures assume them.
const (
	brokerLatency = 20 * time.Millisecond
	storeLatency  = 10 * time.Millisecond
)

// env is an environment with messages on its queue, for one consumer.
type env struct {
	*testenv.Env
	tb testing.TB
	// at is where the environment serves on sockets; empty in bubbles, which use the doors in memory.
	at testenv.Addresses
}

// newEnv makes an environment whose round trips take time, or none.
func newEnv(tb testing.TB, slow bool, log *history.Log) *env {
	tb.Helper()
	plan := fault.Script()
	if slow {
		for _, op := range []string{history.Lock, history.Complete, history.DeadLetter, history.Abandon, history.Renew} {
			plan.Add(fault.On(op).Always().Before(fault.Wait(brokerLatency)))
		}
		for _, op := range []string{history.CreateDocument, history.ExecuteBatch, history.ReadDocument, history.UpsertDocument} {
			plan.Add(fault.On(op).Always().Before(fault.Wait(storeLatency)))
		}
	}
	embedded, err := testenv.New(testenv.Options{Faults: plan, History: log, Adjust: func(q *servicebus.Queue) { q.RequiresDuplicateDetection = false }})
	require.NoError(tb, err)
	return &env{Env: embedded, tb: tb}
}

// newSocketEnv is newEnv on loopback sockets, as real programs meet it.
func newSocketEnv(tb testing.TB, slow bool, log *history.Log) *env {
	tb.Helper()
	s := newEnv(tb, slow, log)
	at, err := s.Serve(context.Background(), testenv.Addresses{})
	require.NoError(tb, err)
	s.at = at
	return s
}

// fill puts n new orders on the queue, each of about a kilobyte.
func (s *env) fill(n int) {
	s.tb.Helper()
	note := strings.Repeat("x", 900)
	for i := range n {
		s.send(fmt.Sprintf("order-%d", i), fmt.Sprintf(`{"orderId":"order-%d","customer":"customer-%d","amount":%d.25,"note":%q}`, i, i%100, i%1000, note))
	}
}

func (s *env) send(id, body string) {
	s.tb.Helper()
	_, err := s.Broker.Send("orders", amqp.Message{Properties: &amqp.Properties{MessageID: id}, BodyKind: amqp.BodyData, Data: [][]byte{[]byte(body)}})
	require.NoError(s.tb, err)
}

// left is the number of messages on the queue.
func (s *env) left() int {
	s.tb.Helper()
	c, err := s.Broker.Counts("orders")
	require.NoError(s.tb, err)
	return c.Active + c.Locked
}

// client returns a client with a connection of its own.
func (s *env) client() (*azservicebus.Client, error) {
	if s.at.AMQP != "" {
		return azservicebus.NewClientFromConnectionString(s.Broker.ConnectionString(s.at.AMQP), nil)
	}
	return azservicebus.NewClientFromConnectionString(s.Broker.ConnectionString("embedded.example"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return s.Dial(ctx) },
	})
}

func (s *env) endpoint() string {
	if s.at.Cosmos != "" {
		return "http://" + s.at.Cosmos
	}
	return "http://localhost:8081/"
}

// worker starts the worker on the job of the bare loop, and returns what stops it and waits for it.
func (s *env) worker(concurrency int) (stop func()) { return s.workerOf(concurrency, order) }

// workerOf starts the worker with a handler.
func (s *env) workerOf(concurrency int, h worker.HandlerFunc) (stop func()) {
	s.tb.Helper()
	return s.workerWith(worker.Config{Concurrency: concurrency}, false, h)
}

// workerWith starts the worker with a configuration, with inbox records of their own or without.
func (s *env) workerWith(c worker.Config, records bool, h worker.HandlerFunc) (stop func()) {
	s.tb.Helper()
	options := cosmosstore.Options{Endpoint: s.endpoint(), Key: cosmosstore.Key(s.Account.Key()), Database: "orders", Container: "orders", InboxRecords: records}
	if s.at.Cosmos == "" {
		options.Transport = transport{s}
	}
	store, err := cosmosstore.Open(context.Background(), options)
	require.NoError(s.tb, err)
	w, err := worker.New(c, worker.NewBroker(s.client, "orders"), store, h)
	require.NoError(s.tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(s.tb, <-done)
		require.NoError(s.tb, store.Close())
	}
}

// loop starts what people write by hand: receive as many as there are free slots, create, complete. It checks nothing and
// survives nothing, so nothing can be faster with the same clients and as many slots.
func (s *env) loop(concurrency int) (stop func()) {
	s.tb.Helper()
	return s.loopOf(concurrency, byHandCreate)
}

// byHand does what a message asks for, as people write it by hand.
type byHand func(ctx context.Context, container *azcosmos.ContainerClient, m *azservicebus.ReceivedMessage) error

// loopOf is loop with something else than a create.
func (s *env) loopOf(concurrency int, work byHand) (stop func()) {
	s.tb.Helper()
	client, err := s.client()
	require.NoError(s.tb, err)
	receiver, err := client.NewReceiverForQueue("orders", nil)
	require.NoError(s.tb, err)
	container := s.container()
	ctx, cancel := context.WithCancel(context.Background())
	free := make(chan struct{}, concurrency)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			free <- struct{}{}
			n := 1
			for ; len(free) < concurrency; n++ {
				free <- struct{}{}
			}
			messages, _ := receiver.ReceiveMessages(ctx, n, nil)
			for range n - len(messages) {
				<-free
			}
			for _, m := range messages {
				go func() {
					defer func() { <-free }()
					if work(context.Background(), container, m) == nil {
						_ = receiver.CompleteMessage(context.Background(), m, nil)
					}
				}()
			}
		}
		for range concurrency {
			free <- struct{}{}
		}
	}()
	return func() {
		cancel()
		<-ended
		require.NoError(s.tb, client.Close(context.Background()))
	}
}

// byHandCreate creates one document. What fails is left to its lock; the run then never ends, and fails.
func byHandCreate(ctx context.Context, container *azcosmos.ContainerClient, m *azservicebus.ReceivedMessage) error {
	document, err := json.Marshal(map[string]any{"id": m.MessageID, "pk": m.MessageID, "order": json.RawMessage(m.Body)})
	if err != nil {
		return err
	}
	_, err = container.CreateItem(ctx, azcosmos.NewPartitionKeyString(m.MessageID), document, nil)
	return err
}

func (s *env) container() *azcosmos.ContainerClient {
	s.tb.Helper()
	credential, err := azcosmos.NewKeyCredential(s.Account.Key())
	require.NoError(s.tb, err)
	options := &azcosmos.ClientOptions{}
	if s.at.Cosmos == "" {
		options.ClientOptions = azcore.ClientOptions{Transport: transport{s}}
	}
	client, err := azcosmos.NewClientWithKey(s.endpoint(), credential, options)
	require.NoError(s.tb, err)
	container, err := client.NewContainer("orders", "orders")
	require.NoError(s.tb, err)
	return container
}

type transport struct{ env *env }

func (t transport) Do(r *http.Request) (*http.Response, error) {
	return t.env.Account.Transport().Do(r)
}

// order makes one document of an order, as the bare loop does.
func order(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
}

// orders makes one document of an order, and one of each of its lines.
func orders(_ context.Context, m worker.Message) (worker.Effects, error) {
	var body struct {
		Lines []json.RawMessage `json:"lines"`
	}
	if err := json.Unmarshal(m.Body, &body); err != nil {
		return worker.Effects{}, err
	}
	documents := []worker.Document{{Type: "order", Content: m.Body}}
	for i, line := range body.Lines {
		documents = append(documents, worker.Document{Name: fmt.Sprintf("line-%d", i+1), Type: "line", Content: line})
	}
	return worker.Create(documents...), nil
}
