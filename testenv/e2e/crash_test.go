package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// TestAWorkerDiesAtEveryStepAndAnotherCarriesOn kills the worker before and after the effect of every operation between
// receive and settle, for every kind of order.
func TestAWorkerDiesAtEveryStepAndAnotherCarriesOn(t *testing.T) {
	const plain, lined, other = `{"amount":40}`, `{"amount":40,"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"amount":41}`
	first := []traffic.Message{order("stored", plain)}
	tests := []struct {
		name  string
		first []traffic.Message // handled by a worker that lives
		then  traffic.Message
		ops   []string
	}{
		{name: "a new order", then: order("1", plain), ops: []string{history.Lock, history.CreateDocument, history.Complete}},
		{name: "a new order with lines", then: order("1", lined), ops: []string{history.Lock, history.ExecuteBatch, history.Complete}},
		{name: "a duplicate", first: first, then: order("stored", plain), ops: []string{history.Lock, history.CreateDocument, history.ReadDocument, history.Complete}},
		{name: "a duplicate with lines", first: []traffic.Message{order("stored", lined)}, then: order("stored", lined), ops: []string{history.Lock, history.ExecuteBatch, history.ReadDocument, history.Complete}},
		{name: "a conflict", first: first, then: order("stored", other), ops: []string{history.Lock, history.CreateDocument, history.ReadDocument, history.DeadLetter}},
		{name: "an unreadable body", then: traffic.Message{ID: "1", Body: []byte(`{`), Kind: traffic.Unreadable}, ops: []string{history.Lock, history.DeadLetter}},
	}
	phases := map[fault.Phase]string{fault.Before: "before", fault.After: "after"}
	for _, tt := range tests {
		for _, op := range tt.ops {
			for phase, word := range phases {
				t.Run(fmt.Sprintf("%s, dead %s %s", tt.name, word, op), func(t *testing.T) {
					inBubble(t, testenv.Options{}, func(w *env) {
						doomed := w.start()
						w.send(tt.first...)
						w.waitDrained(time.Minute)
						died := false
						kill := fault.Call(func() { died = true; doomed.die() })
						rule := fault.On(op).Key(tt.then.ID)
						if phase == fault.Before {
							w.Faults.Add(rule.Before(lost(kill)))
						} else {
							w.Faults.Add(rule.After(kill))
						}
						w.send(tt.then)
						w.waitFor(time.Minute, "the worker to die", func() bool { return doomed.door.isCut() })
						require.True(t, died)
						w.start()
						w.waitDrained(5 * time.Minute)
					})
				})
			}
		}
	}
}
