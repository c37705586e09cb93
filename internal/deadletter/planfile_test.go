package deadletter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func planOf(t testing.TB, steps ...deadletter.PlanStep) string {
	t.Helper()
	var b strings.Builder
	plan := deadletter.Plan{PlanHeader: deadletter.PlanHeader{ID: "p1", Queue: "orders", CreatedAt: noon, CreatedBy: "ann"}, Steps: steps}
	require.NoError(t, plan.Write(&b))
	return b.String()
}

func step(n int64) deadletter.PlanStep {
	return deadletter.PlanStep{Sequence: n, Action: deadletter.Discard, Verdict: deadletter.AlreadyApplied, MessageID: fmt.Sprint("m", n), EnqueuedAt: noon}
}

func TestAPlanComesBackAsItWasWritten(t *testing.T) {
	p, err := deadletter.ReadPlan(strings.NewReader(planOf(t, step(1), step(5))))
	require.NoError(t, err)
	require.Equal(t, deadletter.PlanHeader{Version: 1, ID: "p1", Queue: "orders", CreatedAt: noon, CreatedBy: "ann"}, p.PlanHeader)
	require.Equal(t, []deadletter.PlanStep{step(1), step(5)}, p.Steps)
	p, err = deadletter.ReadPlan(strings.NewReader(planOf(t)))
	require.NoError(t, err)
	require.Empty(t, p.Steps)
}

func TestAPlanThatIsNotWholeIsRefused(t *testing.T) {
	whole := planOf(t, step(1), step(2), step(3))
	lines := strings.SplitAfter(whole, "\n")
	for name, text := range map[string]string{
		"empty": "", "cut": strings.Join(lines[:3], ""), "without a step": strings.Join(append(lines[:1:1], lines[2:]...), ""),
		"a step was changed": strings.Replace(whole, "discard", "resubmit", 1), "without a header": strings.Join(lines[1:], ""),
		"another version": strings.Replace(whole, `"plan":1`, `"plan":2`, 1), "something follows": whole + lines[1],
		"no JSON": "hello\n", "an unknown action": strings.Replace(whole, "discard", "explode", 1), "cut in a line": whole[:len(whole)-30],
		"steps out of order": lines[0] + lines[2] + lines[1],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := deadletter.ReadPlan(strings.NewReader(text))
			require.ErrorIs(t, err, deadletter.ErrPlan)
		})
	}
}

func TestALongPlanIsReadAtOnce(t *testing.T) {
	var steps []deadletter.PlanStep
	for n := int64(1); n <= 20_000; n++ {
		steps = append(steps, step(n))
	}
	p, err := deadletter.ReadPlan(strings.NewReader(planOf(t, steps...)))
	require.NoError(t, err)
	require.Len(t, p.Steps, 20_000)
}

func FuzzReadPlan(f *testing.F) {
	f.Add(planOf(f, step(1), step(2)))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := deadletter.ReadPlan(strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, deadletter.ErrPlan)
			return
		}
		for i, s := range p.Steps {
			require.True(t, s.Action.Changes() && s.Sequence != 0 && (i == 0 || p.Steps[i-1].Sequence < s.Sequence))
		}
	})
}
