package servicebus_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

func TestWhatIsNotImplementedIsRefusedLoudly(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  func(t *testing.T, w *env) error
		want string
	}{
		"the transfer dead-letter queue": {want: "transfer dead-letter", ask: func(t *testing.T, w *env) error {
			_, err := receiverOf(t, w.client, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueTransfer}).ReceiveMessages(within(t, time.Minute), 1, nil)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				begin := time.Now()
				err := tt.ask(t, w)
				require.ErrorContains(t, err, "does not implement "+tt.want)
				require.Less(t, time.Since(begin), time.Second, "the client must not try again")
				require.Len(t, w.Refusals(), 1)
				require.Contains(t, w.Refusals()[0], tt.want)
				require.Equal(t, 1, w.history.Count(func(e history.Event) bool { return e.Op == history.Refused }))
			})
		})
	}
}

func TestNothingCanBeSentToADeadLetterQueue(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender(dlq, nil)
		require.NoError(t, err)
		err = s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil)
		var e *goamqp.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, goamqp.ErrCondNotAllowed, e.Condition)
		require.Empty(t, w.Refusals(), "the service refuses it as well")
	})
}

func TestUnknownManagementOperationIsRefused(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		c := w.raw()
		status, _ := c.call("orders/$management", map[string]any{"operation": "com.microsoft:get-rules"}, map[string]any{"top": int32(1)})
		require.Equal(t, int32(501), status)
		require.Equal(t, []string{"management operation com.microsoft:get-rules"}, w.Refusals())
		for op, body := range map[string]map[string]any{
			"renew-lock": {"lock-tokens": "x"}, "peek-message": {"message-count": int32(0)}, "receive-by-sequence-number": {"x": 1},
			"schedule-message": {"messages": []any{map[string]any{"message": []byte{1}}}}, "cancel-scheduled-message": {"x": 1},
			"update-disposition": {"disposition-status": "gone", "lock-tokens": []goamqp.UUID{{1}}},
		} {
			status, description := c.call("orders/$management", map[string]any{"operation": "com.microsoft:" + op}, body)
			require.Equal(t, int32(400), status, "%s: %s", op, description)
		}
		require.Len(t, w.Refusals(), 1)
	})
}

// rawClient is a client of the AMQP library below the SDK, on one session.
type rawClient struct {
	t       *testing.T
	conn    *goamqp.Conn
	session *goamqp.Session
}

// raw dials and puts a token for the namespace.
func (w *env) raw() *rawClient {
	w.t.Helper()
	return w.rawWith(&goamqp.ConnOptions{})
}

func (w *env) rawWith(o *goamqp.ConnOptions) *rawClient {
	w.t.Helper()
	o.HostName, o.SASLType = "embedded.example", goamqp.SASLTypeAnonymous()
	nc, err := w.Dial(context.Background())
	require.NoError(w.t, err)
	ctx := within(w.t, time.Hour)
	conn, err := goamqp.NewConn(ctx, nc, o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	s, err := conn.NewSession(ctx, nil)
	require.NoError(w.t, err)
	c := &rawClient{t: w.t, conn: conn, session: s}
	status, description := c.request("$cbs", map[string]any{
		"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": "amqps://embedded.example/", "expiration": "0",
	}, sign("amqps://embedded.example/", servicebus.EmulatorKeyName, servicebus.EmulatorKey, time.Now().Add(24*time.Hour)))
	require.Equal(w.t, int32(202), status, description)
	return c
}

func (c *rawClient) call(address string, properties, body map[string]any) (int32, string) {
	c.t.Helper()
	return c.request(address, properties, body)
}

// request sends a request and returns the status of its reply.
func (c *rawClient) request(address string, properties map[string]any, body any) (int32, string) {
	c.t.Helper()
	m := c.reply(address, properties, body)
	description, _ := m.ApplicationProperties["statusDescription"].(string)
	return m.ApplicationProperties["statusCode"].(int32), description
}

// reply sends a request and returns its reply.
func (c *rawClient) reply(address string, properties map[string]any, body any) *goamqp.Message {
	c.t.Helper()
	ctx := within(c.t, time.Minute)
	s, err := c.session.NewSender(ctx, address, nil)
	require.NoError(c.t, err)
	reply := "any address will do"
	r, err := c.session.NewReceiver(ctx, address, &goamqp.ReceiverOptions{
		TargetAddress: reply, SettlementMode: goamqp.ReceiverSettleModeFirst.Ptr(), RequestedSenderSettleMode: goamqp.SenderSettleModeSettled.Ptr(),
	})
	require.NoError(c.t, err)
	require.NoError(c.t, s.Send(ctx, &goamqp.Message{
		Properties: &goamqp.MessageProperties{MessageID: uint64(4711), ReplyTo: &reply}, ApplicationProperties: properties, Value: body,
	}, nil))
	m, err := r.Receive(ctx, nil)
	require.NoError(c.t, err)
	require.Equal(c.t, uint64(4711), m.Properties.CorrelationID)
	require.NoError(c.t, s.Close(ctx))
	require.NoError(c.t, r.Close(ctx))
	return m
}
