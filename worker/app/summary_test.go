package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
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
		c := config{logFormat: formatJSON}
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

func TestAPersonSeesEachMessageThatEndsWell(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, format string
		level        slog.Level
		shown        bool
	}{
		{"a person reads along", formatText, slog.LevelInfo, true},
		{"a machine reads", formatJSON, slog.LevelInfo, false},
		{"a container, nothing set", "", slog.LevelInfo, false},
		{"the worker shows them itself", formatText, slog.LevelDebug, false},
		{"the person wants only warnings", formatText, slog.LevelWarn, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := config{logFormat: tt.format, logLevel: tt.level}
			var out bytes.Buffer
			s := newSummary(c.logger(&out), c)
			s.Observe(worker.Event{Kind: worker.EventReceived, MessageID: "1042"})
			require.Empty(t, out.String())
			s.Observe(worker.Event{Kind: worker.EventDuplicate, MessageID: "1042", DocumentID: "1042"})
			if !tt.shown {
				require.Empty(t, out.String())
				return
			}
			require.Contains(t, out.String(), `msg="message committed" event=duplicate message_id=1042 document_id=1042`)
		})
	}
}
