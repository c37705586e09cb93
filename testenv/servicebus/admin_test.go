package servicebus_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
)

// direct hands requests to a handler, so that no socket is needed.
type direct struct{ h http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.h.ServeHTTP(w, r)
	return w.Result(), nil
}

// admin returns an administration client of the unmodified SDK.
func (w *env) admin() *admin.Client {
	w.t.Helper()
	return w.adminWith(w.ConnectionString("embedded.example"))
}

func (w *env) adminWith(connection string) *admin.Client {
	w.t.Helper()
	c, err := admin.NewClientFromConnectionString(connection, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: direct{w.Handler()}, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(w.t, err)
	return c
}

func TestQueueIsAdministered(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		c, ctx := w.admin(), context.Background()
		created, err := c.CreateQueue(ctx, "made", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
			LockDuration: to.Ptr("PT30S"), MaxDeliveryCount: to.Ptr(int32(2)), DefaultMessageTimeToLive: to.Ptr("P1DT6H"), UserMetadata: to.Ptr("a <b> & c"),
			AutoDeleteOnIdle: to.Ptr("PT5M"), DeadLetteringOnMessageExpiration: to.Ptr(true), MaxSizeInMegabytes: to.Ptr(int32(2048)),
		}})
		require.NoError(t, err)
		require.Equal(t, []any{"made", "PT30S", int32(2), "P1DT6H", "a <b> & c", "PT5M", true, int32(2048), false}, []any{
			created.QueueName, *created.LockDuration, *created.MaxDeliveryCount, *created.DefaultMessageTimeToLive, *created.UserMetadata,
			*created.AutoDeleteOnIdle, *created.DeadLetteringOnMessageExpiration, *created.MaxSizeInMegabytes, *created.RequiresSession,
		})
		got, err := c.GetQueue(ctx, "made", nil)
		require.NoError(t, err)
		require.Equal(t, created.QueueProperties, got.QueueProperties)

		s, err := w.client.NewSender("made", nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil))
		r, err := w.client.NewReceiverForQueue("made", nil)
		require.NoError(t, err)
		m := take(t, r, 1)[0]
		require.Equal(t, time.Now().Add(30*time.Second).Unix(), m.LockedUntil.Unix())
		require.NoError(t, r.DeadLetterMessage(within(t, time.Minute), m, nil))
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m2", "{}"), nil))
		_, err = s.ScheduleMessages(within(t, time.Minute), []*azservicebus.Message{message("m3", "{}")}, time.Now().Add(time.Hour), nil)
		require.NoError(t, err)
		counts, err := c.GetQueueRuntimeProperties(ctx, "made", nil)
		require.NoError(t, err)
		require.Equal(t, []int32{1, 1, 1}, []int32{counts.ActiveMessageCount, counts.DeadLetterMessageCount, counts.ScheduledMessageCount})
		require.Equal(t, []any{int64(3), true, true}, []any{counts.TotalMessageCount, counts.SizeInBytes > 0, counts.CreatedAt.Equal(counts.UpdatedAt)})

		changed := got.QueueProperties
		changed.LockDuration, changed.Status = to.Ptr("PT1M"), to.Ptr(admin.EntityStatusReceiveDisabled)
		_, err = c.UpdateQueue(ctx, "made", changed, nil)
		require.NoError(t, err)
		_, err = r.ReceiveMessages(within(t, time.Minute), 1, nil)
		if err == nil { // the update detached the link, and the client says nothing
			_, err = r.ReceiveMessages(within(t, time.Minute), 1, nil)
		}
		require.ErrorContains(t, err, "com.microsoft:entity-disabled")
		changed.RequiresSession = to.Ptr(true)
		_, err = c.UpdateQueue(ctx, "made", changed, nil)
		require.ErrorContains(t, err, "The value for the RequiresSession property of an existing Queue cannot be changed")

		_, err = c.DeleteQueue(ctx, "made", nil)
		require.NoError(t, err)
		gone, err := c.GetQueue(ctx, "made", nil)
		require.NoError(t, err)
		require.Nil(t, gone)
		other, err := w.dial().NewReceiverForQueue("made", nil)
		require.NoError(t, err)
		_, err = other.ReceiveMessages(within(t, time.Minute), 1, nil)
		requireCode(t, azservicebus.CodeNotFound, err)
		_, err = w.Counts("made")
		require.Error(t, err)
	})
}

