package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/reason"
)

func handlerOf(name string) worker.Handler {
	return worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
		return worker.Create(worker.Document{Type: name, Content: []byte(`{}`)}), nil
	})
}

func TestARouterHandsEachMessageToTheHandlerOfItsType(t *testing.T) {
	routes := map[string]worker.Handler{"order": handlerOf("order"), "payment": handlerOf("payment")}
	for _, tt := range []struct {
		name    string
		by      worker.TypeSource
		message worker.Message
		unknown worker.UnknownType
		created string
		ignored string
		reason  string
	}{
		{name: "by subject", by: worker.BySubject, message: worker.Message{Subject: "order"}, unknown: worker.RejectUnknown, created: "order"},
		{name: "by a property", by: worker.ByProperty("type"), unknown: worker.RejectUnknown, created: "payment",
			message: worker.Message{ApplicationProperties: map[string]any{"type": "payment"}}},
		{name: "by a property that is no text", by: worker.ByProperty("type"), unknown: worker.RejectUnknown, reason: reason.UnknownType,
			message: worker.Message{ApplicationProperties: map[string]any{"type": int64(1)}}},
		{name: "by the body", by: worker.ByBody("/meta/type"), message: worker.Message{Body: []byte(`{"meta":{"type":"order"}}`)}, unknown: worker.RejectUnknown, created: "order"},
		{name: "by the type of a CloudEvent", by: worker.ByCloudEventType, message: worker.Message{Body: []byte(`{"specversion":"1.0","type":"payment"}`)}, unknown: worker.RejectUnknown, created: "payment"},
		{name: "types differ in case", by: worker.BySubject, message: worker.Message{Subject: "Order"}, unknown: worker.RejectUnknown, reason: reason.UnknownType},
		{name: "an unknown type is ignored when that was chosen", by: worker.BySubject, message: worker.Message{Subject: "refund"}, unknown: worker.IgnoreUnknown, ignored: reason.UnknownType},
		{name: "no type at all is an unknown type", by: worker.BySubject, unknown: worker.IgnoreUnknown, ignored: reason.UnknownType},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := worker.Route(tt.by, routes, tt.unknown)
			require.NoError(t, r.Validate())
			effects, err := r.Handle(t.Context(), tt.message)
			if tt.reason != "" {
				rejected, ok := errors.AsType[*worker.RejectError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, tt.reason, rejected.Reason)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.ignored, effects.Ignored())
			if tt.created != "" {
				require.Equal(t, tt.created, effects.Documents[0].Type)
			}
		})
	}
}

func TestARouterThatIsPutTogetherWronglyReportsEveryFault(t *testing.T) {
	err := worker.Route(nil, map[string]worker.Handler{"": handlerOf("x"), "a": nil}, 0).Validate()
	require.ErrorContains(t, err, "source of the type")
	require.ErrorContains(t, err, `type ""`)
	require.ErrorContains(t, err, `type "a"`)
	require.ErrorContains(t, err, "RejectUnknown or IgnoreUnknown")
	require.ErrorContains(t, worker.Route(worker.BySubject, nil, worker.IgnoreUnknown).Validate(), "at least one handler")
	_, err = worker.NewPipeline(worker.Config{}, nil, worker.Route(nil, nil, 0))
	require.Error(t, err)
}

func TestAnIgnoredMessageIsCompletedAndNothingIsStored(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.handler = worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) { return worker.Ignore("Not ours!"), nil })
		e.ignored = func(string) bool { return true }
		e.send("1", `{}`)
		e.send("2", `{}`)
		w := e.start(worker.Config{})
		e.await(time.Minute, "drained", e.drained)
		require.Zero(e, e.mem.Len())
		require.Empty(e, e.deadLetters())
		ignored := e.seen(worker.EventIgnored)
		require.Len(e, ignored, 2)
		require.Equal(e, "Notours", ignored[0].Reason)
		require.Zero(e, e.count(worker.EventNotSettled))
		e.end(w)
	})
}

func TestEffectsThatContradictEachOtherAreTheHandlersFault(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			effects := worker.Ignore("NotOurs")
			effects.Documents = []worker.Document{{Type: "order", Content: m.Body}}
			return effects, nil
		})
		e.send("1", `{}`)
		w := e.start(worker.Config{})
		e.await(time.Minute, "dead-lettered", func() bool { return len(e.deadLetters()) == 1 })
		require.Equal(e, reason.InvalidEffects, e.deadLetters()[0].DeadLetterReason)
		require.Zero(e, e.mem.Len())
		e.end(w)
	})
}

