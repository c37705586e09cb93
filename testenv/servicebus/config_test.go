package servicebus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

const emulatorFile = `{
  "UserConfig": {
    "Namespaces": [{
      "Name": "sbemulatorns",
      "Queues": [
        {"Name": "orders", "Properties": {
          "DeadLetteringOnMessageExpiration": true, "DefaultMessageTimeToLive": "PT30M", "DuplicateDetectionHistoryTimeWindow": "PT1M30S",
          "ForwardDeadLetteredMessagesTo": "", "ForwardTo": "", "LockDuration": "PT5S", "MaxDeliveryCount": 7,
          "RequiresDuplicateDetection": true, "RequiresSession": false}},
        {"Name": "plain"}
      ],
      "Topics": []
    }],
    "Logging": {"Type": "File"}
  }
}`

func TestEmulatorConfigurationIsRead(t *testing.T) {
	c, err := servicebus.ReadConfig(strings.NewReader(emulatorFile))
	require.NoError(t, err)
	require.Equal(t, servicebus.Config{Namespace: "sbemulatorns", Queues: []servicebus.Queue{
		{
			Name: "orders", LockDuration: 5 * time.Second, MaxDeliveryCount: 7, DefaultMessageTimeToLive: 30 * time.Minute,
			DeadLetteringOnMessageExpiration: true, RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 90 * time.Second, MaxSize: 1 << 30,
		},
		{
			Name: "plain", LockDuration: time.Minute, MaxDeliveryCount: 10, DefaultMessageTimeToLive: time.Hour,
			DuplicateDetectionHistoryTimeWindow: 20 * time.Second, MaxSize: 1 << 30,
		},
	}}, c)
	b, err := servicebus.New(servicebus.Options{Config: c})
	require.NoError(t, err)
	b.Close()
}

func TestTopicsOfTheEmulatorConfigurationAreRead(t *testing.T) {
	c, err := servicebus.ReadConfig(strings.NewReader(`{"UserConfig": {"Namespaces": [{"Topics": [{
		"Name": "events", "Properties": {"DefaultMessageTimeToLive": "PT30M", "DuplicateDetectionHistoryTimeWindow": "PT1M", "RequiresDuplicateDetection": true},
		"Subscriptions": [
			{"Name": "billing", "Properties": {
				"DeadLetteringOnMessageExpiration": true, "DefaultMessageTimeToLive": "PT20M", "LockDuration": "PT5S", "MaxDeliveryCount": 3,
				"ForwardDeadLetteredMessagesTo": "", "ForwardTo": "", "RequiresSession": false}},
			{"Name": "audit", "Rules": [
				{"Name": "by-property", "Properties": {"FilterType": "Correlation", "CorrelationFilter": {
					"ContentType": "application/json", "CorrelationId": "c", "Label": "l", "MessageId": "m", "ReplyTo": "r", "ReplyToSessionId": "rs",
					"SessionId": "s", "To": "t", "Properties": {"a": "1", "b": 2, "c": 2.5, "d": true}}}},
				{"Name": "by-sql", "Properties": {"FilterType": "Sql",
					"SqlFilter": {"SqlExpression": "sys.MessageId IN ('1', '2') AND a = 'x'"}, "Action": {"SqlExpression": "SET sys.To = 'Entity'"}}}
			]}
		]}]}]}}`))
	require.NoError(t, err)
	require.Equal(t, []servicebus.Topic{{
		Name: "events", DefaultMessageTimeToLive: 30 * time.Minute, RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: time.Minute,
		Subscriptions: []servicebus.Subscription{
			{Queue: servicebus.Queue{
				Name: "billing", LockDuration: 5 * time.Second, MaxDeliveryCount: 3, DefaultMessageTimeToLive: 20 * time.Minute,
				DeadLetteringOnMessageExpiration: true, DuplicateDetectionHistoryTimeWindow: 10 * time.Minute, MaxSize: 1 << 30,
			}},
			{Queue: servicebus.Queue{
				Name: "audit", LockDuration: time.Minute, MaxDeliveryCount: 10, DefaultMessageTimeToLive: time.Hour,
				DuplicateDetectionHistoryTimeWindow: 10 * time.Minute, MaxSize: 1 << 30,
			}, Rules: []servicebus.Rule{
				{Name: "by-property", Filter: servicebus.CorrelationFilter{
					ContentType: "application/json", CorrelationID: "c", Subject: "l", MessageID: "m", ReplyTo: "r", ReplyToSessionID: "rs",
					SessionID: "s", To: "t", Properties: map[string]any{"a": "1", "b": int64(2), "c": 2.5, "d": true},
				}},
				{Name: "by-sql", Filter: servicebus.SQLFilter{Expression: "sys.MessageId IN ('1', '2') AND a = 'x'"}, Action: "SET sys.To = 'Entity'"},
			}},
		},
	}}, c.Topics)
	b, err := servicebus.New(servicebus.Options{Config: c})
	require.NoError(t, err)
	b.Close()
}