func TestTopicsSubscriptionsAndRulesAreAdministered(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		c, ctx := w.admin(), context.Background()
		_, err := c.CreateTopic(ctx, "events", nil)
		require.NoError(t, err)
		_, err = c.CreateSubscription(ctx, "events", "billing", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
			MaxDeliveryCount: to.Ptr(int32(3)), DefaultRule: &admin.RuleProperties{Name: "first", Filter: &admin.SQLFilter{
				Expression: "amount > @least", Parameters: map[string]any{"@least": int64(100)},
			}},
		}})
		require.NoError(t, err)
		_, err = c.CreateSubscription(ctx, "events", "audit", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{RequiresSession: to.Ptr(true)}})
		require.NoError(t, err)
		rule := &admin.CreateRuleOptions{
			Name: to.Ptr("second"), Filter: &admin.CorrelationFilter{Subject: to.Ptr("a & b"), ApplicationProperties: map[string]any{"color": "blue"}},
			Action: &admin.SQLAction{Expression: "SET seen = @seen", Parameters: map[string]any{"@seen": true}},
		}
		made, err := c.CreateRule(ctx, "events", "billing", rule)
		require.NoError(t, err)
		require.Equal(t, admin.RuleProperties{Name: "second", Filter: rule.Filter, Action: rule.Action}, made.RuleProperties)

		large, both := message("m1", "{}"), of("s", "m2")
		large.ApplicationProperties = map[string]any{"amount": int32(101)}
		both.Subject, both.ApplicationProperties = text("a & b"), map[string]any{"amount": int32(200), "color": "blue"}
		w.publish(large, both, message("m3", "{}"))
		ms := take(t, w.subscriber("billing", nil), 3)
		require.Equal(t, []string{"m1", "m2", "m2"}, idsOf(ms))
		require.Equal(t, true, ms[2].ApplicationProperties["seen"])
		require.Equal(t, 1, w.countsOf(audit).Active)
		require.Equal(t, 2, w.countsOf(audit).DeadLettered, "without a session")

		topic, err := c.GetTopicRuntimeProperties(ctx, "events", nil)
		require.NoError(t, err)
		require.Equal(t, int32(2), topic.SubscriptionCount)
		counts, err := c.GetSubscriptionRuntimeProperties(ctx, "events", "billing", nil)
		require.NoError(t, err)
		require.Equal(t, int32(3), counts.ActiveMessageCount, "locked ones count as active")
		sub, err := c.GetSubscription(ctx, "events", "audit", nil)
		require.NoError(t, err)
		require.True(t, *sub.RequiresSession)

		var names []string
		for p := c.NewListSubscriptionsPager("events", &admin.ListSubscriptionsOptions{MaxPageSize: 1}); p.More(); {
			page, err := p.NextPage(ctx)
			require.NoError(t, err)
			for _, s := range page.Subscriptions {
				names = append(names, s.SubscriptionName)
			}
		}
		for p := c.NewListRulesPager("events", "billing", nil); p.More(); {
			page, err := p.NextPage(ctx)
			require.NoError(t, err)
			for _, r := range page.Rules {
				names = append(names, r.Name)
			}
		}
		require.Equal(t, []string{"billing", "audit", "first", "second"}, names)

		_, err = c.UpdateRule(ctx, "events", "billing", admin.RuleProperties{Name: "first", Filter: &admin.FalseFilter{}})
		require.NoError(t, err)
		_, err = c.DeleteRule(ctx, "events", "billing", "second", nil)
		require.NoError(t, err)
		w.publish(large)
		require.Equal(t, 3, w.countsOf(billing).Total())
		_, err = c.DeleteTopic(ctx, "events", nil)
		require.NoError(t, err)
		_, err = w.Counts(billing)
		require.Error(t, err, "the subscriptions go with it")
	})
}

