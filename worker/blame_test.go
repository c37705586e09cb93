package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASuspectThatCameTwiceIsPresentNoLongerThanItsLastDelivery(t *testing.T) {
	s := blame{seen: map[int64]*failures{}}
	s.enter(7)
	require.False(t, s.failed(7, false, time.Now()))
	s.enter(7) // its lock was lost, and it came again
	s.leave(7) // the first delivery ends
	s.taken()
	require.True(t, s.failed(7, false, time.Now()))
	require.Equal(t, 1, s.present)
	s.leave(7)
	require.Zero(t, s.present, "or others would have its room for ever")
	s.enter(7)
	require.Equal(t, 1, s.present)
	s.cleared(7)
	require.Zero(t, s.present)
}