func TestFaultsOfTheEmulatorConfigurationAreReportedAtOnce(t *testing.T) {
	_, err := servicebus.ReadConfig(strings.NewReader(`{"UserConfig": {"Namespaces": [{"Name": "other", "Extra": 1,
		"Topics": [{"Name": "Q", "Queues": [], "Properties": {"LockDuration": "PT1M"}, "Subscriptions": [
			{"Name": "a/b", "Properties": {"RequiresDuplicateDetection": true}}, {"Name": "s", "Properties": {"LockDuration": "PT6M"}}, {"Name": "S"},
			{"Name": "rules", "Rules": [
				{"Name": "r", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "a = @p"}}},
				{"Name": "R", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "a = 1"}, "Action": {"SqlExpression": "SET a", "X": 1}}},
				{"Name": "a/b", "Properties": {"FilterType": "Other"}},
				{"Name": "empty", "Properties": {"FilterType": "Correlation", "CorrelationFilter": {"Properties": {"a": []}}}}
			]}
		]}],
		"Queues": [
			{"Name": "q", "Properties": {"LockDuration": "1 minute", "MaxDeliveryCount": 11, "RequiresSession": true, "ForwardTo": "x", "MaxDeliveryCnt": 3}},
			{"Name": "Q", "Properties": {"LockDuration": "PT6M", "DefaultMessageTimeToLive": "P1D", "RequiresDuplicateDetection": "yes", "MaxDeliveryCount": "3"}},
			{"Name": "a$b", "Properties": []},
			{"Properties": {"ForwardDeadLetteredMessagesTo": 7}}
		]}]}}`))
	for _, want := range []string{
		"UserConfig.Namespaces[0].Extra: is not known", `UserConfig.Namespaces[0].Name: must be "sbemulatorns"`,
		"UserConfig.Namespaces[0].Topics[0].Queues: is not known", `Topics[0].Name: "Q" is used twice`,
		"Topics[0].Properties.LockDuration: is not known", "Topics[0].Subscriptions[0].Properties.RequiresDuplicateDetection: is not known",
		`Topics[0].Subscriptions[0].Name: "a/b": a subscription name has`, "Topics[0].Subscriptions[2].Name: \"S\" is used twice",
		`Subscriptions[3].Rules: rule "r": the filter: at 5: the parameter @p has no value`, `rule "R": the action: at 6`,
		"Rules[1].Properties.Action.X: is not known", `rule "a/b": a rule name has`, `Rules[2].Properties.FilterType: "Other" is neither`,
		`rule "empty": the filter: a correlation filter needs at least one property`, "Rules[3].Properties.CorrelationFilter.Properties.a: must be a string, a number",
		"Topics[0].Subscriptions[1].Properties.LockDuration: PT6M is not between",
		`Queues[0].Properties.LockDuration: "1 minute" is not an ISO 8601 duration`, "Queues[0].Properties.MaxDeliveryCount: must be a whole number from 1 to 10",
		`Queues[0].Properties: ForwardTo: there is no queue or topic "x"`, "Queues[0].Properties: ForwardTo is not for entities that require sessions",
		"Queues[0].Properties.MaxDeliveryCnt: is not known", "Queues[1].Name: \"Q\" is used twice", "Queues[1].Properties.LockDuration: PT6M is not between",
		"Queues[1].Properties.DefaultMessageTimeToLive: P1D is not between", "Queues[1].Properties.RequiresDuplicateDetection: must be true or false",
		"Queues[1].Properties.MaxDeliveryCount: must be", `Queues[2].Name: "a$b": a queue or topic name has`, "Queues[2].Properties: must be an object",
		`Queues[3].Name: ""`, "Queues[3].Properties.ForwardDeadLetteredMessagesTo: must be a string",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestBrokenEmulatorConfigurationsAreErrors(t *testing.T) {
	for in, want := range map[string]string{
		"": "not JSON", "[]": "must be an object", "{}": "UserConfig: is missing", `{"UserConfig": {"Namespaces": 1}}`: "must be an array",
		`{"UserConfig": {"Namespaces": []}}`: "exactly one", `{"UserConfig": {"Namespaces": [{"Queues": [1]}]}}`: "Queues[0]: must be an object",
		`{"UserConfig": {"Namespaces": [{"Queues": [` + strings.Repeat(`{"Name":"x"},`, 50) + `{"Name":"x"}]}]}}`: "has 51 queues",
	} {
		_, err := servicebus.ReadConfig(strings.NewReader(in))
		require.ErrorContains(t, err, want)
	}
}

func TestFaultsOfOptionsAreReportedAtOnce(t *testing.T) {
	_, err := servicebus.New(servicebus.Options{
		Config: servicebus.Config{Queues: []servicebus.Queue{
			{Name: "q", LockDuration: time.Hour, MaxDeliveryCount: -1}, {Name: "Q/", MaxSize: -1}, {Name: "Q", DuplicateDetectionHistoryTimeWindow: 8 * 24 * time.Hour, DefaultMessageTimeToLive: -1},
		}, Topics: []servicebus.Topic{{Name: "q", MaxSize: -1, Subscriptions: []servicebus.Subscription{
			{Queue: servicebus.Queue{Name: "s", MaxDeliveryCount: 2001}}, {Queue: servicebus.Queue{Name: "S", RequiresDuplicateDetection: true}}, {},
			{Queue: servicebus.Queue{Name: "x"}, Rules: []servicebus.Rule{{Name: "r"}, {Name: "R"}, {Name: "f", Filter: servicebus.SQLFilter{}}}},
		}}}},
		Keys: []servicebus.Key{{Name: "k"}}, MaxMessageSize: 1, IdleTimeout: -1,
	})
	for _, want := range []string{
		`queue 0 "q": LockDuration 1h0m0s must be at most 5m0s`, "MaxDeliveryCount -1", `queue 1 "Q/": a queue or topic name has`, "MaxSize -1", `queue 2 "Q": the name is used twice`,
		`topic 0 "q": the name is used twice`, `topic 0 "q": MaxSize -1`, `topic 0 "q", subscription 0 "s": MaxDeliveryCount 2001`,
		`topic 0 "q", subscription 1 "S": the name is used twice`, `subscription 2 "": a subscription name has`,
		"RequiresDuplicateDetection is a setting of the topic", `subscription 3 "x": rule "R": the name is used twice`, `rule "f": the filter: at 1`,
		"DuplicateDetectionHistoryTimeWindow 192h0m0s", "DefaultMessageTimeToLive -1ns", "a key needs", "MaxMessageSize 1 must be", "must not be negative",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestDurationsOfTheConfiguration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"PT5S": 5 * time.Second, "PT1M": time.Minute, "PT4M59.5S": 4*time.Minute + 59500*time.Millisecond, "P0DT0H1M0S": time.Minute, "PT300S": 5 * time.Minute,
		"": time.Minute,
	} {
		c, err := servicebus.ReadConfig(strings.NewReader(strings.Replace(emulatorFile, `"PT5S"`, `"`+in+`"`, 1)))
		require.NoError(t, err, in)
		require.Equal(t, want, c.Queues[0].LockDuration, in)
	}
	for _, in := range []string{"P", "PT", "T1M", "1M", "P1M", "PT1.5M", "PTM", "PT1", "PT1S1M", "PT1M1M", "PT-1M", "-PT1M", "PT1e2S", "P1Y", "PT+5S", "PTNaNS", "PT9999999999999H", "P99999999999999W", "pt5s", "PT5S "} {
		_, err := servicebus.ReadConfig(strings.NewReader(strings.Replace(emulatorFile, `"PT5S"`, `"`+in+`"`, 1)))
		require.ErrorContains(t, err, "LockDuration", in)
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add(emulatorFile)
	f.Add(`{"UserConfig":{"Namespaces":[{"Topics":[{"Name":"t","Subscriptions":[{"Name":"s","Rules":[{"Name":"r","Properties":{"FilterType":"Sql","SqlFilter":{"SqlExpression":"a=1"}}}]}]}]}]}}`)
	f.Add(`{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"LockDuration":"P1DT1H"}}]}]}}`)
	f.Fuzz(func(t *testing.T, in string) {
		c, err := servicebus.ReadConfig(strings.NewReader(in))
		if err != nil {
			return
		}
		b, err := servicebus.New(servicebus.Options{Config: c})
		require.NoError(t, err, "what was read without a fault must be usable")
		b.Close()
	})
}

func FuzzSendEncoded(f *testing.F) {
	for _, m := range []amqp.Message{
		{Properties: &amqp.Properties{MessageID: "m"}, BodyKind: amqp.BodyData, Data: [][]byte{{1}}},
		{Header: &amqp.Header{}, Annotations: amqp.Map{{Key: amqp.Symbol("x-opt-scheduled-enqueue-time"), Value: time.UnixMilli(1)}}, BodyKind: amqp.BodyValue},
	} {
		b, err := amqp.AppendMessage(nil, m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		b, err := servicebus.New(servicebus.Options{LeaveMessageIDNull: true, Config: servicebus.Config{Queues: []servicebus.Queue{{Name: "q"}}}})
		require.NoError(t, err)
		defer b.Close()
		if _, err := b.SendEncoded("q", in); err != nil {
			return
		}
		all, err := b.Messages("q")
		require.NoError(t, err)
		require.Len(t, all, 1)
		want, err := amqp.Split(in)
		require.NoError(t, err)
		got, err := amqp.Split(all[0].Encoded)
		require.NoError(t, err)
		require.Equal(t, want.Properties, got.Properties)
		require.Equal(t, want.ApplicationProperties, got.ApplicationProperties)
		require.Equal(t, want.Body, got.Body)
		require.Equal(t, want.Footer, got.Footer)
	})
}
