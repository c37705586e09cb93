package app

import (
	"context"
	"log/slog"

	"github.com/orderworker/orderworker/worker"
)

// formatText is the form of log lines for a person who reads along.
const formatText = "text"

// commitLogger logs the messages that end well for a person who reads along. The worker itself logs them at the level debug,
// since in production the metrics and the summary count them. Nil when nobody reads along, or when they are shown or unwanted
// by the level.
func (c config) commitLogger(log *slog.Logger) worker.Observer {
	if c.logFormat != formatText || c.level() != slog.LevelInfo {
		return nil
	}
	return worker.ObserverFunc(func(e worker.Event) {
		switch e.Kind {
		case worker.EventCreated, worker.EventOwn, worker.EventRedelivered, worker.EventDuplicate, worker.EventStale:
			log.LogAttrs(context.Background(), slog.LevelInfo, "message committed",
				slog.String("event", string(e.Kind)), slog.String("message_id", e.MessageID), slog.String("document_id", e.DocumentID))
		}
	})
}
