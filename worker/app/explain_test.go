package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
)

// peer serves connections on loopback, each with f, and returns its address.
func peer(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
	return l.Addr().String()
}

func TestAPeerThatIsNoBrokerIsToldFromOneThatIsAway(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil)
	t.Cleanup(web.Close)
	for _, tt := range []struct {
		name, address string
		emulator      bool
		want          []string
	}{
		{"nobody listens", unused(t), true, []string{"cannot be reached", "connection refused", "firewall"}},
		{"it speaks no TLS", peer(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.6 and more of the same\r\n") }), false,
			[]string{"does not answer as Service Bus does", "TLS", "UseDevelopmentEmulator=true"}},
		{"it speaks TLS", peer(t, func(c net.Conn) { _ = tls.Server(c, &tls.Config{}).Handshake() }), true, []string{"does not answer as Service Bus does", "UseDevelopmentEmulator"}},
		{"it hangs up", peer(t, func(net.Conn) {}), true, []string{"does not answer as Service Bus does"}},
		{"another authority", web.Listener.Addr().String(), false, []string{"certificate", "proxy"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := "Endpoint=sb://" + tt.address + ";SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0"
			if tt.emulator {
				text += ";UseDevelopmentEmulator=true"
			}
			code, _, stderr := execute(t, []string{"SERVICEBUS_CONNECTION_STRING=" + text}, `{"message_id":"1","body":{}}`, "send")
			require.Equal(t, exitFailure, code)
			for _, word := range tt.want {
				require.Contains(t, stderr, word)
			}
			require.NotContains(t, stderr, "c2VjcmV0")
		})
	}
	silent := peer(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	p := problemOf(config{connectionString: "Endpoint=sb://" + silent + ";SharedAccessKeyName=k;SharedAccessKey=s"}, context.DeadlineExceeded)
	require.ErrorContains(t, p, "cannot be reached, or takes the connection and does not answer in AMQP")
}

func TestWhatTheClientCannotSendIsNotANetworkFault(t *testing.T) {
	t.Parallel()
	_, settings := serve(t, testenv.Options{})
	code, _, stderr := execute(t, environOf(settings), `{"message_id":"1","application_properties":{"a":{"string_b64":"/w=="}},"body":{}}`, "send")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "the client library gave up")
	require.Contains(t, stderr, "not UTF-8")
	require.NotContains(t, stderr, "cannot be reached")
}

func TestWhoIsNotSignedInLearnsHow(t *testing.T) {
	t.Parallel()
	err := noToken{errors.New("DefaultAzureCredential: failed to acquire a token.\nAttempted credentials:\n\tAzureCLICredential: az is not installed")}
	f := config{namespace: "shop.servicebus.windows.net"}.aboutQueue(fmt.Errorf("put-token: %w", err))
	require.Contains(t, f.Text, "az is not installed")
	require.Contains(t, f.Text, "shop.servicebus.windows.net: the identity gets no token")
	for _, word := range []string{"az login", "AZURE_CLIENT_ID", "AZURE_TOKEN_CREDENTIALS"} {
		require.Contains(t, f.Fix, word)
	}
}

// noToken is an error of a credential, by the marker of the SDKs.
type noToken struct{ error }

func (noToken) NonRetriable() {}

// TestTheServicesOwnSentenceIsQuoted covers every command that a person sits before.
func TestTheServicesOwnSentenceIsQuoted(t *testing.T) {
	t.Parallel()
	const firewall = "Ip has been prevented to connect to the endpoint."
	said := func(a fault.Action, text string) fault.Action { a.Body = text; return a }
	for _, tt := range []struct {
		name   string
		rule   *fault.Rule
		want   []string
		refuse []string
	}{
		{"a firewall at the token", fault.On("servicebus.put-token").Always().Before(said(fault.Reply(401, 0), firewall)),
			[]string{firewall, "firewall", "private endpoint", "role"}, []string{"cannot be reached"}},
		{"a firewall at the link", fault.On("servicebus.attach").Always().Before(said(fault.Reject("amqp:unauthorized-access"), firewall)),
			[]string{firewall, "firewall", "private endpoint", "role"}, []string{"cannot be reached"}},
		{"an error of the broker's own", fault.On("servicebus.attach").Always().Before(said(fault.Reject("amqp:internal-error"), "The service was unable to process the request; please retry the operation.")),
			[]string{"answers", "amqp:internal-error", "unable to process the request", "health"}, []string{"cannot be reached", "Check the address and the network"}},
	} {
		for _, command := range [][]string{{"check"}, {"send"}, {"deadletter", "list"}} {
			t.Run(tt.name+" "+command[0], func(t *testing.T) {
				t.Parallel()
				_, settings := serve(t, testenv.Options{Faults: fault.Script(tt.rule)})
				code, stdout, stderr := execute(t, environOf(settings), `{"message_id":"1","body":{}}`, command...)
				require.NotEqual(t, exitOK, code)
				for _, word := range tt.want {
					require.Contains(t, stdout+stderr, word)
				}
				for _, word := range tt.refuse {
					require.NotContains(t, stdout+stderr, word)
				}
			})
		}
	}
}

func TestAFileIsNoBroker(t *testing.T) {
	t.Parallel()
	_, err := os.Open("nosuch")
	require.Equal(t, err, explainBroker(config{}, err))
	other := errors.New("something else")
	require.NotNil(t, problemOf(config{}, other))
}
