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

// TestReadsThatAreOutOfOrderPutNoRepeatAside spoils every read of a document for as long as messages would take to use up
// their deliveries, while creates are accepted: repeats and conflicts are told apart all the same, and nothing else is put
// aside.
func TestReadsThatAreOutOfOrderPutNoRepeatAside(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]fault.Action{
		"a region far behind":  fault.Reply(404, 0),
		"a page to sign in to": {Kind: fault.Refuse, Status: 200, Body: "<html>sign in</html>"},
		"nothing at all":       {Kind: fault.Refuse, Status: 200, Body: " "},
		"a redirect":           fault.Reply(302, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, testenv.Options{}, func(w *env) {
				w.start()
				w.send(order("1", `{"amount":40}`), order("2", `{"lines":[{"sku":"a"},{"sku":"b"}]}`))
				w.waitDrained(time.Minute)
				w.Faults.Add(fault.On(history.ReadDocument).Always().Before(a))
				w.send(order("1", `{"amount":40}`), order("2", `{"lines":[{"sku":"a"},{"sku":"b"}]}`), order("1", `{"amount":41}`))
				for i := range 30 {
					w.send(order(fmt.Sprintf("new-%d", i), `{"x":1}`))
					time.Sleep(10 * time.Second)
				}
				w.Faults.Clear()
				w.waitDrained(30 * time.Minute)
				require.Len(w.t, w.deadLetters(), 1)
				require.Equal(w.t, "ContentConflict", w.deadLetters()[0].DeadLetterReason)
			})
		})
	}
}
