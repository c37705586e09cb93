package cosmosstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

// expiring is a container whose default time to live somebody has set to a minute.
var expiring = fault.Action{Kind: fault.Refuse, Status: 200,
	Body: `{"id":"orders","_rid":"x","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":60}`}

// busy commits a new order every second for d, and returns the first error and when it came.
func (e *env) busy(d time.Duration) (time.Duration, error) {
	begun := time.Now()
	for time.Since(begun) < d {
		time.Sleep(time.Second)
		if _, err := e.store.Commit(e.ctx(), commit(fmt.Sprintf("k-%d", time.Now().UnixNano()), `{}`)); err != nil {
			return time.Since(begun), err
		}
	}
	return d, nil
}

// TestAContainerThatIsChangedUnderABusyStoreStopsTheWrites changes the container while messages come without a pause, so that
// nobody ever asks whether the store is ready.
func TestAContainerThatIsChangedUnderABusyStoreStopsTheWrites(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.ReadContainer).Always().Before(expiring))
		after, err := e.busy(time.Hour)
		require.ErrorContains(e.t, requireAs[*worker.MisconfiguredError](e.t, err), "removes every document after 1m0s")
		require.Less(e.t, after, 6*time.Minute)
		requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))

		e.faults.Clear()
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.True(e.t, e.commit(commit("1", `{}`)).Created)
	})
}

func TestReadingTheContainerAgainDelaysAndFailsNoWrite(t *testing.T) {
	for name, a := range map[string]fault.Action{
		"it hangs": {Kind: fault.Silence}, "it fails": fault.Reply(503, 0), "it is forbidden": fault.Reply(403, 0), "it is no container": fault.Reply(204, 0),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				before := e.requests(history.ReadContainer)
				e.faults.Add(fault.On(history.ReadContainer).Always().Before(a))
				begun := time.Now()
				after, err := e.busy(10 * time.Minute)
				require.NoError(e.t, err)
				require.Equal(e.t, after, time.Since(begun), "no commit waited")
				reads := e.requests(history.ReadContainer) - before
				require.NotZero(e.t, reads)
				require.LessOrEqual(e.t, reads, 5*4, "not with every write")
			})
		})
	}
}

func TestAContainerThatFitsIsReadAgainEveryFiveMinutes(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		before := e.requests(history.ReadContainer)
		_, err := e.busy(time.Hour)
		require.NoError(e.t, err)
		require.InDelta(e.t, 11, e.requests(history.ReadContainer)-before, 1)
	})
}

func TestClosingEndsTheReadingOfTheContainer(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.ReadContainer).Always().Before(fault.Wait(time.Hour)))
		_, err := e.busy(5*time.Minute + 2*time.Second)
		require.NoError(e.t, err)
		begun := time.Now()
		require.NoError(e.t, e.store.Close())
		require.Less(e.t, time.Since(begun), time.Second)
	})
}

func TestReadingTheContainerAgainIsNotCountedToAMessage(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		time.Sleep(6 * time.Minute)
		e.faults.Add(fault.On(history.CreateDocument).Before(fault.Wait(time.Second))) // so that all else has been answered by then
		before := e.requests(history.ReadContainer)
		require.Equal(e.t, 1, e.commit(commit("2", `{}`)).Calls)
		require.Equal(e.t, before+1, e.requests(history.ReadContainer))
	})
}
