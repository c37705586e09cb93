package cosmosdb_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

func (b *bench) tryCreate(ctx context.Context, id string) error {
	_, err := b.container.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), []byte(`{"id":"`+id+`"}`), nil)
	return err
}

func TestALostReplyLeavesTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		b.faults.Add(fault.On(history.CreateDocument).After(fault.DropReply()))
		err := b.tryCreate(t.Context(), "a")
		require.ErrorIs(t, err, io.EOF)
		_, answered := errorsAs(err)
		require.False(t, answered)
		require.Equal(t, 1, b.account.Count("shop", "orders"))
		require.Equal(t, 1, b.faults.Applied())
		requireStatus(t, b.tryCreate(t.Context(), "a"), http.StatusConflict, 0)

		events := b.history.Events()
		lost := events[len(events)-2]
		require.Equal(t, history.CreateDocument, lost.Op)
		require.False(t, lost.Effect)
		require.Equal(t, "fault after the effect: drop", lost.Note)
		require.True(t, events[len(events)-3].Effect)
		require.Equal(t, events[len(events)-3].Activity, lost.Activity)
	})
}

func TestALostRequestLeavesNothing(t *testing.T) {
	b := newBench(t, setup{client: once()})
	b.faults.Add(fault.On(history.CreateDocument).Before(fault.DropReply()))
	require.ErrorIs(t, b.tryCreate(t.Context(), "a"), io.EOF)
	require.Zero(t, b.account.Count("shop", "orders"))
	require.NoError(t, b.tryCreate(t.Context(), "a"))
}

func TestAResetStreamMakesTheClientMeetItsOwnWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		b.faults.Add(fault.On(history.CreateDocument).After(fault.Action{Kind: fault.Drop, Condition: cosmosdb.StreamReset}))
		// One call: the client repeats the create by itself and reports the conflict with its own document.
		requireStatus(t, b.tryCreate(t.Context(), "a"), http.StatusConflict, 0)
		require.Equal(t, 1, b.account.Count("shop", "orders"))
	})
}

func TestARefusedConnectionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		refused := fault.Action{Kind: fault.Drop, Condition: cosmosdb.ConnectionRefused}
		b.faults.Add(fault.On(history.CreateDocument).Before(refused))
		require.NoError(t, b.tryCreate(t.Context(), "a"))
		b.faults.Add(fault.On("*").Always().Before(refused))
		require.ErrorIs(t, b.tryCreate(t.Context(), "b"), syscall.ECONNREFUSED)
		require.Equal(t, 1, b.account.Count("shop", "orders"))
	})
}

func TestThrottlingIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		b.faults.Add(fault.On(history.CreateDocument).Times(2).Before(fault.Throttle(5 * time.Second)))
		start := time.Now()
		require.NoError(t, b.tryCreate(t.Context(), "a"))
		require.Equal(t, 10*time.Second, time.Since(start))

		b.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Throttle(time.Second)))
		re := requireStatus(t, b.tryCreate(t.Context(), "b"), http.StatusTooManyRequests, 3200)
		require.Equal(t, "1000", re.RawResponse.Header.Get("x-ms-retry-after-ms"))
		require.Equal(t, 6, b.faults.Applied())
	})
}

func TestAThrottleWithoutHintHasNoHeader(t *testing.T) {
	b := newBench(t, setup{client: once()})
	b.faults.Add(fault.On(history.CreateDocument).Before(fault.Reply(429, 3200)))
	re := requireStatus(t, b.tryCreate(t.Context(), "a"), 429, 3200)
	require.Empty(t, re.RawResponse.Header.Get("x-ms-retry-after-ms"))
}

func TestRefusalsCarryTheirStatus(t *testing.T) {
	for _, tt := range []struct{ status, substatus int }{
		{408, 0}, {410, 1007}, {449, 0}, {500, 0}, {503, 0}, {403, 1014}, {403, 5300}, {401, 0}, {413, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, setup{client: once()})
			b.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(tt.status, tt.substatus)))
			requireStatus(t, b.tryCreate(t.Context(), "a"), tt.status, tt.substatus)
			require.Zero(t, b.account.Count("shop", "orders"))
			b.faults.Clear()
			b.faults.Add(fault.On(history.CreateDocument).Always().After(fault.Reply(tt.status, tt.substatus)))
			requireStatus(t, b.tryCreate(t.Context(), "a"), tt.status, tt.substatus)
			require.Equal(t, 1, b.account.Count("shop", "orders"))
		})
	}
}

func TestDelaysOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		b.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Wait(time.Minute)))
		start := time.Now()
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			wg.Go(func() { _ = b.tryCreate(t.Context(), id) })
		}
		wg.Wait()
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, 4, b.account.Count("shop", "orders"))
	})
}

func TestAClientThatGivesUpDoesNotStopItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		b.faults.Add(fault.On(history.CreateDocument).Before(fault.Wait(time.Minute)))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.ErrorIs(t, b.tryCreate(ctx, "late"), context.DeadlineExceeded)
		_, stored := b.account.Document("shop", "orders", "late")
		require.False(t, stored)
		time.Sleep(time.Minute)
		_, stored = b.account.Document("shop", "orders", "late")
		require.True(t, stored)
	})
}

func TestSilenceLastsUntilTheClientGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		b.faults.Add(fault.On(history.CreateDocument).After(fault.Action{Kind: fault.Silence}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, b.tryCreate(ctx, "a"), context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
		require.Equal(t, 2, b.account.Count("shop", "orders"))
	})
}

