package servicebus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// TestSessionsKeepTheirOrderWhateverHappens lets several clients accept sessions, settle, give up and lose them at random. At
// the end every message was completed once, and those of each session in the order in which they were sent.
func TestSessionsKeepTheirOrderWhateverHappens(t *testing.T) {
	const sessions, each, clients = 12, 15, 4
	o := sessionful()
	o.Config.Queues[0].MaxDeliveryCount = 2000
	bubble(t, o, func(t *testing.T, w *env) {
		for i := range sessions * each {
			w.send(of(fmt.Sprint("s", i%sessions), fmt.Sprintf("%03d", i/sessions)))
		}
		var workers sync.WaitGroup
		for i := range clients {
			c, rng := w.dial(), rand.New(rand.NewPCG(uint64(i), 7))
			workers.Go(func() {
				for w.counts().Total() > 0 {
					workOnce(w, c, rng)
				}
			})
		}
		workers.Wait()
		done := map[string][]string{}
		for _, e := range w.history.Events() {
			if e.Op == history.Complete && e.Effect {
				done[e.Session] = append(done[e.Session], e.Key)
			}
		}
		require.Len(t, done, sessions)
		for id, keys := range done {
			require.Len(t, keys, each, id)
			require.True(t, slices.IsSorted(keys), "%s: %v", id, keys)
		}
		require.Empty(t, w.sessions())
	})
}

// workOnce accepts a session and does something with up to five of its messages, one by one. Errors are what is tried here.
func workOnce(w *env, c *azservicebus.Client, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := c.AcceptNextSessionForQueue(ctx, "orders", nil)
	if err != nil {
		return
	}
	for range rng.IntN(5) {
		short, stop := context.WithTimeout(ctx, time.Second)
		ms, err := r.ReceiveMessages(short, 1, nil)
		stop()
		if err != nil || len(ms) == 0 {
			break
		}
		settle, stop := context.WithTimeout(context.Background(), 2*time.Second)
		switch rng.IntN(10) {
		case 0:
			_ = w.EndSessionLock("orders", r.SessionID())
		case 1:
			_ = r.AbandonMessage(settle, ms[0], nil)
		default:
			_ = r.CompleteMessage(settle, ms[0], nil)
		}
		stop()
	}
	_ = r.Close(context.Background())
}

// TestFaultsAtTheAcceptingOfASession holds that a session is free again whatever goes wrong while it is accepted.
func TestFaultsAtTheAcceptingOfASession(t *testing.T) {
	for name, rule := range map[string]*fault.Rule{
		"refused before":     fault.On(history.Attach).Entity("orders").Before(fault.Reject("com.microsoft:server-busy")),
		"refused after":      fault.On(history.Attach).Entity("orders").After(fault.Reject("com.microsoft:server-busy")),
		"detached after":     fault.On(history.Attach).Entity("orders").After(fault.DetachLink("amqp:link:detach-forced")),
		"cut before":         fault.On(history.Attach).Entity("orders").Before(fault.DropReply()),
		"cut after":          fault.On(history.Attach).Entity("orders").After(fault.DropReply()),
		"delayed before":     fault.On(history.Attach).Entity("orders").Before(fault.Wait(5 * time.Second)),
		"never answered":     fault.On(history.Attach).Entity("orders").Before(fault.Action{Kind: fault.Silence}),
		"renewal is refused": fault.On(history.RenewSession).Key("a").Before(fault.Reply(500, 0)),
		"renewal gets lost":  fault.On(history.RenewSession).Key("a").After(fault.Action{Kind: fault.Silence}),
		"state gets lost":    fault.On(history.SetSessionState).Key("a").Before(fault.Action{Kind: fault.Silence}),
	} {
		t.Run(name, func(t *testing.T) {
			o := sessionful()
			o.Faults = fault.Script(rule)
			bubble(t, o, func(t *testing.T, w *env) {
				// A message that is there before the fault, sent without a link that the rule could strike.
				_, err := w.Send("orders", servicebus.Message{Properties: &servicebus.Properties{MessageID: "m1", GroupID: text("a")}})
				require.NoError(t, err)
				first := w.dial()
				if r, err := first.AcceptNextSessionForQueue(within(t, 10*time.Second), "orders", nil); err == nil {
					_ = r.RenewSessionLock(within(t, 10*time.Second), nil)
					_ = r.SetSessionState(within(t, 10*time.Second), []byte("x"), nil)
				}
				_ = first.Close(context.Background())
				m := take(t, w.acceptNext(), 1)[0]
				require.Equal(t, []any{"m1", uint32(1)}, []any{m.MessageID, m.DeliveryCount})
			})
		})
	}
}
