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
	const messages, restarts = 10, 10
	for name, key := range map[string]string{"every create": "", "the creates of orders alone": "order"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, testenv.Options{}, func(w *env) {
				w.skipAudit = true
				for i := range messages {
					rule := fault.On(history.CreateDocument).Always().Before(fault.Wait(time.Hour))
					if key != "" {
						rule = rule.Key(fmt.Sprintf("%s-%d", key, i))
					}
					w.Faults.Add(rule)
					w.send(order(fmt.Sprintf("order-%d", i), `{"x":1}`))
				}
				for range restarts - 1 {
					r := w.start()
					time.Sleep(time.Minute)
					r.end()
				}
				touched := w.History.Count(func(e history.Event) bool { return e.Op == history.Lock && e.Effect })
				if key == "" {
					require.Zero(t, touched, "nothing is received before a write is answered")
				}
				require.LessOrEqual(t, touched, restarts-1, "one message for each process")
				w.Faults.Clear()
				w.start()
				w.waitDrained(time.Hour)
				require.Empty(t, w.deadLetters())
				require.Len(t, w.Stored(), messages)
			})
		})
	}
}