func TestClosingEndsSilencesAndDelaysWithoutEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{client: once()})
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		b.faults.Add(fault.On(history.CreateDocument).Key("silent").Before(fault.Action{Kind: fault.Silence}))
		b.faults.Add(fault.On(history.CreateDocument).Key("slow").Before(fault.Wait(time.Hour)))
		var wg sync.WaitGroup
		for _, id := range []string{"silent", "slow"} {
			wg.Go(func() { _ = b.tryCreate(t.Context(), id) })
		}
		synctest.Wait()
		start := time.Now()
		require.NoError(t, b.account.Close())
		wg.Wait()
		require.Zero(t, time.Since(start))
		require.Equal(t, 1, b.account.Count("shop", "orders"))
		require.ErrorContains(t, b.tryCreate(t.Context(), "after"), "closed")
	})
}

func TestGarbledReplies(t *testing.T) {
	b := newBench(t, setup{client: once()})
	b.faults.Add(fault.On(history.CreateDocument).Before(fault.Action{Kind: fault.Garble}))
	err := b.tryCreate(t.Context(), "a")
	re, ok := errorsAs(err)
	require.True(t, ok)
	require.Equal(t, http.StatusBadRequest, re.StatusCode)
	require.Contains(t, re.RawResponse.Header.Get("Content-Type"), "text/html")
	require.Zero(t, b.account.Count("shop", "orders"))

	b.create(t, "a", `{"id":"a"}`)
	b.faults.Add(fault.On(history.ReadDocument).After(fault.Action{Kind: fault.Garble}))
	resp, err := b.read(t.Context(), "a", nil)
	require.NoError(t, err)
	require.Equal(t, `{"id":"`, string(resp.Value))

	b.faults.Add(fault.On(history.CreateDocument).After(fault.Action{Kind: fault.Garble, Status: 503, Body: "<html>gateway</html>"}))
	re, ok = errorsAs(b.tryCreate(t.Context(), "b"))
	require.True(t, ok)
	require.Equal(t, 503, re.StatusCode)
	require.Equal(t, 2, b.account.Count("shop", "orders"))
}

func TestABatchResultCanBeAnything(t *testing.T) {
	b := newBench(t, setup{spec: byPK, client: once()})
	say := func(status int, body string) (azcosmos.TransactionalBatchResponse, error) {
		b.faults.Clear()
		b.faults.Add(fault.On(history.ExecuteBatch).Key("guard").Before(fault.Action{Kind: fault.Refuse, Status: status, Body: body}))
		return b.batch(t, func(x *azcosmos.TransactionalBatch) { x.CreateItem(doc("guard"), nil); x.CreateItem(doc("line"), nil) })
	}
	resp, err := say(207, `[{"statusCode":409},{"statusCode":201}]`)
	require.NoError(t, err)
	require.False(t, resp.Success)
	require.Equal(t, []int{409, 201}, codes(resp))

	resp, err = say(200, `[]`)
	require.NoError(t, err)
	require.True(t, resp.Success)
	require.Empty(t, resp.OperationResults)

	_, err = say(207, `not JSON`)
	require.Error(t, err)
	require.Zero(t, b.account.Count("shop", "orders"))
}

func TestAFaultThatDoesNotFitIsRefusedLoudly(t *testing.T) {
	b := newBench(t, setup{client: once(), mayMiss: true})
	b.faults.Add(fault.On(history.CreateDocument).Before(fault.DetachLink("amqp:link:detach-forced")))
	requireStatus(t, b.tryCreate(t.Context(), "a"), http.StatusNotImplemented, 0)
	b.faults.Add(fault.On(history.CreateDocument).Before(fault.Action{Kind: fault.Lag}))
	requireStatus(t, b.tryCreate(t.Context(), "a"), http.StatusNotImplemented, 0)
	b.faults.Add(fault.On(history.CreateDocument).Before(fault.Reject("amqp:internal-error")))
	requireStatus(t, b.tryCreate(t.Context(), "a"), http.StatusNotImplemented, 0)
	require.Len(t, b.account.Refusals(), 3)
	require.Zero(t, b.account.Count("shop", "orders"))
}

func TestACallHappensAtItsMoment(t *testing.T) {
	b := newBench(t, setup{})
	var before, after int
	b.faults.Add(fault.On(history.CreateDocument).Before(fault.Call(func() { before = b.account.Count("shop", "orders") })))
	b.faults.Add(fault.On(history.CreateDocument).After(fault.Call(func() { after = b.account.Count("shop", "orders") })))
	require.NoError(t, b.tryCreate(t.Context(), "a"))
	require.Equal(t, []int{0, 1}, []int{before, after})
}

func TestAnAccountThatCannotBeReadFailsTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		b.faults.Add(fault.On(history.ReadAccount).Always().Before(fault.Reply(503, 0)))
		require.Error(t, b.tryCreate(t.Context(), "a"))
		b.faults.Clear()
		require.Error(t, b.tryCreate(t.Context(), "a"), "the client keeps the failure for five minutes")
		b.connect(t, endpoint(t), azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: b.account.Transport()}})
		require.NoError(t, b.tryCreate(t.Context(), "a"))
	})
}

func TestACancelledRequestNeverArrives(t *testing.T) {
	b := newBench(t, setup{client: once()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.tryCreate(ctx, "a")
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
	require.Zero(t, b.countEvents(history.CreateDocument))
}

func TestAClosedAccountTellsTheClientNotToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		require.NoError(t, b.account.Close())
		start := time.Now()
		err := b.tryCreate(t.Context(), "a")
		_, final := errors.AsType[interface {
			error
			NonRetriable()
		}](err)
		require.True(t, final, "%v", err)
		require.Zero(t, time.Since(start))
	})
}
