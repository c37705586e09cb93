package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
)

// The forms of log lines, and of the detail of a line about a message.
const (
	formatText = "text"
	formatJSON = "json"
	detailText = "text"
	detailHash = "hash"
)

// logger writes lines to out, of the level and in the form that the settings say, and to the other handlers.
func (c config) logger(out io.Writer, others ...slog.Handler) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.logLevel}
	var own slog.Handler = slog.NewJSONHandler(out, options)
	if c.logFormat == formatText {
		own = slog.NewTextHandler(out, options)
	}
	all := slog.NewMultiHandler(append(others, own)...)
	return slog.New(logFilter{Handler: all, level: c.logLevel, hide: c.logDetail == detailHash})
}

// A logFilter holds lines to the level of the settings wherever they go, and hides details where the settings ask for it.
type logFilter struct {
	slog.Handler
	level slog.Level
	// hide replaces the detail of a line about a message, which names members of the body, by its hash: equal details can
	// still be counted.
	hide bool
}

// Enabled implements [slog.Handler].
func (h logFilter) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h logFilter) Handle(ctx context.Context, r slog.Record) error {
	if h.hide {
		r = hidden(r)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs and WithGroup implement [slog.Handler].
func (h logFilter) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

func (h logFilter) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// hidden returns a record about a message without its detail. The detail of a part that is not ready says what to do, and
// stays.
func hidden(r slog.Record) slog.Record {
	message, clean := false, slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		message = message || a.Key == "sequence_number" || a.Key == "message_id"
		if a.Key == "detail" {
			sum := sha256.Sum256([]byte(a.Value.String()))
			a = slog.String(a.Key, "sha256:"+hex.EncodeToString(sum[:8]))
		}
		clean.AddAttrs(a)
		return true
	})
	if message {
		return clean
	}
	return r
}
