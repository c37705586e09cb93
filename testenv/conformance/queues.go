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

	"github.com/orderworker/orderworker/testenv/servicebus"
)

const queueModule = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

// livePackage is a package of azservicebus with live tests.
type livePackage struct {
	dir   string
	files []string
	// live selects the tests that need a namespace, by their text.
	live *regexp.Regexp
	// leftOut are tests that are not run.
	leftOut []string
}

var (
	// liveClients are the tests of clients, senders, receivers and sessions. The one about WebSockets is left out: it tries for
	// most of a minute before it fails.
	liveClients = livePackage{
		dir: ".", files: []string{
			"admin_client_test.go", "client_list_sessions_live_test.go", "client_test.go", "messageSettler_test.go", "receiver2_test.go", "receiver_test.go",
			"sender_test.go", "session_receiver_test.go",
		},
		live:    regexp.MustCompile(`\b(setupLiveTest|setupLiveTestWithSubscription|createQueue|createSubscription|newAdminClientForTest)\(`),
		leftOut: []string{"TestNewClientWithWebsockets"},
	}
	// liveAdministration are the tests of the administration client.
	liveAdministration = livePackage{
		dir: "admin", files: []string{"admin_client_test.go", "admin_client_topic_filtercount_live_test.go"},
		live: regexp.MustCompile(`\b(newAdminClientForTest|setupLowPrivTest|createAdminClientWithTestTopic|createTestSub|testCreateQueue|testTopicCreation)\(`),
	}
)

// replacements turn the fixture of the live tests into ours: keys instead of identities, and plain HTTP at our address.
func (q *queueBroker) replacements() []replacement {
	return []replacement{
		{"internal/test/test_helpers.go", "if options.UseConnectionString {", "if true {"},
		{"internal/atom/entity_manager.go", `fmt.Sprintf("https://%s/", ns)`, `"http://` + q.admin + `/"`},
	}
}

// prepare copies the module of azservicebus into dir, gives it our fixture, and builds its tests.
func (q *queueBroker) prepare(ctx context.Context, dir string) (*suite, error) {
	source, err := locate(ctx, queueModule)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "azservicebus")
	if err := os.CopyFS(root, os.DirFS(source)); err != nil {
		return nil, fmt.Errorf("copying the upstream tests: %w", err)
	}
	if err := writable(root); err != nil {
		return nil, err
	}
	if err := replaceAll(root, queueModule, q.replacements()); err != nil {
		return nil, err
	}
	s := &suite{dir: filepath.Join(root, q.tests.dir), binary: filepath.Join(dir, "azservicebus.test")}
	if s.tests, err = q.tests.names(s.dir); err != nil {
		return nil, err
	}
	return s, s.build(ctx)
}

// names lists the live tests in a copy of the package.
func (p livePackage) names(dir string) ([]string, error) {
	var names []string
	for _, file := range p.files {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("reading the upstream tests: %w", err)
		}
		for _, f := range strings.Split(string(text), "\nfunc ")[1:] {
			if name := testName.FindStringSubmatch(f); name != nil && !slices.Contains(p.leftOut, name[1]) && p.live.MatchString(f) {
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

var testName = regexp.MustCompile(`^(Test\w+)\(t \*testing\.T\)`)

// queueBroker is a broker on a free port, with its administration API on another.
type queueBroker struct {
	tests    livePackage
	broker   *servicebus.Broker
	admin    string // host and port of the administration API
	server   *http.Server
	settings []string
	stop     func()
}

func (q *queueBroker) environ() []string  { return q.settings }
func (q *queueBroker) refusals() []string { return q.broker.Refusals() }

// liveKeys are the keys whose connection strings the tests ask for, by the end of the variable's name.
var liveKeys = map[string]servicebus.Rights{
	"": servicebus.Manage, "_PREMIUM": servicebus.Manage, "_NO_MANAGE": servicebus.Listen | servicebus.Send,
	"_SEND_ONLY": servicebus.Send, "_LISTEN_ONLY": servicebus.Listen,
}

// openQueues starts an empty broker for the live tests of a package.
func openQueues(tests livePackage) func(context.Context) (subject, error) {
	return func(ctx context.Context) (subject, error) {
		var keys []servicebus.Key
		for name, rights := range liveKeys {
			keys = append(keys, servicebus.Key{Name: "key" + name, Secret: "secret" + name, Rights: rights})
		}
		b, err := servicebus.New(servicebus.Options{Keys: keys})
		if err != nil {
			return nil, err
		}
		doors, err := listenTwice()
		if err != nil {
			b.Close()
			return nil, err
		}
		ctx, stop := context.WithCancel(ctx)
		go func() { _ = b.Serve(ctx, doors[0]) }()   // ends with the broker
		server := &http.Server{Handler: b.Handler()} //nolint:gosec // on loopback, for one program
		go func() { _ = server.Serve(doors[1]) }()   // ends with Close
		q := &queueBroker{tests: tests, broker: b, server: server, admin: doors[1].Addr().String(), stop: stop, settings: []string{
			"AZURE_RECORD_MODE=live", "SERVICEBUS_ENDPOINT=localhost", "SERVICEBUS_ENDPOINT_PREMIUM=localhost",
		}}
		for name := range liveKeys {
			q.settings = append(q.settings, fmt.Sprintf("SERVICEBUS_CONNECTION_STRING%s=Endpoint=sb://%s;SharedAccessKeyName=key%s;SharedAccessKey=secret%s;UseDevelopmentEmulator=true",
				name, doors[0].Addr(), name, name))
		}
		return q, nil
	}
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

func (q *queueBroker) close() error {
	q.stop()
	err := q.server.Close()
	q.broker.Close()
	return err
}
