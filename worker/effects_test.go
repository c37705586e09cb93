package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
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
