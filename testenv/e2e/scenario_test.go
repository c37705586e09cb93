package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/shop"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/identity"
)

// site is a namespace and an account, seen only through the public clients: the embedded ones, Microsoft's emulators, or the
// real ones.
type site struct {
	serviceBus func() (*azservicebus.Client, error)
	queue      string
	cosmos     *azcosmos.Client
	store      cosmosstore.Options
}

// TestTheScenarioHoldsOnTheEmbeddedEnvironment is the scenario of official_scenario_test.go where it can always run. Duplicate
// detection is on, as in the templates.
func TestTheScenarioHoldsOnTheEmbeddedEnvironment(t *testing.T) {
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	at, err := env.Serve(t.Context(), testenv.Addresses{})
	require.NoError(t, err)
	t.Cleanup(func() { // after the worker has stopped
		require.NoError(t, env.Close())
		require.Empty(t, env.Broker.Refusals())
		require.Empty(t, env.Account.Refusals())
	})
	endpoint := "http://" + at.Cosmos
	credential, err := azcosmos.NewKeyCredential(env.Account.Key())
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(endpoint, credential, nil)
	require.NoError(t, err)
	perform(t, site{
		serviceBus: func() (*azservicebus.Client, error) {
			return azservicebus.NewClientFromConnectionString(env.Broker.ConnectionString(at.AMQP), nil)
		},
		queue: "orders", cosmos: client,
		store: cosmosstore.Options{Endpoint: endpoint, Key: cosmosstore.Key(env.Account.Key()), Database: "orders", Container: "orders"},
	})
}

// perform sends orders, runs the worker, and looks at the results, all through the public clients. The key is a property, and
// every message has a MessageId of its own, so that the queue's duplicate detection lets the repeats through.
func perform(t *testing.T, s site) {
	p := newPlay(t, s)
	p.send("new", "1", `{"orderId":"1","customer":"Ada","amount":40}`)
	p.giveBack("new")
	p.startWorker()
	p.completed("new")
	first, etag := p.document("1", "1")
	require.JSONEq(t, `{"orderId":"1","customer":"Ada","amount":40}`, string(first["order"]))

	p.send("again", "1", `{"orderId":"1","customer":"Ada","amount":40}`)
	p.send("reordered", "1", `{ "amount": 4.0e1, "customer": "Ada", "orderId": "1" }`)
	p.send("changed", "1", `{"orderId":"1","customer":"Ada","amount":400}`)
	p.send("lines", "2", `{"orderId":"2","lines":[{"sku":"tea"},{"sku":"pot"}]}`)
	p.send("lines again", "2", `{"orderId":"2","lines":[{"sku":"tea"},{"sku":"pot"}]}`)
	p.send("unreadable", "3", `{"orderId":`)
	for _, name := range []string{"again", "reordered", "lines", "lines again"} {
		p.completed(name)
	}
	conflict := p.deadLettered("changed")
	require.Equal(t, "ContentConflict", *conflict.DeadLetterReason)
	require.Equal(t, "/amount", conflict.ApplicationProperties[worker.PropertyPaths])
	require.Equal(t, "NotJSON", *p.deadLettered("unreadable").DeadLetterReason)

	_, now := p.document("1", "1")
	require.Equal(t, etag, now, "nobody has touched the first order")
	order, _ := p.document("2", "2")
	require.JSONEq(t, `{"orderId":"2","lines":[{"sku":"tea"},{"sku":"pot"}]}`, string(order["order"]))
	for part, want := range map[string]string{"line-1": `{"sku":"tea"}`, "line-2": `{"sku":"pot"}`} {
		line, _ := p.document("2", "2", part)
		require.JSONEq(t, want, string(line["line"]))
	}
	require.Equal(t, http.StatusNotFound, p.read("3", p.id("3")), "nothing was stored of what nobody can read")
}

// play is one run of the scenario. Its names and keys are unlike those of any other run.
type play struct {
	t         *testing.T
	site      site
	run       string
	client    *azservicebus.Client
	container *azcosmos.ContainerClient
	written   [][2]string // partition key and id
}

// playLimit bounds each wait. Real services take seconds; only a failure takes so long.
const playLimit = 2 * time.Minute

func newPlay(t *testing.T, s site) *play {
	t.Helper()
	p := &play{t: t, site: s, run: "e2e-" + strings.ToLower(rand.Text()[:10])}
	var err error
	p.client, err = s.serviceBus()
	require.NoError(t, err)
	p.container, err = s.cosmos.NewContainer(s.store.Database, s.store.Container)
	require.NoError(t, err)
	t.Cleanup(p.cleanUp)
	return p
}