// debit returns a handler that takes an amount from an account, or rejects the message.
func debit(ctx context.Context, m worker.Message) (worker.Effects, error) {
	state, err := m.Read(ctx, "account")
	if err != nil {
		return worker.Effects{}, err
	}
	var account struct {
		Balance int `json:"balance"`
	}
	if err := json.Unmarshal(state.Content, &account); err != nil {
		return worker.Effects{}, err
	}
	if account.Balance < 1 {
		return worker.Effects{}, worker.Reject("InsufficientFunds", errors.New("the balance is too low"))
	}
	content := fmt.Appendf(nil, `{"balance":%d}`, account.Balance-1)
	return worker.Apply(worker.Replace("account", content, state.ETag)), nil
}

// inPartition is a configuration in which the application property "account" names the partition.
func inPartition(t testing.TB) worker.Config {
	source, err := admission.ParsePartitionSource("property:account")
	require.NoError(t, err)
	return worker.Config{Admission: admission.Config{Partition: source}}
}

func (e *env) sendTo(partition, id, body string) {
	e.sendAll(&azservicebus.Message{MessageID: &id, Body: []byte(body), ApplicationProperties: map[string]any{"account": partition}})
}

func TestMessagesThatRaceForOneDocumentAllEndCommitted(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		const debits = 60
		e.handler = worker.HandlerFunc(debit)
		e.mem.Put("a1", "account", fmt.Appendf(nil, `{"balance":%d}`, debits))
		for i := range debits {
			e.sendTo("a1", fmt.Sprint("d", i), fmt.Sprintf(`{"n":%d}`, i))
		}
		for range 4 {
			e.start(inPartition(e))
		}
		e.await(time.Hour, "drained", e.drained)
		require.Empty(e, e.deadLetters())
		require.Equal(e, debits, e.count(worker.EventCreated))
		state, err := e.mem.Read(e.Context(), "a1", "account")
		require.NoError(e, err)
		require.JSONEq(e, `{"balance":0}`, string(state.Content))
		require.Zero(e, e.count(worker.EventBreakerOpened), "a race is no outage")
		for id, n := range e.deliveries() {
			require.Equal(e, 1, n, "a lost race costs %s no delivery", id)
		}
		e.sendTo("a1", "one too many", `{}`)
		e.await(time.Minute, "rejected", func() bool { return len(e.deadLetters()) == 1 })
		require.Equal(e, "InsufficientFunds", e.deadLetters()[0].DeadLetterReason)
	})
}

func TestStateThatKeepsChangingEndsWithItsOwnReason(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 2}, func(e *env) {
		runs := 0
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			runs++
			state, err := m.Read(ctx, "account")
			e.mem.Put("a1", "account", []byte(`{"balance":1}`)) // somebody is always faster
			return worker.Apply(worker.Replace("account", []byte(`{"balance":0}`), state.ETag)), err
		})
		e.mem.Put("a1", "account", []byte(`{"balance":1}`))
		e.sendTo("a1", "m", `{}`)
		c := inPartition(e)
		c.MaxDeliveryCount, c.Retry.HoldFor = 2, time.Minute
		w := e.start(c)
		e.await(time.Hour, "dead-lettered", func() bool { return len(e.deadLetters()) == 1 })
		dead := e.deadLetters()[0]
		require.Equal(e, reason.StateKeptChanging, dead.DeadLetterReason)
		require.Contains(e, dead.DeadLetterErrorDescription, `"account"`)
		require.Greater(e, runs, 20, "it was tried for as long as it could be held")
		require.Zero(e, e.count(worker.EventBreakerOpened))
		e.end(w)
	})
}

