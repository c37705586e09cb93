package deadletter_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/testenv/servicebus"
)

// authorized opens a connection to the embedded Service Bus with a token for the queue. It shares no code with what it tests.
func (w *world) authorized(ctx context.Context) (*amqp.Conn, error) {
	nc, err := w.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c, err := amqp.NewConn(ctx, nc, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	if err != nil {
		return nil, err
	}
	session, err := c.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	reply := "test-reply"
	r, err := session.NewReceiver(ctx, "$cbs", &amqp.ReceiverOptions{
		TargetAddress: reply, SettlementMode: amqp.ReceiverSettleModeFirst.Ptr(), RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	})
	if err != nil {
		return nil, err
	}
	s, err := session.NewSender(ctx, "$cbs", nil)
	if err != nil {
		return nil, err
	}
	audience := "amqp://embedded.test/orders"
	err = s.Send(ctx, &amqp.Message{
		Value: signed(audience), Properties: &amqp.MessageProperties{MessageID: "1", ReplyTo: &reply},
		ApplicationProperties: map[string]any{"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": audience, "expiration": "0"},
	}, nil)
	if err != nil {
		return nil, err
	}
	if _, err = r.Receive(ctx, nil); err != nil {
		return nil, err
	}
	return c, session.Close(ctx)
}

func signed(audience string) string {
	resource := strings.ToLower(url.QueryEscape(audience))
	end := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(servicebus.EmulatorKey))
	mac.Write([]byte(resource + "\n" + end))
	return "SharedAccessSignature sr=" + resource + "&sig=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))) + "&se=" + end + "&skn=" + servicebus.EmulatorKeyName
}
