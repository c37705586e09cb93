package servicebus_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// ruled returns options in which the subscription billing has rules.
func ruled(rules ...servicebus.Rule) servicebus.Options {
	return events(func(_ *servicebus.Topic, b, _ *servicebus.Subscription) { b.Rules = rules })
}

// copiesOf returns what the subscription billing has, as its receiver gets it.
func (w *env) copiesOf(path string) []servicebus.Snapshot {
	w.t.Helper()
	ms, err := w.Messages(path)
	require.NoError(w.t, err)
	return ms
}

func TestRuleSelectsMessages(t *testing.T) {
	full := func() *azservicebus.Message {
		m := message("m1", "{}")
		m.Subject, m.CorrelationID, m.To, m.ReplyTo = text("created"), text("c1"), text("there"), text("back")
		m.ContentType, m.SessionID, m.ReplyToSessionID = text("application/json"), text("s1"), text("rs1")
		m.ApplicationProperties = map[string]any{
			"color": "blue", "amount": int32(40), "small": int8(7), "big": uint64(9), "rate": float32(1.5), "paid": true, "none": nil,
		}
		return m
	}
	correlation := func(f servicebus.CorrelationFilter) servicebus.Filter { return f }
	sql := func(s string) servicebus.Filter { return servicebus.SQLFilter{Expression: s} }
	for name, tt := range map[string]struct {
		filter servicebus.Filter
		want   bool
	}{
		"all":  {servicebus.TrueFilter{}, true},
		"none": {servicebus.FalseFilter{}, false},
		"every system property": {correlation(servicebus.CorrelationFilter{
			Subject: "created", CorrelationID: "c1", To: "there", ReplyTo: "back", ContentType: "application/json", SessionID: "s1",
			ReplyToSessionID: "rs1", MessageID: "m1",
		}), true},
		"one that differs":                   {correlation(servicebus.CorrelationFilter{Subject: "created", CorrelationID: "c2"}), false},
		"text in another case":               {correlation(servicebus.CorrelationFilter{Subject: "Created"}), false},
		"user properties of all types":       {correlation(servicebus.CorrelationFilter{Properties: map[string]any{"color": "blue", "amount": 40, "small": int64(7), "big": 9, "rate": 1.5, "paid": true}}), true},
		"a user property of another type":    {correlation(servicebus.CorrelationFilter{Properties: map[string]any{"amount": "40"}}), false},
		"a user property that is not there":  {correlation(servicebus.CorrelationFilter{Properties: map[string]any{"size": "1"}}), false},
		"SQL on user properties":             {sql("color = 'blue' AND amount > 39.5 AND paid = TRUE AND Rate * 2 = 3"), true},
		"SQL on system properties":           {sql("sys.Label = 'created' AND sys.Subject = 'created' AND sys.MessageId LIKE 'm_' AND sys.SessionId = 's1' AND sys.ContentType = 'application/json'"), true},
		"SQL on what is not there":           {sql("size > 1"), false},
		"SQL that asks whether it is there":  {sql("NOT EXISTS(size) AND none IS NULL AND EXISTS(none) AND sys.To IS NOT NULL"), true},
		"SQL that is false":                  {sql("color = 'red' OR sys.CorrelationId IN ('c2', 'c3')"), false},
		"SQL on other system text":           {sql("sys.To = 'there' AND sys.ReplyTo = 'back' AND sys.ReplyToSessionId = 'rs1' AND sys.CorrelationId = 'c1'"), true},
		"SQL that compares a text to number": {sql("color = 1 OR color > 1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ruled(servicebus.Rule{Name: "r", Filter: tt.filter}), func(t *testing.T, w *env) {
				w.publish(full())
				require.Len(t, w.copiesOf(audit), 1, "the other subscription has no rule of its own")
				require.Equal(t, tt.want, len(w.copiesOf(billing)) == 1)
			})
		})
	}
}

func TestRulesWithoutActionMakeOneCopyAndEachWithAnActionOneMore(t *testing.T) {
	bubble(t, ruled(
		servicebus.Rule{Name: "plain", Filter: servicebus.SQLFilter{Expression: "color = 'blue'"}},
		servicebus.Rule{Name: "all"},
		servicebus.Rule{Name: "tagged", Action: "SET tag = 'a' + color; SET color = 'red'; SET amount = amount + 1; REMOVE Paid"},
		servicebus.Rule{Name: "addressed", Action: "SET sys.To = 'x'; SET sys.Label = sys.MessageId; REMOVE sys.CorrelationId"},
		servicebus.Rule{Name: "never", Filter: servicebus.FalseFilter{}, Action: "SET a = 1"},
	), func(t *testing.T, w *env) {
		m := message("m1", "the body")
		m.CorrelationID, m.ReplyTo = text("c1"), text("back")
		m.ApplicationProperties = map[string]any{"color": "blue", "amount": int32(40), "paid": true}
		w.publish(m)
		r := w.subscriber("billing", nil)
		got := take(t, r, 3)
		require.Equal(t, map[string]any{"color": "blue", "amount": int32(40), "paid": true}, got[0].ApplicationProperties)
		require.Equal(t, map[string]any{"color": "red", "amount": int64(41), "tag": "ablue", "RuleName": "tagged"}, got[1].ApplicationProperties)
		require.Equal(t, map[string]any{"color": "blue", "amount": int32(40), "paid": true, "RuleName": "addressed"}, got[2].ApplicationProperties)
		require.Equal(t, []any{"x", "m1", (*string)(nil), "back"}, []any{*got[2].To, *got[2].Subject, got[2].CorrelationID, *got[2].ReplyTo})
		for i, m := range got {
			require.Equal(t, []any{"m1", "the body", int64(i + 1)}, []any{m.MessageID, string(m.Body), *m.SequenceNumber})
			require.NoError(t, r.CompleteMessage(within(t, time.Minute), m, nil))
		}
		require.Zero(t, w.countsOf(billing))
	})
}

