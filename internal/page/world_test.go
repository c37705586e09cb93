package page_test

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/amqpbroker"
	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/internal/page"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// world is the page over an embedded Service Bus and a store and ledger in memory, on a socket of this machine.
type world struct {
	*servicebus.Broker
	t        *testing.T
	mem      *storetest.Mem
	pipeline *worker.Pipeline
	ledger   *memoryLedger
	review   *deadletter.Reviewer
	site     *httptest.Server
	page     *page.Server
	mu       sync.Mutex
	entry    string // guarded by mu; the path that lets the next browser in, empty when every browser may look
}

// key returns the path that lets the next browser in.
func (w *world) key() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entry
}

// start serves the page with a ledger in memory. Change may change its options before that; hosts are set.
func start(t *testing.T, change func(*page.Options)) *world {
	t.Helper()
	ledger := &memoryLedger{}
	return startWith(t, ledger, ledger, change)
}

// startWith is start with the ledger that actions are recorded in.
func startWith(t *testing.T, kept *memoryLedger, ledger deadletter.Ledger, change func(*page.Options)) *world {
	t.Helper()
	w := &world{t: t, mem: storetest.NewMem(), ledger: kept}
	var err error
	w.Broker, err = servicebus.New(servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{
		{Name: "orders", DefaultMessageTimeToLive: servicebus.Forever, DeadLetteringOnMessageExpiration: true, MaxDeliveryCount: 1},
	}}})
	require.NoError(t, err)
	t.Cleanup(w.Broker.Close)
	b, err := amqpbroker.New(amqpbroker.Options{ConnectionString: w.ConnectionString("embedded.test"), Queue: "orders", Dial: w.Dial})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	w.pipeline, err = worker.NewPipeline(worker.Config{}, w.mem, worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
	}))
	require.NoError(t, err)
	w.review = deadletter.NewReviewer(b, w.pipeline, ledger, deadletter.Settings{Program: "orderworker", Queue: "orders", Duplicates: deadletter.DuplicateDetection{Known: true}})
	w.site = httptest.NewUnstartedServer(nil)
	o := page.Options{Reviewer: w.review, Ledger: w.ledger, Hosts: []string{w.site.Listener.Addr().String()}, Write: true, Actor: "ann"}
	o.Announce = func(path string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.entry = path
	}
	if change != nil {
		change(&o)
	}
	w.page, err = page.New(o)
	require.NoError(t, err)
	w.site.Config.Handler = w.page
	w.site.Start()
	t.Cleanup(func() { w.site.Close(); w.page.Close() })
	return w
}

// message is what is dead-lettered in most tests.
func message(id, body string, properties map[string]any) *amqp.Message {
	m := amqp.NewMessage([]byte(body))
	m.Properties = &amqp.MessageProperties{MessageID: id}
	m.ApplicationProperties = properties
	return m
}

// bury sends messages and dead-letters them with the client of the SDK.
func (w *world) bury(reason string, messages ...*amqp.Message) {
	w.t.Helper()
	for _, m := range messages {
		b, err := m.MarshalBinary()
		require.NoError(w.t, err)
		_, err = w.SendEncoded("orders", b)
		require.NoError(w.t, err)
	}
	client, err := azservicebus.NewClientFromConnectionString(w.ConnectionString("embedded.test"), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return w.Dial(ctx) },
	})
	require.NoError(w.t, err)
	defer func() { _ = client.Close(context.Background()) }()
	r, err := client.NewReceiverForQueue("orders", nil)
	require.NoError(w.t, err)
	description := "The reason, for people."
	for left := len(messages); left > 0; {
		got, err := r.ReceiveMessages(w.t.Context(), left, nil)
		require.NoError(w.t, err)
		for _, m := range got {
			require.NoError(w.t, r.DeadLetterMessage(w.t.Context(), m, &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description}))
		}
		left -= len(got)
	}
}

// apply stores a message as the worker does.
func (w *world) apply(id, body string) {
	w.t.Helper()
	b, err := message(id, body, nil).MarshalBinary()
	require.NoError(w.t, err)
	require.True(w.t, w.pipeline.Process(w.t.Context(), deadletter.Parse(b).Received()).Committed())
}

func (w *world) dead() int {
	w.t.Helper()
	c, err := w.Counts("orders/$DeadLetterQueue")
	require.NoError(w.t, err)
	return c.Total()
}

// story buries one message of each common verdict, hostile ones among them, and returns their number.
func (w *world) story() int {
	w.apply("1001", `{"orderId":"1001","amount":40}`)
	w.apply("1002", `{"orderId":"1002","customer":{"name":"Ada","city":"Bern"},"amount":40,"note":"by noon"}`)
	w.bury("MaxDeliveryCountExceeded",
		message("1001", `{"amount":4e1,"orderId":"1001"}`, nil),
		message("1003", `{"orderId":"1003","customer":{"name":"Grace","city":"Basel"},"amount":12.5}`, map[string]any{"tenant": "t1", "try": int32(3), "nothing": nil}),
		message("1004", `{"orderId":"1004","amount":99}`, nil))
	w.bury("ContentConflict", message("1002", `{"orderId":"1002","customer":{"name":"Ada","city":"Chur"},"amount":55,"express":true}`, nil))
	w.bury("NotJSON", message(hostileID, hostile, map[string]any{hostile: hostile}))
	return 5
}

// tale buries a message with every property that is shown and no text, and one of a key that the story has.
func (w *world) tale() {
	subject, session, kind := "Invoice", "desk-7", "application/json"
	m := message("1006", strings.Repeat("\x00\xff{}abc", 100), map[string]any{"a-name-without-any-place-to-break-it-of-a-property": strings.Repeat("x", 400)})
	m.Properties.Subject, m.Properties.GroupID, m.Properties.ContentType, m.Properties.CorrelationID = &subject, &session, &kind, "corr-9"
	m.Header = &amqp.MessageHeader{TTL: time.Hour}
	w.bury("NotUTF8", m, message("1002", `{"orderId":"1002","amount":`+strings.Repeat("9", 300)+`}`, nil))
}

// aPlan makes a plan for everything and returns its path.
func (w *world) aPlan() string {
	v := w.visit()
	_, body := v.do(http.MethodPost, "/plans", url.Values{"token": {v.token("/")}, "scope": {"all"}, "acknowledged": {"yes"}}, nil)
	path := jobPath(w.t, body)
	v.until(path, "Apply it")
	return path
}

// The texts that try to be more than text.
const (
	hostile   = `"><script>document.title='owned'</script><img src=x onerror="document.title='owned'"><iframe src="javascript:alert(1)"></iframe>` + "\u202e\x1b[31m{{.}}"
	hostileID = `<svg/onload=document.title='owned'>`
)

// memoryLedger keeps entries in memory.
type memoryLedger struct {
	mu      sync.Mutex
	entries []deadletter.Entry
}

func (l *memoryLedger) Append(_ context.Context, e deadletter.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	return nil
}

func (l *memoryLedger) Entries(_ context.Context, q deadletter.Query) iter.Seq2[deadletter.Entry, error] {
	l.mu.Lock()
	entries := slices.Clone(l.entries)
	l.mu.Unlock()
	return func(yield func(deadletter.Entry, error) bool) {
		for _, e := range slices.Backward(entries) {
			if q.Matches(e) && !yield(e, nil) {
				return
			}
		}
	}
}

// said returns what the ledger has, a word for each entry.
func (l *memoryLedger) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.entries {
		out = append(out, fmt.Sprintf("%d %s %s by %s for %s", e.Sequence, e.Action, e.State, e.Actor, e.Why))
	}
	return strings.Join(out, "\n")
}
