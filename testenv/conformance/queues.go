package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/servicebus"
)

const queueModule = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

// queueFixture is what the live tests of azservicebus get instead of an administration client: queues and topics that exist
// already, and a detach where the tests update a queue to provoke one.
const queueFixture = `package azservicebus

import (
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

var embeddedQueues atomic.Int64

func embeddedQueue(t *testing.T, p *admin.QueueProperties) (string, func()) {
	kind := "queue"
	switch {
	case p == nil:
	case p.RequiresSession != nil && *p.RequiresSession:
		kind = "sessions"
	case p.LockDuration != nil:
		kind = "lock-" + *p.LockDuration
	}
	return fmt.Sprintf("%s-%d", kind, embeddedQueues.Add(1)), func() {}
}

func embeddedSubscription(p *admin.SubscriptionProperties) (string, func()) {
	kind := "topic"
	if p != nil && p.RequiresSession != nil && *p.RequiresSession {
		kind = "topic-of-sessions"
	}
	return fmt.Sprintf("%s-%d", kind, embeddedQueues.Add(1)), func() {}
}

func embeddedUpdate(_ *admin.Client, queue string) (any, error) {
	resp, err := http.Get(os.Getenv("EMBEDDED_FIXTURE") + queue)
	if err == nil {
		err = resp.Body.Close()
	}
	return nil, err
}
`

// queueReplacements turn the fixture of the live tests into ours.
var queueReplacements = []replacement{
	{"liveTestHelpers_test.go", "\tadminClient := newAdminClientForTest(t, options)\n\treturn createQueueUsingClient(t, adminClient, queueProperties)\n", "\treturn embeddedQueue(t, queueProperties)\n"},
	{"liveTestHelpers_test.go", "subscriptionProperties *admin.SubscriptionProperties) (string, func()) {\n", "subscriptionProperties *admin.SubscriptionProperties) (string, func()) {\n\tif true {\n\t\treturn embeddedSubscription(subscriptionProperties)\n\t}\n"},
	{"internal/test/test_helpers.go", "if options.UseConnectionString {", "if true {"},
	{"sender_test.go", "adminClient.UpdateQueue(context.Background(), queueName, admin.QueueProperties{}, nil)", "embeddedUpdate(adminClient, queueName)"},
	{"session_receiver_test.go", "adminClient.UpdateQueue(context.Background(), queueName, admin.QueueProperties{\n\t\tRequiresSession: to.Ptr(true),\n\t}, nil)", "embeddedUpdate(adminClient, queueName+\"?later\")"},
	{"receiver_test.go", "adminClient.UpdateQueue(context.Background(), queueName, admin.QueueProperties{}, nil)", "embeddedUpdate(adminClient, queueName)"},
}

// prepare copies the module of azservicebus into dir, gives it our fixture, and builds its tests.
func (*queueBroker) prepare(ctx context.Context, dir string) (*suite, error) {
	source, err := locate(ctx, queueModule)
	if err != nil {
		return nil, err
	}
	s := &suite{dir: filepath.Join(dir, "azservicebus"), binary: filepath.Join(dir, "azservicebus.test")}
	if err := os.CopyFS(s.dir, os.DirFS(source)); err != nil {
		return nil, fmt.Errorf("copying the upstream tests: %w", err)
	}
	if err := writable(s.dir); err != nil {
		return nil, err
	}
	if err := replaceAll(s.dir, queueModule, queueReplacements); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "embedded_test.go"), []byte(queueFixture), 0o600); err != nil {
		return nil, fmt.Errorf("writing the fixture: %w", err)
	}
	if s.tests, err = queueTests(s.dir); err != nil {
		return nil, err
	}
	return s, s.build(ctx)
}

// queueTests lists the tests that make a queue or a topic, in the files about clients, senders and receivers. The one about
// WebSockets is left out: it tries for most of a minute before it fails.
func queueTests(dir string) ([]string, error) {
	var names []string
	for _, file := range []string{
		"client_list_sessions_live_test.go", "client_test.go", "messageSettler_test.go", "receiver2_test.go", "receiver_test.go", "sender_test.go",
		"session_receiver_test.go",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("reading the upstream tests: %w", err)
		}
		for _, f := range strings.Split(string(text), "\nfunc ")[1:] {
			if name := testName.FindStringSubmatch(f); name != nil && name[1] != "TestNewClientWithWebsockets" && makesQueue.MatchString(f) {
				names = append(names, name[1])
			}
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the upstream package has no live tests")
	}
	slices.Sort(names)
	return names, nil
}

