package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

func TestAnArticleIsOneWriteAndOneSettle(t *testing.T) {
	t.Parallel()
	env := apptest.Start(t, nil, "WORKER_PARTITION=property:sku")
	worker := env.Work(program())
	for _, body := range []string{`{"price":100}`, `{"price":100}`, `{"price":120}`} {
		id := "price-of-tea"
		env.SendMessages(&azservicebus.Message{MessageID: &id, Body: []byte(body), ApplicationProperties: map[string]any{"sku": "tea"}})
		env.WaitUntilSettled(time.Minute)
	}
	var article struct{ Price int }
	env.Document("tea", &article)
	require.Equal(t, 120, article.Price)
	require.Equal(t, []string{"tea"}, env.Services.Stored(), "no inbox record")
	require.Equal(t, 3, worker.Stop()["created"])
	require.Equal(t, slices.Repeat([]string{history.Lock, history.ExecuteBatch, history.Complete}, 3), requests(env))
}

// requests are the requests of the worker for its messages, in order: all but those of connections, of account and container, and
// of a ready worker.
func requests(env *apptest.Env) []string {
	var ops []string
	for _, e := range env.Services.History.Events() {
		switch e.Op {
		case history.Send, history.Attach, history.PutToken, history.Connect, history.Peek, history.ReadAccount, history.ReadContainer:
		default:
			if !strings.Contains(e.Partition, "~probe") {
				ops = append(ops, e.Op)
			}
		}
	}
	return ops
}
