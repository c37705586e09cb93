package breaker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/backoff"
)

func TestTheBreakerByItself(t *testing.T) {
	down, forbidden := Report{Answer: Unavailable, Err: errors.New("down")}, Report{Answer: Misconfigured, Err: errors.New("forbidden")}
	good, bad := Report{Answer: Wrote}, Report{Answer: Answered}
	uncertain := Report{}
	config := Config{Failures: 5, Capacity: 4, Backoff: backoff.Policy{Base: time.Second, Max: 30 * time.Second, Floor: time.Second / 8}}
	fresh := func() (*Breaker, *[]Change) {
		var changes []Change
		b := New(config)
		b.config.Notify = func(c Change) { changes = append(changes, c) }
		b.probed(Report{})
		p, ok := b.TryAcquire(1)
		require.True(t, ok)
		b.Report(p, good) // a process begins with a trial
		return b, &changes
	}
	sequence := int64(100)
	try := func(t *testing.T, b *Breaker, r Report) {
		sequence++ // each try is another message
		p, err := b.Acquire(t.Context(), nil, sequence)
		require.NoError(t, err)
		b.Report(p, r)
	}
	state := func(b *Breaker) State { s, _ := b.Watch(); return s }

	t.Run("nothing is permitted before the store has answered", func(t *testing.T) {
		b := New(config)
		stop := make(chan struct{})
		close(stop)
		_, err := b.Acquire(t.Context(), stop, 1)
		require.ErrorIs(t, err, ErrNoPermit)
		require.Zero(t, b.Room(0))
		require.Zero(t, b.probeWait(), "the first probe is at once")
	})
	t.Run("it opens after five unavailable results in a row, and not before", func(t *testing.T) {
		b, changes := fresh()
		for range 4 {
			try(t, b, down)
		}
		try(t, b, good)
		for range 4 {
			try(t, b, down)
			try(t, b, uncertain)
		}
		require.Equal(t, Closed, state(b))
		try(t, b, down)
		require.Equal(t, Open, state(b))
		require.True(t, (*changes)[len(*changes)-1].Opened)
	})
	t.Run("messages that cannot be stored prove that the store answers", func(t *testing.T) {
		b, _ := fresh()
		for range 20 {
			try(t, b, down)
			try(t, b, bad)
		}
		require.Equal(t, Closed, state(b))
	})
	t.Run("it opens at once when nothing can be stored", func(t *testing.T) {
		b, changes := fresh()
		try(t, b, forbidden)
		require.Equal(t, Open, state(b))
		require.True(t, (*changes)[1].Misconfigured)
	})
	t.Run("one trial at a time, then a ramp, then closed", func(t *testing.T) {
		b, changes := fresh()
		try(t, b, forbidden)
		b.probed(down)
		require.Equal(t, Open, state(b))
		b.probed(Report{})
		require.Equal(t, Trial, state(b))
		require.Equal(t, 1, b.Room(0))
		require.Zero(t, b.Room(1))
		p, err := b.Acquire(t.Context(), nil, 1)
		require.NoError(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = b.Acquire(ended, nil, 1)
		require.ErrorIs(t, err, ErrNoPermit, "a second trial waits")
		b.Report(p, uncertain)
		require.Equal(t, Trial, state(b), "a message of its own fault proves nothing")
		try(t, b, good)
		require.Equal(t, Ramp, state(b))
		require.Equal(t, 1, b.Room(0))
		for want := 2; want < 4; want++ {
			try(t, b, good)
			require.Equal(t, want, b.Room(0))
		}
		try(t, b, good)
		require.Equal(t, Closed, state(b))
		require.Len(t, *changes, 3, "closed, opened, closed: %+v", *changes)
	})
	t.Run("a failed trial or ramp opens it again at the first failure", func(t *testing.T) {
		b, _ := fresh()
		try(t, b, forbidden)
		b.probed(Report{})
		try(t, b, down)
		require.Equal(t, Open, state(b))
		b.probed(Report{})
		try(t, b, good)
		try(t, b, down)
		require.Equal(t, Open, state(b))
	})
	t.Run("a result from before it opened says nothing", func(t *testing.T) {
		b, _ := fresh()
		old, err := b.Acquire(t.Context(), nil, 1)
		require.NoError(t, err)
		try(t, b, forbidden)
		b.Report(old, good)
		require.Equal(t, Open, state(b))
		b.probed(Report{})
		b.Report(old, down)
		require.Equal(t, Trial, state(b))
	})
	t.Run("a trial with nothing to try believes the store", func(t *testing.T) {
		b, changes := fresh()
		try(t, b, forbidden)
		b.probed(Report{})
		b.unproven(0)
		require.Equal(t, Ramp, state(b))
		require.True(t, (*changes)[2].Closed)
	})
	t.Run("waits grow, are jittered, and are never shorter than the store asked for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := fresh()
			hinted := down
			hinted.RetryAfter = time.Minute
			for range 5 {
				try(t, b, hinted)
			}
			require.GreaterOrEqual(t, b.probeWait(), time.Minute)
			time.Sleep(time.Minute)
			for range 100 {
				require.LessOrEqual(t, b.probeWait(), config.Backoff.Max+config.Backoff.Base/8)
			}
			hinted.RetryAfter = 24 * time.Hour
			b.probed(hinted)
			require.LessOrEqual(t, b.probeWait(), MaxHint, "a hint is believed within reason")
		})
	})
}
