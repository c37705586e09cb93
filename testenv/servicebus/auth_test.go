package servicebus_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

func (w *env) dialString(connection string) *azservicebus.Client {
	w.t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(connection, &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return w.Dial(ctx) },
		RetryOptions:     azservicebus.RetryOptions{MaxRetries: -1},
	})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// sign makes a shared access signature.
func sign(resource, name, secret string, expires time.Time) string {
	sr := strings.ToLower(url.QueryEscape(resource))
	se := fmt.Sprint(expires.Unix())
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(sr + "\n" + se))
	return "SharedAccessSignature sr=" + sr + "&sig=" + url.QueryEscape(base64.StdEncoding.EncodeToString(h.Sum(nil))) + "&se=" + se + "&skn=" + name
}

func TestTokensAreVerified(t *testing.T) {
	const host = "sb://embedded.example"
	key := func(resource, name, secret string, life time.Duration) func() string {
		return func() string {
			return "Endpoint=" + host + ";SharedAccessSignature=" + sign(resource, name, secret, time.Now().Add(life))
		}
	}
	for name, tt := range map[string]struct {
		connection func() string
		problem    string
	}{
		"a good key": {connection: func() string {
			return "Endpoint=" + host + ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
		}},
		"a signature for the namespace": {connection: key("amqps://embedded.example/", "RootManageSharedAccessKey", "SAS_KEY_VALUE", time.Hour)},
		"a signature for the queue":     {connection: key("sb://embedded.example/orders", "RootManageSharedAccessKey", "SAS_KEY_VALUE", time.Hour)},
		"a wrong key": {problem: "InvalidSignature", connection: func() string {
			return "Endpoint=" + host + ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=wrong"
		}},
		"an unknown key": {problem: "no key is named", connection: func() string {
			return "Endpoint=" + host + ";SharedAccessKeyName=other;SharedAccessKey=SAS_KEY_VALUE"
		}},
		"a signature for another queue": {problem: "InvalidAudience", connection: key("sb://embedded.example/ord", "RootManageSharedAccessKey", "SAS_KEY_VALUE", time.Hour)},
		"a signature for another host":  {problem: "InvalidAudience", connection: key("sb://other.example/orders", "RootManageSharedAccessKey", "SAS_KEY_VALUE", time.Hour)},
		"a signature that has expired":  {problem: "ExpiredToken", connection: key("sb://embedded.example/", "RootManageSharedAccessKey", "SAS_KEY_VALUE", -time.Second)},
		"a text that is no signature":   {problem: "does not begin with", connection: func() string { return "Endpoint=" + host + ";SharedAccessSignature=nonsense" }},
		"a signature without an expiry": {problem: "expiry", connection: func() string { return "Endpoint=" + host + ";SharedAccessSignature=SharedAccessSignature sr=x&sig=y" }},
		"a signature that is not base64": {problem: "base64", connection: func() string {
			return "Endpoint=" + host + ";SharedAccessSignature=SharedAccessSignature sr=x&sig=!&se=99999999999"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, servicebus.Options{})
				s, err := w.dialString(tt.connection()).NewSender("orders", nil)
				require.NoError(t, err)
				err = s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil)
				if tt.problem == "" {
					require.NoError(t, err)
					return
				}
				requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
				require.ErrorContains(t, err, tt.problem)
				require.Equal(t, 1, w.history.Count(func(e history.Event) bool { return e.Op == history.PutToken && e.Status == 401 }))
			})
		})
	}
}

type staticCredential string

func (c staticCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(c), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestTokensOfAnIdentityAreAcceptedWhenTheyMayBe(t *testing.T) {
	for name, accept := range map[string]bool{"accepted": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, servicebus.Options{AcceptJWT: accept})
				c, err := azservicebus.NewClient("embedded.example", staticCredential("a.b.c"), &azservicebus.ClientOptions{
					NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return w.Dial(ctx) },
				})
				require.NoError(t, err)
				defer func() { _ = c.Close(context.Background()) }()
				s, err := c.NewSender("orders", nil)
				require.NoError(t, err)
				err = s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil)
				if !accept {
					requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
					require.ErrorContains(t, err, "AcceptJWT")
					return
				}
				require.NoError(t, err)
			})
		})
	}
}