func (p *play) id(key string) string { return p.run + "-" + key }

func (p *play) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), playLimit)
	p.t.Cleanup(cancel)
	return ctx
}

func (p *play) send(name, key, body string) {
	p.t.Helper()
	sender, err := p.client.NewSender(p.site.queue, nil)
	require.NoError(p.t, err)
	id := p.id(name)
	require.NoError(p.t, sender.SendMessage(p.context(), &azservicebus.Message{
		MessageID: &id, Body: []byte(body), ApplicationProperties: map[string]any{"order-key": p.id(key)},
	}, nil))
	require.NoError(p.t, sender.Close(p.context()))
}

// giveBack receives messages until it has the named one, and gives all of them back, so that the worker's delivery is not
// the first.
func (p *play) giveBack(name string) {
	p.t.Helper()
	receiver, err := p.client.NewReceiverForQueue(p.site.queue, nil)
	require.NoError(p.t, err)
	for found := false; !found; {
		messages, err := receiver.ReceiveMessages(p.context(), 1, nil)
		require.NoError(p.t, err)
		for _, m := range messages {
			found = found || m.MessageID == p.id(name)
			require.NoError(p.t, receiver.AbandonMessage(p.context(), m, nil))
		}
	}
	require.NoError(p.t, receiver.Close(p.context()))
}

func (p *play) startWorker() {
	p.t.Helper()
	store, err := cosmosstore.Open(p.context(), p.site.store)
	require.NoError(p.t, err)
	source, err := admission.ParseKeySource("property:order-key")
	require.NoError(p.t, err)
	w, err := worker.New(worker.Config{Admission: admission.Config{KeySource: source}}, worker.NewBroker(p.site.serviceBus, p.site.queue), store, worker.HandlerFunc(shop.Order))
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		require.NoError(p.t, <-done)
		require.NoError(p.t, store.Close())
	})
}

// completed waits until a message is on neither queue.
func (p *play) completed(name string) {
	p.t.Helper()
	p.until(name+" to be completed", func() bool { return p.peek(name, nil) == nil })
	require.Nil(p.t, p.peek(name, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}), "%s was dead-lettered", name)
}

func (p *play) deadLettered(name string) *azservicebus.ReceivedMessage {
	p.t.Helper()
	var found *azservicebus.ReceivedMessage
	p.until(name+" to be dead-lettered", func() bool {
		found = p.peek(name, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		return found != nil
	})
	return found
}

func (p *play) until(what string, holds func() bool) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(playLimit); !holds(); <-tick.C {
		require.True(p.t, time.Now().Before(limit), "waited too long for %s", what)
	}
}

// peek looks through a queue for a message.
func (p *play) peek(name string, o *azservicebus.ReceiverOptions) *azservicebus.ReceivedMessage {
	p.t.Helper()
	receiver, err := p.client.NewReceiverForQueue(p.site.queue, o)
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, receiver.Close(p.context())) }()
	for from := int64(0); ; {
		messages, err := receiver.PeekMessages(p.context(), 100, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
		require.NoError(p.t, err)
		if len(messages) == 0 {
			return nil
		}
		for _, m := range messages {
			if m.MessageID == p.id(name) {
				return m
			}
			from = *m.SequenceNumber + 1
		}
	}
}

// document reads the document of a key, or one of its parts.
func (p *play) document(partition, key string, part ...string) (members map[string]json.RawMessage, etag azcore.ETag) {
	p.t.Helper()
	id := p.id(key)
	if len(part) > 0 {
		id = identity.PartDocumentID(id, part[0])
	}
	reply, err := p.container.ReadItem(p.context(), azcosmos.NewPartitionKeyString(p.id(partition)), id, nil)
	require.NoError(p.t, err)
	p.written = append(p.written, [2]string{p.id(partition), id})
	require.NoError(p.t, json.Unmarshal(reply.Value, &members))
	return members, reply.ETag
}

// read returns the status of a read.
func (p *play) read(partition, id string) int {
	p.t.Helper()
	_, err := p.container.ReadItem(p.context(), azcosmos.NewPartitionKeyString(p.id(partition)), id, nil)
	refused := new(azcore.ResponseError)
	require.ErrorAs(p.t, err, &refused)
	return refused.StatusCode
}

// cleanUp removes what the run has left. What it cannot remove stays under names that no other run uses.
func (p *play) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), playLimit)
	defer cancel()
	for _, at := range p.written {
		_, _ = p.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(at[0]), at[1], nil)
	}
	if err := p.client.Close(ctx); err != nil {
		p.t.Log(err)
	}
}
