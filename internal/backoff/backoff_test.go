package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/backoff"
)

func TestTheBoundDoublesUpToItsMaximum(t *testing.T) {
	p := backoff.Policy{Base: 100 * time.Millisecond, Max: time.Second}
	for n, want := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		require.Equal(t, want*time.Millisecond, p.Bound(n))
	}
	require.Equal(t, time.Second, p.Bound(1<<30))
	require.Equal(t, 100*time.Millisecond, p.Bound(-1))
	require.Equal(t, time.Second, backoff.Policy{Base: time.Minute, Max: time.Second}.Bound(0))
}

func TestWaitsAreSpreadOverTheWholeBound(t *testing.T) {
	p := backoff.Policy{Base: time.Second, Max: time.Second, Floor: time.Minute}
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		wait := p.Wait(3)
		low, high = min(low, wait), max(high, wait)
	}
	require.GreaterOrEqual(t, low, time.Minute)
	require.Less(t, low, time.Minute+200*time.Millisecond)
	require.LessOrEqual(t, high, time.Minute+time.Second)
	require.Greater(t, high, time.Minute+800*time.Millisecond)
	require.Zero(t, backoff.Policy{}.Wait(0), "without a bound there is no wait")
}

func TestASleepEndsWithItsContextAndItsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.True(t, backoff.Sleep(t.Context(), time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		require.False(t, backoff.Sleep(ctx, time.Minute))
		require.False(t, backoff.Sleep(ctx, 0), "an ended context is seen without a wait, too")
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		require.False(t, backoff.SleepUnless(t.Context(), stop, time.Minute))
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
}