func TestAMessageThatComesAgainIsLookedUpBeforeItsHandlerRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		config worker.Config
		calls  int
	}{
		"a redelivery":                       {calls: 1},
		"with every message looked up first": {config: worker.Config{LookFirst: true}, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Queue{LockDuration: 10 * time.Second}, func(e *env) {
				calls := 0
				e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
					calls++
					return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
				})
				e.faults.Add(fault.On(history.Complete).Times(20).Before(fault.DropReply())) // it is committed and cannot say so
				e.send("1", `{"a":1}`)
				w := e.start(tt.config)
				e.await(5*time.Minute, "redelivered", func() bool { return e.deliveries()["1"] > 1 })
				e.faults.Clear()
				e.await(time.Hour, "drained", e.drained)
				require.Equal(e, tt.calls, calls)
				require.Equal(e, 1, e.mem.Creations("1"))
				e.end(w)
			})
		})
	}
	t.Run("a duplicate that a sender made runs the handler, unless every message is looked up", func(t *testing.T) {
		for _, first := range []bool{false, true} {
			bubble(t, servicebus.Queue{}, func(e *env) {
				calls := 0
				e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
					calls++
					return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
				})
				w := e.start(worker.Config{LookFirst: first, Concurrency: 1})
				for range 3 {
					e.send("1", `{"a":1}`)
					e.await(time.Minute, "drained", e.drained)
				}
				want := 3
				if first {
					want = 1
				}
				require.Equal(e, want, calls)
				require.Equal(e, 2, e.count(worker.EventDuplicate))
				e.end(w)
			})
		}
	})
}

func TestTheStoreFailingUnderAReadOfTheHandlerIsAnOutageAndNoFaultOfTheMessage(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 2}, func(e *env) {
		var down atomic.Bool
		down.Store(true)
		runs := 0
		e.handler = worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
			runs++
			if down.Load() {
				return worker.Effects{}, fmt.Errorf("look at the account: %w", &worker.UnavailableError{Cause: errors.New("503")})
			}
			return worker.Apply(worker.Upsert("account", []byte(`{}`))), nil
		})
		e.sendTo("a1", "m", `{}`)
		c := inPartition(e)
		c.MaxDeliveryCount = 2
		w := e.start(c)
		time.Sleep(2 * time.Hour)
		require.Empty(e, e.deadLetters())
		down.Store(false)
		e.await(time.Hour, "drained", e.drained)
		require.Equal(e, 1, e.count(worker.EventCreated))
		e.end(w)
		require.Less(e, runs, 2000, "its handler waits for the store between its runs")
	})
}

