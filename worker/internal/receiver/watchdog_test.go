package receiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSuspicionOfASilentReceiver(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	const deaf = 4 * time.Minute
	t.Run("an empty queue clears it", func(t *testing.T) {
		s, f := suspicion{sequence: 7, since: start, replaced: 3}.judge(at(10), peekResult{}, deaf)
		require.Equal(t, suspicion{}, s)
		require.Equal(t, finding{}, f)
	})
	t.Run("a waiting message replaces the receiver at growing intervals and is deafness in the end", func(t *testing.T) {
		var s suspicion
		var f finding
		var replaced []int
		for minute := range 60 {
			s, f = s.judge(at(minute), peekResult{waiting: 7}, deaf)
			require.Equal(t, minute >= 4, f.deaf, "minute %d", minute)
			if f.replace != "" {
				replaced = append(replaced, minute)
			}
		}
		require.Equal(t, []int{1, 2, 4, 8, 16, 31, 46}, replaced)
	})
	t.Run("a message that is with a slow handler of another replica for less than a minute replaces nothing", func(t *testing.T) {
		var s suspicion
		var f finding
		for second := range 59 {
			s, f = s.judge(start.Add(time.Duration(second)*time.Second), peekResult{waiting: 7}, deaf)
			require.Equal(t, finding{}, f)
		}
	})
	t.Run("messages that wait at every look replace the receiver, although others take them", func(t *testing.T) {
		s, _ := suspicion{}.judge(at(0), peekResult{waiting: 7}, deaf)
		_, f := s.judge(at(1), peekResult{waiting: 8}, deaf)
		require.Equal(t, finding{replace: ReplacedSilent}, f)
	})
	t.Run("messages that others take are no deafness", func(t *testing.T) {
		var s suspicion
		var f finding
		for minute := range 60 {
			s, f = s.judge(at(minute), peekResult{waiting: int64(minute + 1)}, deaf)
			require.False(t, f.deaf)
		}
	})
	t.Run("a message that is delivered again and again is no deafness", func(t *testing.T) {
		var s suspicion
		var f finding
		for minute := range 60 {
			s, f = s.judge(at(minute), peekResult{waiting: 7, deliveries: uint32(1 + minute/3)}, deaf)
			require.False(t, f.deaf)
		}
	})
	t.Run("a queue that does not answer replaces the receiver", func(t *testing.T) {
		s, f := suspicion{sequence: 7, since: start}.judge(at(1), peekResult{failed: true}, deaf)
		require.Equal(t, finding{replace: ReplacedNoAnswer, noAnswer: true}, f)
		require.Equal(t, int64(7), s.sequence)
	})
}
