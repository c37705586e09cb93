package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASuspectThatCameTwiceIsPresentNoLongerThanItsLastDelivery(t *testing.T) {
	s := blame{seen: map[int64]*failures{}}
	s.place(7, true)
	require.False(t, s.failed(7, false, time.Now()))
	s.place(7, true)  // its lock was lost, and it came again
	s.place(7, false) // the first delivery ends
	s.cleared(8, true)
	require.True(t, s.failed(7, false, time.Now()))
	require.Equal(t, 1, s.present)
	s.place(7, false)
	require.Zero(t, s.present, "or others would have its room for ever")
	s.place(7, true)
	require.Equal(t, 1, s.present)
	s.cleared(7, false)
	require.Zero(t, s.present)
}
