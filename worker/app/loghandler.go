package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
)

// The forms of the detail of a line about a message.
const (
	detailText = "text"
	detailHash = "hash"
)

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
	message, attrs := false, make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		message = message || a.Key == "sequence_number" || a.Key == "message_id"
		attrs = append(attrs, a)
		return true
	})
	if !message {
		return r
	}
	for i, a := range attrs {
		if a.Key == "detail" {
			sum := sha256.Sum256([]byte(a.Value.String()))
			attrs[i] = slog.String(a.Key, "sha256:"+hex.EncodeToString(sum[:8]))
		}
	}
	clean := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	clean.AddAttrs(attrs...)
	return clean
}
