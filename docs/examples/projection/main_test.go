package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

func TestShuffledAndDoubledEventsEndAtTheNewest(t *testing.T) {
	t.Parallel()
	const versions = 30
	env := apptest.Start(t, nil, "WORKER_PARTITION=property:customerId")
	var messages []*azservicebus.Message
	for n := range 2 * versions {
		id := fmt.Sprint("v", n%versions)
		messages = append(messages, &azservicebus.Message{MessageID: &id, Body: fmt.Appendf(nil, `{"version":%d,"name":"name %[1]d"}`, n%versions),
			ApplicationProperties: map[string]any{"customerId": "c-1"}})
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	env.SendMessages(messages...)
	one, other := env.Work(program()), env.Work(program())
	env.WaitUntilSettled(time.Minute)
	counts := one.Stop()
	for name, n := range other.Stop() {
		counts[name] += n
	}
	var stored event
	env.Document("c-1", &stored)
	require.Equal(t, event{Version: versions - 1, Name: fmt.Sprint("name ", versions-1)}, stored)
	require.Empty(t, env.DeadLetters())
	t.Logf("%d were applied, %d stale, %d duplicates", counts["created"], counts["stale"], counts["duplicate"])
	require.Positive(t, counts["stale"])
	require.Equal(t, versions, counts["created"]+counts["stale"])
	require.Equal(t, versions, counts["duplicate"])
	require.Equal(t, counts["created"], env.Services.History.Count(func(e history.Event) bool { return e.Op == history.ExecuteBatch && e.Effect }),
		"of a stale event the customer is not written")
	require.Len(t, env.Services.Stored(), versions+1, "the customer, and an inbox record of each event, stale or not")
	require.Equal(t, counts["stale"], env.Services.History.Count(func(e history.Event) bool { return e.Op == history.CreateDocument && e.Effect }),
		"of a stale event the inbox record alone is created")
}