var (
	testName   = regexp.MustCompile(`^(Test\w+)\(t \*testing\.T\)`)
	makesQueue = regexp.MustCompile(`\b(setupLiveTest|setupLiveTestWithSubscription|createQueue|createSubscription)\(`)
)

// queueBroker is a broker on a free port with the queues of the fixture, and the server of the fixture.
type queueBroker struct {
	broker   *servicebus.Broker
	fixture  *http.Server
	settings []string
	stop     func()
}

func (q *queueBroker) environ() []string  { return q.settings }
func (q *queueBroker) refusals() []string { return q.broker.Refusals() }

// openQueues starts a broker. The tests ask for locks of five seconds, of five minutes, or of the default.
func openQueues(ctx context.Context) (subject, error) {
	var config servicebus.Config
	for i := 1; i <= 200; i++ {
		for prefix, lock := range map[string]time.Duration{"queue": time.Minute, "lock-PT5S": 5 * time.Second, "lock-PT5M": 5 * time.Minute} {
			config.Queues = append(config.Queues, servicebus.Queue{
				Name: fmt.Sprintf("%s-%d", prefix, i), LockDuration: lock, DefaultMessageTimeToLive: servicebus.Forever,
			})
		}
	}
	for i := 1; i <= 200; i++ {
		config.Queues = append(config.Queues, servicebus.Queue{
			Name: fmt.Sprintf("sessions-%d", i), RequiresSession: true, DefaultMessageTimeToLive: servicebus.Forever,
		})
		for prefix, sessions := range map[string]bool{"topic": false, "topic-of-sessions": true} {
			config.Topics = append(config.Topics, servicebus.Topic{
				Name: fmt.Sprintf("%s-%d", prefix, i), DefaultMessageTimeToLive: servicebus.Forever,
				Subscriptions: []servicebus.Subscription{{Queue: servicebus.Queue{Name: "sub", RequiresSession: sessions, DefaultMessageTimeToLive: servicebus.Forever}}},
			})
		}
	}
	b, err := servicebus.New(servicebus.Options{Config: config})
	if err != nil {
		return nil, err
	}
	doors, err := listenTwice()
	if err != nil {
		b.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() { _ = b.Serve(ctx, doors[0]) }()                                                                              // ends with the broker
	fixture := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { detachAll(b, w, r) })} //nolint:gosec // on loopback, for one program
	go func() { _ = fixture.Serve(doors[1]) }()                                                                             // ends with Close
	connection := b.ConnectionString(doors[0].Addr().String())
	q := &queueBroker{broker: b, fixture: fixture, stop: stop, settings: []string{
		"AZURE_RECORD_MODE=live", "EMBEDDED_FIXTURE=http://" + doors[1].Addr().String() + "/",
		"SERVICEBUS_ENDPOINT=localhost", "SERVICEBUS_ENDPOINT_PREMIUM=localhost",
	}}
	for _, name := range []string{"", "_PREMIUM", "_NO_MANAGE", "_SEND_ONLY", "_LISTEN_ONLY"} {
		q.settings = append(q.settings, "SERVICEBUS_CONNECTION_STRING"+name+"="+connection)
	}
	return q, nil
}

func listenTwice() ([2]net.Listener, error) {
	var doors [2]net.Listener
	for i := range doors {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return doors, fmt.Errorf("opening a port: %w", err)
		}
		doors[i] = l
	}
	return doors, nil
}

// laterBy is how long after the answer the links of a queue are detached where a test counts on receiving before it.
const laterBy = 300 * time.Millisecond

// detachAll detaches every link of a queue, as an update of a queue does in the service: now, or some time after the answer.
func detachAll(b *servicebus.Broker, w http.ResponseWriter, r *http.Request) {
	queue := strings.Trim(r.URL.Path, "/")
	detach := func() (err error) {
		for _, kind := range []servicebus.LinkKind{servicebus.Receivers, servicebus.Senders, servicebus.ManagementLinks} {
			_, one := b.Detach(queue, kind, "amqp:link:detach-forced")
			err = errors.Join(err, one)
		}
		return err
	}
	if r.URL.RawQuery == "later" {
		time.AfterFunc(laterBy, func() { _ = detach() }) // nobody waits for it
		return
	}
	if err := detach(); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
	}
}

func (q *queueBroker) close() error {
	q.stop()
	err := q.fixture.Close()
	q.broker.Close()
	return err
}
