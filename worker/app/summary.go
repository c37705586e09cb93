package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/orderworker/orderworker/worker"
)

const (
	// eventSummary is the event of the line. Queries match it.
	eventSummary = "summary"
	// summaryInterval is how often the line is written while anything happens.
	summaryInterval = time.Minute
)

// A summary counts outcomes and logs them once a minute, so that success is visible although a message that ends well has no
// line of its own.
type summary struct {
	log *slog.Logger
	// eachCommit logs also the messages that end well, for a person who reads along. The worker itself does so at debug.
	eachCommit bool
	// byMessageID says that the MessageId is the key, so that one that the broker assigned protects from nothing.
	byMessageID bool

	mu       sync.Mutex
	since    time.Time                // guarded by mu
	counts   map[worker.EventKind]int // guarded by mu
	assigned int                      // guarded by mu; ids since the last report that look assigned by the broker
	warned   bool                     // guarded by mu
}

func newSummary(log *slog.Logger, c config) *summary {
	return &summary{
		log: log, since: time.Now(), counts: map[worker.EventKind]int{}, byMessageID: c.keyIsMessageID(),
		eachCommit: c.logFormat == formatText && c.logLevel == slog.LevelInfo,
	}
}

// summaryKeys are the counts of a line, all of them in each line.
func summaryKeys() []worker.EventKind {
	return []worker.EventKind{
		worker.EventReceived, worker.EventCreated, worker.EventOwn, worker.EventRedelivered, worker.EventDuplicate, worker.EventStale, worker.EventIgnored, worker.EventConflict,
		worker.EventDeadLettered, worker.EventAbandoned, worker.EventNotSettled,
	}
}

// Observe implements [worker.Observer].
func (s *summary) Observe(e worker.Event) {
	s.mu.Lock()
	s.counts[e.Kind]++
	if e.Kind == worker.EventReceived && s.byMessageID && assignedByBroker(e.MessageID) {
		s.assigned++
	}
	s.mu.Unlock()
	switch e.Kind {
	case worker.EventCreated, worker.EventOwn, worker.EventRedelivered, worker.EventDuplicate, worker.EventStale:
		if s.eachCommit {
			s.log.LogAttrs(context.Background(), slog.LevelInfo, "message committed",
				slog.String("event", string(e.Kind)), slog.String("message_id", e.MessageID), slog.String("document_id", e.DocumentID))
		}
	}
}

// report logs what happened since the last report, and nothing when that is nothing.
func (s *summary) report() {
	s.mu.Lock()
	counts, since, assigned := s.counts, s.since, s.assigned
	s.counts, s.since, s.assigned = map[worker.EventKind]int{}, time.Now(), 0
	warn := assigned > 0 && !s.warned
	s.warned = s.warned || warn
	s.mu.Unlock()
	if warn {
		s.log.LogAttrs(context.Background(), slog.LevelWarn, assignedText(assigned), slog.String("event", eventAssigned), slog.String("detail", assignedFix)) //nolint:sloglint // one of two sentences, with a count
	}
	total, attrs := 0, []slog.Attr{slog.String("event", eventSummary)}
	for _, kind := range summaryKeys() {
		total += counts[kind]
		attrs = append(attrs, slog.Int(string(kind), counts[kind]))
	}
	if assigned > 0 {
		attrs = append(attrs, slog.Int("assigned_ids", assigned))
	}
	if total > 0 {
		attrs = append(attrs, slog.Float64("duration_seconds", time.Since(since).Seconds()))
		s.log.LogAttrs(context.Background(), slog.LevelInfo, "messages by outcome", attrs...)
	}
}

// start reports every minute until the function that it returns is called, which reports once more.
func (s *summary) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(summaryInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.report()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
		s.report()
	}
}
