package cosmosstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// A Lifetime is how long a message can come back. Zero fields are not known.
type Lifetime struct {
	// Lock is the lock duration of the queue, and Deliveries its maximum delivery count.
	Lock       time.Duration
	Deliveries int
	// TimeToLive is the longest time to live of a message in the queue.
	TimeToLive time.Duration
	// Review is how long a dead letter may wait for a person who sends it again.
	Review time.Duration
}

// total is the time after which no message of today can come back.
func (l Lifetime) total() time.Duration {
	return time.Duration(l.Deliveries)*l.Lock + l.TimeToLive + l.Review
}

// retentionWarnings says what is gone while its message can still come back. A time to live of zero is for ever. It is a pure
// function.
func (l Lifetime) retentionWarnings(what string, ttl time.Duration) []Finding {
	if ttl <= 0 || l == (Lifetime{}) || ttl > l.total() {
		return nil
	}
	return []Finding{{Severity: Warning, Fix: "Keep them longer than that, or for ever.",
		Text: fmt.Sprintf("%s are kept for %v, and a message can come back for %v (locks %v x %d, time to live %v, review %v)",
			what, ttl, l.total(), l.Lock, l.Deliveries, l.TimeToLive, l.Review)}}
}

// inboxRecordWarnings are those about inbox records of their own.
func (o Options) inboxRecordWarnings() []Finding {
	return o.Lifetime.retentionWarnings("inbox records", o.InboxRecordTTL)
}

// checkLifetime logs, once for a store, that the handler lets a document expire too early that carries the inbox record.
func (s *Store) checkLifetime(ctx context.Context, documents []worker.Document) {
	if len(documents) == 0 || s.opts.InboxRecords {
		return
	}
	what := fmt.Sprintf("documents of type %q, which carry the inbox record,", documents[0].Type)
	if found := s.opts.Lifetime.retentionWarnings(what, documents[0].TTL); found != nil {
		s.shortLived.Do(func() { s.warnRetention(ctx, found) })
	}
}

// warnRetention logs what forgets keys too early.
func (s *Store) warnRetention(ctx context.Context, found []Finding) {
	for _, f := range found {
		s.log.LogAttrs(ctx, slog.LevelWarn, "keys are forgotten too early", slog.String(keyCause, f.Text+". "+f.Fix))
	}
}