func TestActionMaySetTheMessageID(t *testing.T) {
	bubble(t, ruled(servicebus.Rule{Name: "r", Action: "SET sys.MessageId = sys.MessageId + '-copy'"}), func(t *testing.T, w *env) {
		w.publish(message("m1", "{}"))
		require.Equal(t, "m1-copy", w.copiesOf(billing)[0].Key)
		require.Equal(t, "m1", w.copiesOf(audit)[0].Key)
	})
}

// described takes apart a described list, whose Go type the library does not export.
func described(v any) (descriptor any, fields []any) {
	d := reflect.Indirect(reflect.ValueOf(v))
	return d.FieldByName("Descriptor").Interface(), d.FieldByName("Value").Interface().([]any)
}

// manageRules calls an operation on the rules of the subscription billing.
func manageRules(c *rawClient, op string, body map[string]any) *goamqp.Message {
	return c.reply(billing+"/$management", map[string]any{"operation": "com.microsoft:" + op}, body)
}

func TestRulesAreManagedOverAMQP(t *testing.T) {
	bubble(t, events(nil), func(t *testing.T, w *env) {
		c := w.raw()
		do := func(want int32, op string, body map[string]any) {
			t.Helper()
			m := manageRules(c, op, body)
			require.Equal(t, want, m.ApplicationProperties["statusCode"], "%v", m.ApplicationProperties["statusDescription"])
		}
		description := func(filter string, value map[string]any) map[string]any { return map[string]any{filter: value} }
		sql := description("sql-filter", map[string]any{"expression": "amount > 1"})
		sql["sql-rule-action"] = map[string]any{"expression": "SET a = 1"}
		do(200, "add-rule", map[string]any{"rule-name": "sql", "rule-description": sql})
		do(200, "add-rule", map[string]any{"rule-name": "correlation", "rule-description": description("correlation-filter", map[string]any{
			"correlation-id": "c1", "label": nil, "properties": map[string]any{"color": "blue"},
		})})
		do(200, "add-rule", map[string]any{"rule-name": "none", "rule-description": description("false-filter", map[string]any{})})
		do(409, "add-rule", map[string]any{"rule-name": "SQL", "rule-description": sql})
		do(400, "add-rule", map[string]any{"rule-name": "bad", "rule-description": description("sql-filter", map[string]any{"expression": "amount >"})})
		do(400, "add-rule", map[string]any{"rule-name": "bad", "rule-description": map[string]any{}})
		do(200, "remove-rule", map[string]any{"rule-name": "$default"})
		do(404, "remove-rule", map[string]any{"rule-name": "$Default"})

		rules := manageRules(c, "enumerate-rules", map[string]any{"top": int32(2), "skip": int32(0)}).Value.(map[string]any)["rules"].([]any)
		require.Len(t, rules, 2)
		code, fields := described(rules[0].(map[string]any)["rule-description"])
		require.Equal(t, uint64(1335734829060), code)
		code, filter := described(fields[0])
		require.Equal(t, []any{uint64(83483426822), "amount > 1"}, []any{code, filter[0]})
		code, action := described(fields[1])
		require.Equal(t, []any{uint64(1335734829062), "SET a = 1"}, []any{code, action[0]})
		require.Equal(t, "sql", fields[2])
		_, fields = described(rules[1].(map[string]any)["rule-description"])
		code, filter = described(fields[0])
		require.Equal(t, []any{uint64(83483426825), "c1"}, []any{code, filter[0]})
		do(204, "enumerate-rules", map[string]any{"top": int32(2), "skip": int32(3)})

		m := message("m1", "{}")
		m.ApplicationProperties = map[string]any{"amount": int64(2)}
		w.publish(m, message("m2", "{}"))
		require.Len(t, w.copiesOf(billing), 1)
		require.Len(t, w.copiesOf(audit), 2)
		require.Equal(t, 4, w.history.Count(func(e history.Event) bool { return e.Op == history.ManageRules && e.Effect && e.Entity == billing }))

		status, _ := c.call("orders/$management", map[string]any{"operation": "com.microsoft:enumerate-rules"}, map[string]any{"top": int32(1)})
		require.Equal(t, int32(400), status, "a queue has no rules")
		require.Empty(t, w.Refusals())
	})
}