func TestWhatTheAdministrationRefuses(t *testing.T) {
	type try func(ctx context.Context, c *admin.Client) error
	create := func(p admin.QueueProperties) try {
		return func(ctx context.Context, c *admin.Client) error {
			_, err := c.CreateQueue(ctx, "made", &admin.CreateQueueOptions{Properties: &p})
			return err
		}
	}
	for name, tt := range map[string]struct {
		do   try
		want string
	}{
		"a queue that exists": {do: func(ctx context.Context, c *admin.Client) error {
			_, err := c.CreateQueue(ctx, "Orders", nil)
			return err
		}, want: "409"},
		"a change of what does not exist": {do: func(ctx context.Context, c *admin.Client) error {
			_, err := c.UpdateQueue(ctx, "nowhere", admin.QueueProperties{}, nil)
			return err
		}, want: "404 Not Found"},
		"a subscription of no topic": {do: func(ctx context.Context, c *admin.Client) error {
			_, err := c.CreateSubscription(ctx, "orders", "s", nil)
			return err
		}, want: "404"},
		"a lock that is too long": {do: create(admin.QueueProperties{LockDuration: to.Ptr("PT10M")}), want: "LockDuration 10m0s must be at most 5m0s"},
		"a duration that is none": {do: create(admin.QueueProperties{LockDuration: to.Ptr("ten")}), want: "is not an ISO 8601 duration"},
		"forwarding to nowhere":   {do: create(admin.QueueProperties{ForwardTo: to.Ptr("sb://x/nowhere")}), want: "ForwardTo: there is no queue or topic"},
		"a change to partitions": {do: func(ctx context.Context, c *admin.Client) error {
			_, err := c.UpdateQueue(ctx, "orders", admin.QueueProperties{EnablePartitioning: to.Ptr(true)}, nil)
			return err
		}, want: "Partitioning cannot be changed for Queue."},
		"a bad rule": {do: func(ctx context.Context, c *admin.Client) error {
			if _, err := c.CreateTopic(ctx, "events", nil); err != nil {
				return err
			}
			if _, err := c.CreateSubscription(ctx, "events", "s", nil); err != nil {
				return err
			}
			_, err := c.CreateRule(ctx, "events", "s", &admin.CreateRuleOptions{Name: to.Ptr("r"), Filter: &admin.SQLFilter{Expression: "a = @b"}})
			return err
		}, want: "the parameter @b has no value"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				require.ErrorContains(t, tt.do(context.Background(), w.admin()), tt.want)
				require.Empty(t, w.Refusals(), "the service refuses it as well")
			})
		})
	}
}

func TestAdministrationNeedsTheRightToManage(t *testing.T) {
	o := servicebus.Options{Keys: []servicebus.Key{{Name: "all", Secret: "a"}, {Name: "some", Secret: "b", Rights: servicebus.Listen | servicebus.Send}}}
	bubble(t, o, func(t *testing.T, w *env) {
		ctx := context.Background()
		for connection, want := range map[string]string{
			strings.Replace(strings.Replace(w.ConnectionString("x"), "Name=all", "Name=some", 1), "Key=a", "Key=b", 1): "Manage,EntityRead claims required",
			strings.Replace(w.ConnectionString("x"), "Key=a", "Key=wrong", 1):                                          "InvalidSignature",
		} {
			_, err := w.adminWith(connection).GetQueue(ctx, "orders", nil)
			require.ErrorContains(t, err, want)
			_, err = w.adminWith(connection).DeleteQueue(ctx, "orders", nil)
			require.ErrorContains(t, err, "401")
		}
		w.counts()
	})
}

func TestManagementEndpointStillAnswersForPeople(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		for path, want := range map[string]string{"/health": "healthy", "/queues": `"orders"`} {
			resp, err := direct{w.Handler()}.Do(httptest.NewRequest(http.MethodGet, path, nil))
			require.NoError(t, err)
			b, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Contains(t, string(b), want)
		}
	})
}
