package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	plans "github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// TestAPlanIsFinishedWhateverGoesWrongOnTheWay applies a plan while one thing goes wrong, as often as it takes, with the real
// clients and stores at both ends. The history has the last word.
func TestAPlanIsFinishedWhateverGoesWrongOnTheWay(t *testing.T) {
	if testing.Short() {
		t.Skip("every fault costs some seconds of waiting")
	}
	t.Parallel()
	faults := map[string]*plans.Rule{}
	for _, op := range []string{
		history.Connect, history.PutToken, history.Attach, history.Peek, history.Lock, history.Complete, history.Abandon,
		history.ReadDocument, history.CreateDocument, history.ExecuteBatch, history.QueryDocuments,
	} {
		for _, nth := range []int{1, 2, 3} {
			name := op + [...]string{"", " first", " second", " third"}[nth]
			if op != history.Lock { // a delivery has no answer that could be lost
				faults[name+" answer"] = plans.On(op).Nth(nth).After(plans.DropReply())
			}
			faults[name+" request"] = plans.On(op).Nth(nth).Before(plans.DropReply())
		}
	}
	faults["a throttled store"] = plans.On("cosmosdb.*").Times(4).Before(plans.Throttle(0))
	faults["a store that is down"] = plans.On("cosmosdb.create").Times(3).Before(plans.Reply(503, 0))
	for name, rule := range faults {
		t.Run(strings.ReplaceAll(name, ".", " "), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			plan := d.file("plan.jsonl")
			d.ok("plan", "--file", plan)
			d.env.Faults.Add(rule)
			code, log := exitFailure, ""
			for range 4 {
				var stdout, stderr string
				code, stdout, stderr = d.run("apply", plan, "--execute", "--reason", "ticket 9")
				if log += stdout + stderr; code == exitOK && dead(t, d.env) == 2 {
					break
				}
			}
			require.Equal(t, exitOK, code, log)
			require.Equal(t, 2, dead(t, d.env), log)
			require.Contains(t, d.env.Stored(), "m2~part.line-2")
			require.NoError(t, history.Check(d.env.History.Events(), d.env.Expect()))
		})
	}
}
