package app

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"
)

// collector keeps exported log records.
type collector struct {
	mu      sync.Mutex
	records []sdklog.Record // guarded by mu
}

func (c *collector) Export(_ context.Context, records []sdklog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range records {
		c.records = append(c.records, r.Clone())
	}
	return nil
}
func (c *collector) Shutdown(context.Context) error   { return nil }
func (c *collector) ForceFlush(context.Context) error { return nil }

// exporting is a logger that also exports, with what is written and what is exported.
func exporting(c config) (*slog.Logger, *bytes.Buffer, *collector) {
	var out bytes.Buffer
	sink := &collector{}
	t := &telemetry{logs: sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(sink)))}
	return t.newLogger(c, &out), &out, sink
}

func TestExportedLinesRespectTheLevel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		level slog.Level
		want  []log.Severity
	}{
		{slog.LevelDebug, []log.Severity{log.SeverityDebug, log.SeverityInfo, log.SeverityError}},
		{slog.LevelInfo, []log.Severity{log.SeverityInfo, log.SeverityError}},
		{slog.LevelError, []log.Severity{log.SeverityError}},
	} {
		t.Run(tt.level.String(), func(t *testing.T) {
			t.Parallel()
			logger, out, sink := exporting(config{logLevel: tt.level, logFormat: formatJSON})
			logger = logger.With(slog.String("queue", "orders"))
			require.Equal(t, tt.level == slog.LevelDebug, logger.Enabled(t.Context(), slog.LevelDebug))
			for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelError} {
				logger.LogAttrs(t.Context(), level, "line")
			}
			var got []log.Severity
			for _, r := range sink.records {
				got = append(got, r.Severity())
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, len(tt.want), bytes.Count(out.Bytes(), []byte("\n")))
		})
	}
}

func TestExportedLinesCarryTheTraceOfTheirContext(t *testing.T) {
	t.Parallel()
	logger, _, sink := exporting(config{logFormat: formatJSON})
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	logger.LogAttrs(trace.ContextWithSpanContext(t.Context(), span), slog.LevelInfo, "line")
	require.Equal(t, span.TraceID(), sink.records[0].TraceID())
	require.Equal(t, span.SpanID(), sink.records[0].SpanID())
}

func TestDetailsOfMessagesCanBeKeptOutOfTheLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, form string
		attrs      []slog.Attr
		shown      bool
	}{
		{"shown by default", detailText, []slog.Attr{slog.String("message_id", "1"), slog.String("detail", "They differ at /iban.")}, true},
		{"hidden for a message", detailHash, []slog.Attr{slog.String("message_id", "1"), slog.String("detail", "They differ at /iban.")}, false},
		{"hidden for a message without an id", detailHash, []slog.Attr{slog.Int("sequence_number", 1), slog.String("detail", "They differ at /iban.")}, false},
		{"shown for a part that is not ready", detailHash, []slog.Attr{slog.String("event", "not_ready"), slog.String("detail", "They differ at /iban.")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			logger, out, sink := exporting(config{logFormat: formatJSON, logDetail: tt.form})
			logger.LogAttrs(t.Context(), slog.LevelWarn, "line", tt.attrs...)
			var line map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &line))
			require.Equal(t, tt.shown, bytes.Contains(out.Bytes(), []byte("iban")))
			if !tt.shown {
				require.Regexp(t, `^sha256:[0-9a-f]{16}$`, line["detail"], "equal details can be counted")
			}
			sink.records[0].WalkAttributes(func(a attribute.KeyValue) bool {
				require.True(t, tt.shown || !bytes.Contains([]byte(a.Value.String()), []byte("iban")))
				return true
			})
		})
	}
}