func TestMissingQueueIsNotFound(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("nowhere", nil)
		require.NoError(t, err)
		requireCode(t, azservicebus.CodeNotFound, s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil))
		r, err := w.client.NewReceiverForQueue("nowhere", nil)
		require.NoError(t, err)
		_, err = r.ReceiveMessages(within(t, time.Minute), 1, nil)
		requireCode(t, azservicebus.CodeNotFound, err)
		require.Empty(t, w.Refusals())
	})
}

func TestQueueNamesDoNotDependOnCase(t *testing.T) {
	bubble(t, servicebus.Options{Config: servicebus.Config{Queues: []servicebus.Queue{{Name: "Team/Orders"}}}}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("team/ORDERS", nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil))
		r, err := w.client.NewReceiverForQueue("TEAM/orders", nil)
		require.NoError(t, err)
		m := take(t, r, 1)[0]
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), m, nil))
		d, err := w.client.NewReceiverForQueue("TEAM/orders", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		require.NoError(t, err)
		require.Equal(t, "Team/Orders", *take(t, d, 1)[0].DeadLetterSource)
	})
}

func TestKeysAllowOnlyTheirRights(t *testing.T) {
	o := servicebus.Options{Keys: []servicebus.Key{
		{Name: "sender", Secret: "s", Rights: servicebus.Send}, {Name: "listener", Secret: "l", Rights: servicebus.Listen},
	}}
	synctest.Test(t, func(t *testing.T) {
		w := open(t, o)
		sender := w.dialString("Endpoint=sb://embedded.example;SharedAccessKeyName=sender;SharedAccessKey=s")
		listener := w.dialString("Endpoint=sb://embedded.example;SharedAccessKeyName=listener;SharedAccessKey=l")
		s, err := sender.NewSender("orders", nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil))
		_, err = s.ScheduleMessages(within(t, time.Minute), []*azservicebus.Message{message("m2", "{}")}, time.Now().Add(time.Hour), nil)
		require.NoError(t, err)
		require.Len(t, take(t, receiverOf(t, listener, nil), 1), 1)
		_, err = receiverOf(t, sender, nil).ReceiveMessages(within(t, time.Minute), 1, nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
		require.ErrorContains(t, err, "'Listen' claim(s) are required")
		s, err = listener.NewSender("orders", nil)
		require.NoError(t, err)
		err = s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
		require.ErrorContains(t, err, "'Send' claim(s) are required")
	})
}

func TestRightsAreTakenAndGivenBackAtRunTime(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		require.NoError(t, w.SetRights("orders", servicebus.Send))
		synctest.Wait()
		_, err := r.ReceiveMessages(within(t, time.Minute), 1, nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, r.CompleteMessage(within(t, 3*time.Second), &azservicebus.ReceivedMessage{LockToken: m.LockToken}, nil))
		w.send(message("m2", "{}"))
		require.NoError(t, w.SetRights("orders", servicebus.Manage))
		require.Equal(t, "m2", take(t, r, 1)[0].MessageID)
	})
}

func TestLinksEndWhenTheirTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, servicebus.Options{})
		token := sign("sb://embedded.example/", "RootManageSharedAccessKey", "SAS_KEY_VALUE", time.Now().Add(time.Hour))
		r := receiverOf(t, w.dialString("Endpoint=sb://embedded.example;SharedAccessSignature="+token), nil)
		_, err := r.ReceiveMessages(within(t, 59*time.Minute), 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = r.ReceiveMessages(within(t, 10*time.Minute), 1, nil)
		requireCode(t, azservicebus.CodeUnauthorizedAccess, err)
		require.ErrorContains(t, err, "ExpiredToken")
		_, err = r.ReceiveMessages(within(t, time.Minute), 1, nil)
		require.ErrorContains(t, err, "ExpiredToken", "the token cannot be put again either")
	})
}

func TestRefreshedTokensKeepLinksOpen(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		r := w.receiver()
		_, err := r.ReceiveMessages(within(t, 3*time.Hour), 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the client refreshes the two hours of its tokens")
		n, err := w.Links("orders", servicebus.Receivers)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, 1, w.Connections())
	})
}
