package supervise

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACallThatDoesNotReturnIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, late := make(chan struct{}), make(chan int, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := Call(ctx, nil, 2*time.Second, func(context.Context) (int, error) { <-release; return 7, nil }, func(n int, _ error) { late <- n })
		require.ErrorIs(t, err, ErrStuck)
		require.Equal(t, 3*time.Second, time.Since(start))
		close(release)
		require.Equal(t, 7, <-late)
		<-Stuck(err)
	})
}

func TestTheResultOfACallIsReturned(t *testing.T) {
	odd := errors.New("odd")
	n, err := Call(t.Context(), &Pool{closed: true}, time.Second, func(context.Context) (int, error) { return 7, odd }, nil)
	require.Equal(t, 7, n)
	require.ErrorIs(t, err, odd)
	_, err = Call(t.Context(), &Pool{closed: true}, time.Second, func(context.Context) (int, error) { panic("nil map") }, nil)
	require.NotEmpty(t, Stack(err))
	require.ErrorContains(t, err, "nil map")
	_, err = Call(t.Context(), &Pool{}, time.Second, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }, nil)
	require.ErrorContains(t, err, "Goexit")
}
