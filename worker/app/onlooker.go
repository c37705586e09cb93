package app

import (
	"context"
	"log/slog"

	"github.com/orderworker/orderworker/worker"
)

// formatText is the form of log lines for a person who reads along.
const formatText = "text"

// onlooker shows the messages that end well to a person who reads along. The worker itself logs them at the level debug,
// since in production the metrics count them. Nil when nobody reads along, or when they are shown or unwanted by the level.
func (c config) onlooker(log *slog.Logger) worker.Observer {
	if c.logFormat != formatText || c.level() != slog.LevelInfo {
		return nil
	}
	return &onlooker{log}
}

type onlooker struct{ log *slog.Logger }

// Observe implements [worker.Observer].
func (o *onlooker) Observe(e worker.Event) {
	switch e.Kind {
	case worker.EventCreated, worker.EventOwn, worker.EventDuplicate:
		o.log.LogAttrs(context.Background(), slog.LevelInfo, "message committed",
			slog.String("event", string(e.Kind)), slog.String("message_id", e.MessageID), slog.String("document_id", e.DocumentID))
	}
}