func TestEffectsThatCannotBeAreRefusedWithTheFieldAndTheFix(t *testing.T) {
	big := make([]worker.PatchOperation, 11)
	for i := range big {
		big[i] = worker.Set("/a", i)
	}
	for _, tt := range []struct {
		name    string
		effects worker.Effects
		want    string
	}{
		{"no id", worker.Apply(worker.Upsert("", []byte(`{}`))), "Changes[0]"},
		{"the id of a record", worker.Apply(worker.Upsert("1042~part.inbox-record", []byte(`{}`))), "belongs to the inbox records"},
		{"the id of a journal entry", worker.Apply(worker.Delete("~action.1", "")), "belongs to the inbox records"},
		{"content that is no object", worker.Apply(worker.Upsert("a", []byte(`[1]`))), "not one JSON object"},
		{"a replace without an ETag", worker.Apply(worker.Replace("a", []byte(`{}`), "")), "no ETag"},
		{"a patch without operations", worker.Apply(worker.Patch("a")), "0 Operations"},
		{"a patch with too many", worker.Apply(worker.Patch("a", big...)), "11 Operations"},
		{"a path that cannot exist", worker.Apply(worker.Patch("a", worker.Set("status", 1))), "no JSON pointer"},
		{"a path of the store", worker.Apply(worker.Patch("a", worker.Remove("/request/hash"))), "which the store writes"},
		{"a null value", worker.Apply(worker.Patch("a", worker.Set("/a", nil))), "without a Value"},
		{"an increment by a fraction", worker.Apply(worker.Patch("a", worker.PatchOperation{Kind: worker.PatchIncrement, Path: "/a", Value: 1.5})), "no int64"},
		{"a condition that breaks out", worker.Apply(worker.Patch("a", worker.Set("/a", 1)).If(`from c where c.x = "1"`)), "double quote"},
		{"a condition without its beginning", worker.Apply(worker.Patch("a", worker.Set("/a", 1)).If(`c.x = 1`)), "does not begin"},
		{"a condition of an upsert", worker.Apply(worker.Upsert("a", []byte(`{}`)).If("from c where c.x = 1")), "only a patch"},
		{"two changes of one document", worker.Apply(worker.Delete("a", ""), worker.Upsert("a", []byte(`{}`))), "a second change"},
		{"a version that no double holds", worker.Apply(worker.Upsert("a", []byte(`{}`))).SetVersion("a", "/v", 1<<53), "2^53-1"},
		{"a negative version", worker.Apply(worker.Upsert("a", []byte(`{}`))).SetVersion("a", "/v", -1), "2^53-1"},
		{"a version at a path that a query cannot name", worker.Apply(worker.Upsert("a", []byte(`{}`))).SetVersion("a", "/v'x", 1), "Version.Path"},
		{"a version of another document", worker.Apply(worker.Upsert("a", []byte(`{}`))).SetVersion("b", "/v", 1), "none of Changes"},
		{"a version of a document whose name looks like another's", worker.Apply(worker.Upsert("a", []byte(`{}`))).SetVersion("\u0430", "/v", 1), `"\u0430"`},
		{"a version beside an ETag", worker.Apply(worker.Change{Kind: worker.ChangeUpsert, ID: "a", ETag: `"1"`, Content: []byte(`{"v":1}`)}).SetVersion("a", "/v", 1), "an ETag of its upsert"},
		{"a version that the content lacks", worker.Apply(worker.Upsert("a", []byte(`{}`))).SetVersion("a", "/v", 1), "set it there"},
		{"a version that the content has otherwise", worker.Apply(worker.Upsert("a", []byte(`{"v":"1"}`))).SetVersion("a", "/v", 1), "set it there"},
		{"the ETag of every document", worker.Apply(worker.Replace("a", []byte(`{}`), "*")), "the ETag *"},
		{"an element that is inserted without a record", worker.Apply(worker.Patch("a", worker.Add("/list/0", 1))).WithoutRecord(), "done twice"},
		{"an element that is removed without a record", worker.Apply(worker.Patch("a", worker.Remove("/list/0"))).WithoutRecord(), "done twice"},
		{"an element that is appended without a record", worker.Apply(worker.Patch("a", worker.Set("/list/-", 1))).WithoutRecord(), "done twice"},
		{"documents without a record", worker.Create(worker.Document{Type: "order", Content: []byte(`{}`)}).WithoutRecord(), "WithoutRecord"},
		{"an increment without a record", worker.Apply(worker.Patch("a", worker.Increment("/a", 1))).WithoutRecord(), "counted twice"},
		{"an outcome that is no JSON", func() worker.Effects {
			e := worker.Apply(worker.Upsert("a", []byte(`{}`)))
			e.Outcome = []byte(`{"x":`)
			return e
		}(), "an Outcome"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				e.handler = worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) { return tt.effects, nil })
				e.sendTo("a1", "m", `{}`)
				w := e.start(inPartition(e))
				e.await(time.Minute, "dead-lettered", func() bool { return len(e.deadLetters()) == 1 })
				require.Equal(e, reason.InvalidEffects, e.deadLetters()[0].DeadLetterReason)
				require.Contains(e, e.deadLetters()[0].DeadLetterErrorDescription, tt.want)
				e.end(w)
			})
		})
	}
}

func TestAnUpsertOfAbsoluteStateLeavesNoRecord(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.handler = worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
			return worker.Apply(worker.Upsert("product", m.Body)).WithoutRecord(), nil
		})
		e.sendTo("p1", "m", `{"price":7}`)
		w := e.start(inPartition(e))
		e.await(time.Minute, "drained", e.drained)
		require.Zero(e, e.mem.Len(), "no record")
		state, err := e.mem.Read(e.Context(), "p1", "product")
		require.NoError(e, err)
		require.JSONEq(e, `{"price":7}`, string(state.Content))
		e.end(w)
	})
}

func TestACopyThatWouldBeRejectedForWhatTheFirstHasChangedIsADuplicate(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.handler = worker.HandlerFunc(debit)
		e.mem.Put("a1", "account", []byte(`{"balance":1}`))
		w := e.start(inPartition(e))
		for _, id := range []string{"d", "d", "other"} {
			e.sendTo("a1", id, fmt.Sprintf(`{"id":%q}`, id))
			e.await(time.Minute, "done", func() bool { return e.counts().Active+e.counts().Locked == 0 })
		}
		require.Equal(e, 1, e.count(worker.EventDuplicate))
		require.Len(e, e.deadLetters(), 1)
		require.Equal(e, "other", e.deadLetters()[0].Key, "what was never committed is rejected")
		e.end(w)
	})
}
