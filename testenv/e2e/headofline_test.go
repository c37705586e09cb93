package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker/reason"
)

// TestAMessageThatTheStoreAlwaysFailsOnStopsNoOther sends messages over which the store gives, for ever, an answer that it
// would also give when it is out of order, and then good ones. The good ones must get through, and the bad ones end as dead
// letters with the real cause.
func TestAMessageThatTheStoreAlwaysFailsOnStopsNoOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer fault.Action
		bad    int
	}{
		{"an internal error", fault.Reply(500, 0), 1},
		{"service unavailable", fault.Reply(503, 0), 1},
		{"forbidden", fault.Reply(403, 0), 1},
		{"a wrong partition key", fault.Reply(400, 1001), 1},
		{"no reply", fault.DropReply(), 1},
		{"an internal error for more messages than there are slots", fault.Reply(500, 0), 20},
		{"forbidden for more messages than there are slots", fault.Reply(403, 0), 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, testenv.Options{Adjust: func(q *servicebus.Queue) { q.DefaultMessageTimeToLive = 14 * 24 * time.Hour }}, func(w *env) {
				w.expect.Drained = false
				w.skipAudit = true
				for i := range tt.bad {
					id := fmt.Sprintf("bad-%d", i)
					w.Faults.Add(fault.On("cosmosdb.*").Key(id).Always().Before(tt.answer))
					w.send(order(id, `{"x":1}`))
				}
				w.start()
				time.Sleep(5 * time.Minute)
				for i := range 100 {
					w.send(order(fmt.Sprintf("good-%d", i), `{"x":1}`))
				}
				good := 100
				w.waitFor(time.Hour, "the good orders to be stored", func() bool { return len(w.Stored()) == good })
				for ; len(w.deadLetters()) < tt.bad; good++ { // the work goes on, and that the store takes it is what tells
					require.Less(t, good, 1000, "the bad messages are not dead-lettered")
					w.send(order(fmt.Sprintf("good-%d", good), `{"x":1}`))
					time.Sleep(time.Minute)
				}
				for _, m := range w.deadLetters() {
					if tt.bad == 1 {
						require.Equal(t, reason.NeverStorable, m.DeadLetterReason)
						continue
					}
					// More of them than slots can lose a lock while they stand in line, and then the broker has the last word.
					require.Contains(t, []string{reason.NeverStorable, reason.MaxDeliveryCountExceeded}, m.DeadLetterReason)
				}
			})
		})
	}
}
