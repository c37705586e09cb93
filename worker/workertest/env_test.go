package workertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
	"github.com/orderworker/orderworker/worker/workertest"
)

func TestInABubbleAnHourOfOutageTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := workertest.Start(t)
		env.Services.Faults.Add(fault.On(history.ExecuteBatch).Times(3).Before(fault.Reply(503, 0)))
		env.Work(worker.Config{}, worker.HandlerFunc(payment), "payment", "ledgerEntry")
		env.Send("pay-1", `{"amount":40,"currency":"EUR"}`)
		env.Send("pay-1", `{"amount":41,"currency":"EUR"}`)
		env.WaitUntilSettled(time.Hour)
		dead := env.DeadLetters()
		require.Len(t, dead, 1)
		require.Equal(t, reason.ContentConflict, dead[0].Reason)
		require.Equal(t, "pay-1", dead[0].MessageID)
		record, err := env.Store().Find(t.Context(), "", "pay-1")
		require.NoError(t, err)
		require.Equal(t, []string{"debit", "credit"}, record.Parts)
	})
}

func TestOutsideOfABubbleItWorksToo(t *testing.T) {
	env := workertest.Start(t)
	env.Work(worker.Config{}, worker.HandlerFunc(payment), "payment", "ledgerEntry")
	env.Work(worker.Config{}, worker.HandlerFunc(payment), "payment", "ledgerEntry")
	for n := range 20 {
		env.Send(fmt.Sprintf("pay-%d", n%10), `{"amount":40,"currency":"EUR"}`)
	}
	env.WaitUntilSettled(time.Minute)
	require.Len(t, env.Services.Stored(), 30)
	require.Empty(t, env.DeadLetters())
}

// failing is a test whose failure ends its goroutine no more than is needed here.
type failing struct {
	*testing.T
	said []string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func TestAMessageThatIsNeverSettledFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{T: t}
		env := workertest.Start(f)
		hangs := worker.HandlerFunc(func(ctx context.Context, _ worker.Message) (worker.Effects, error) {
			<-ctx.Done()
			return worker.Effects{}, ctx.Err()
		})
		env.Work(worker.Config{}, hangs, "payment")
		env.Send("pay-1", `{}`)
		env.WaitUntilSettled(time.Minute)
		require.Contains(t, strings.Join(f.said, "\n"), "after 1m0s, 1 messages are still on the queue")
	})
}
