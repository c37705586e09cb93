package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// TestRestartsWhileWritesHangDeadLetterNothing restarts the worker as often as a message may be delivered, while reads are
// answered and creates are not. A process that has committed nothing asks with a write before it receives.
func TestRestartsWhileWritesHangDeadLetterNothing(t *testing.T) {
	t.Parallel()
	const messages = 10
	for _, tt := range []struct {
		name     string
		restarts int
		probed   bool // the create that the store is asked with hangs as well
	}{
		{"every create hangs", 10, true},
		{"the creates of orders hang, and what is asked is answered", 9, false}, // the tenth delivery is the last
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, testenv.Options{}, func(w *env) {
				w.skipAudit = true
				for i := range messages {
					rule := fault.On(history.CreateDocument).Always().Before(fault.Wait(time.Hour))
					if !tt.probed {
						rule = rule.Key(fmt.Sprintf("order-%d", i))
					}
					w.Faults.Add(rule)
					w.send(order(fmt.Sprintf("order-%d", i), `{"x":1}`))
				}
				for range tt.restarts {
					r := w.start()
					time.Sleep(time.Minute)
					r.end()
				}
				touched := w.History.Count(func(e history.Event) bool { return e.Op == history.Lock && e.Effect })
				if tt.probed {
					require.Zero(t, touched, "nothing is received before a write is answered")
				}
				require.LessOrEqual(t, touched, tt.restarts, "one message for each process")
				w.Faults.Clear()
				w.start()
				w.waitDrained(time.Hour)
				require.Empty(t, w.deadLetters())
				require.Len(t, w.Stored(), messages)
			})
		})
	}
}
