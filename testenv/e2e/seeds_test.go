package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/shop"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/traffic"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

var (
	seeds = flag.Int("seeds", 200, "how many seeds TestEverySeed tries")
	first = flag.Uint64("seed", 1, "the first seed that TestEverySeed tries")
)

// TestEverySeed is torture in bubbles: workers that die and restart at random, faults at random before and after every
// effect, and a stream of hostile orders; then a quiet end, and every promise checked. To look into one seed:
// go test ./testenv/e2e -run EverySeed -seeds 1 -seed N.
func TestEverySeed(t *testing.T) {
	for n := range *seeds {
		seed := *first + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, testenv.Options{Faults: fault.Seed(seed, randomFaults()...)}, func(w *env) {
				w.seed = seed
				w.torture(traffic.NewStream(seed, "s-"), func() *runner { return w.start() })
			})
		})
	}
}

// TestEveryEffectOfEverySeed is the same with commands among the orders: documents that exist are changed, in every way. What
// must have come of it is worked out from what the environment wrote, and never from what a worker said.
func TestEveryEffectOfEverySeed(t *testing.T) {
	for n := range max(1, *seeds/2) {
		seed := *first + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, testenv.Options{Faults: fault.Seed(seed, randomFaults()...)}, func(w *env) {
				w.seed, w.records = seed, true
				w.torture(traffic.NewMixedStream(seed, "s-"), w.startShop)
			})
		})
	}
}

// startShop starts a worker that takes commands.
func (w *env) startShop() *runner {
	w.t.Helper()
	source, err := admission.ParsePartitionSource(shop.Partition)
	require.NoError(w.t, err)
	return w.startWith(shop.Handler(), nil, func(c *worker.Config) { c.Admission.Partition = source })
}

// torture sends a stream in bursts while workers come and go, and then lets all of it end well.
func (w *env) torture(stream *traffic.Stream, start func() *runner) {
	rng := rand.New(rand.NewPCG(w.seed, 7))
	alive := []*runner{start(), start()}
	for range 6 {
		w.send(stream.Take(2 + rng.IntN(10))...)
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Millisecond)
		switch i := rng.IntN(len(alive)); rng.IntN(4) {
		case 0, 1:
			alive[i].die()
			alive[i] = start()
		case 2:
			alive[i].stop()
			alive[i] = start()
		}
	}
	w.Faults.Clear()
	start()
	w.waitDrained(time.Hour)
}

// randomFaults are far denser than in production or in the torture of processes: a bubble waits for free.
func randomFaults() []fault.Choice {
	before, after := fault.Before, fault.After
	silence := fault.Action{Kind: fault.Silence}
	choices := []fault.Choice{
		{Op: "cosmosdb.*", Phase: before, Probability: 0.05, Action: fault.DropReply()},
		{Op: "cosmosdb.*", Phase: after, Probability: 0.05, Action: fault.DropReply()},
		{Op: "cosmosdb.*", Phase: after, Probability: 0.02, Action: fault.Action{Kind: fault.Drop, Condition: "stream-reset"}},
		{Op: "cosmosdb.*", Phase: before, Probability: 0.02, Action: silence},
		{Op: "cosmosdb.*", Phase: after, Probability: 0.02, Action: silence},
		{Op: "cosmosdb.*", Phase: after, Probability: 0.02, Action: fault.Action{Kind: fault.Garble}},
		{Op: "cosmosdb.*", Phase: before, Probability: 0.05, Action: fault.Wait(3 * time.Second)},
		{Op: "cosmosdb.*", Phase: after, Probability: 0.05, Action: fault.Wait(3 * time.Second)},
		{Op: history.ReadDocument, Phase: before, Probability: 0.05, Action: fault.Action{Kind: fault.Lag}},
		{Op: history.Connect, Phase: before, Probability: 0.2, Action: fault.DropReply()},
		{Op: history.Attach, Phase: before, Probability: 0.05, Action: fault.Reject("com.microsoft:server-busy")},
		{Op: history.PutToken, Phase: before, Probability: 0.03, Action: fault.Reply(500, 0)},
		{Op: history.Renew, Phase: before, Probability: 0.2, Action: fault.Reply(500, 0)},
		{Op: history.Renew, Phase: after, Probability: 0.1, Action: silence},
	}
	for _, status := range []int{408, 429, 449, 500, 503} {
		choices = append(choices,
			fault.Choice{Op: "cosmosdb.*", Phase: before, Probability: 0.015, Action: fault.Reply(status, 0)},
			fault.Choice{Op: history.CreateDocument, Phase: after, Probability: 0.01, Action: fault.Reply(status, 0)},
			fault.Choice{Op: history.ExecuteBatch, Phase: after, Probability: 0.01, Action: fault.Reply(status, 0)},
		)
	}
	for _, op := range []string{history.Complete, history.Abandon, history.DeadLetter} {
		choices = append(choices,
			fault.Choice{Op: op, Phase: before, Probability: 0.02, Action: fault.DropReply()},
			fault.Choice{Op: op, Phase: after, Probability: 0.02, Action: fault.DropReply()},
			fault.Choice{Op: op, Phase: before, Probability: 0.02, Action: silence},
			fault.Choice{Op: op, Phase: after, Probability: 0.02, Action: silence},
			fault.Choice{Op: op, Phase: before, Probability: 0.02, Action: fault.Reject("com.microsoft:server-busy")},
			fault.Choice{Op: op, Phase: after, Probability: 0.02, Action: fault.Reject("amqp:internal-error")},
			fault.Choice{Op: op, Phase: before, Probability: 0.05, Action: fault.Wait(2 * time.Second)},
		)
	}
	// A detach with com.microsoft:server-busy is left to the torture of processes: it makes the SDK's releaser spin without
	// ever waiting, and in a bubble no time passes while something spins.
	for _, condition := range []string{"amqp:link:detach-forced", "amqp:internal-error", "amqp:not-found"} {
		choices = append(choices, fault.Choice{Op: history.Lock, Phase: after, Probability: 0.01, Action: fault.DetachLink(condition)})
	}
	return append(choices,
		fault.Choice{Op: history.Lock, Phase: after, Probability: 0.01, Action: silence},
		fault.Choice{Op: history.Lock, Phase: after, Probability: 0.005, Action: fault.Action{Kind: fault.CloseConnection, Condition: "amqp:connection:forced"}},
		fault.Choice{Op: history.Lock, Phase: after, Probability: 0.005, Action: fault.Action{Kind: fault.EndSession, Condition: "amqp:internal-error"}},
		fault.Choice{Op: history.Lock, Phase: before, Probability: 0.02, Action: fault.Wait(time.Second)},
		// A round trip takes some time, or none, so that what is read is old before the write that depends on it.
		fault.Choice{Op: "cosmosdb.*", Phase: before, Probability: 0.5, Action: fault.Wait(10 * time.Millisecond)},
	)
}
