package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
)

// sharedBuffer is written by the goroutine that sums up while the test reads.
type sharedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestOutcomesAreSummedUpOnceAMinuteWhileAnythingHappens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out sharedBuffer
		c := config{logLevel: "info", logFormat: "json"}
		s := newSummary(c.logger(&out), c)
		stop := s.start()
		lines := func() []map[string]any {
			synctest.Wait()
			var found []map[string]any
			for line := range strings.Lines(out.String()) {
				var l map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &l))
				require.Equal(t, "INFO", l["level"])
				require.Equal(t, "summary", l["event"])
				found = append(found, l)
			}
			return found
		}
		time.Sleep(5 * time.Minute)
		require.Empty(t, lines(), "nothing happened")
		for _, kind := range []worker.EventKind{worker.EventReceived, worker.EventCreated, worker.EventCreated, worker.EventDuplicate, worker.EventDeadLettered} {
			s.Observe(worker.Event{Kind: kind})
		}
		time.Sleep(30 * time.Second)
		require.Empty(t, lines(), "the minute is not over")
		time.Sleep(3 * time.Minute)
		require.Len(t, lines(), 1, "one line for what happened, and none for the quiet minutes")
		l := lines()[0]
		for key, want := range map[string]float64{"received": 1, "created": 2, "own_write": 0, "duplicate": 1, "stale": 0, "redelivered": 0, "ignored": 0, "content_conflict": 0,
			"dead_lettered": 1, "message_abandoned": 0, "message_not_settled": 0, "duration_seconds": 60} {
			require.Equal(t, want, l[key], key)
		}
		s.Observe(worker.Event{Kind: worker.EventCreated})
		stop()
		require.Len(t, lines(), 2, "a last line at the stop")
	})
}
