package cosmosstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// retentionWarnings holds the memory of keys against the time in which a message can come back. It is a pure function.
func retentionWarnings(o Options) []Finding {
	if !o.Lifetime.outlives(o.InboxRecordTTL) {
		return nil
	}
	return []Finding{{Severity: Warning,
		Text: fmt.Sprintf("inbox records are kept for %v, and %v", o.InboxRecordTTL, o.Lifetime),
		Fix:  "Keep inbox records longer than that, or for ever."}}
}

// documentRetentionWarnings does the same for a first document that carries the inbox record and that the handler lets expire. It is a pure function.
func documentRetentionWarnings(o Options, first worker.Document) []Finding {
	if o.InboxRecords || !o.Lifetime.outlives(first.TTL) {
		return nil
	}
	return []Finding{{Severity: Warning,
		Text: fmt.Sprintf("documents of type %q, whose creation decides, are kept for %v, and %v", first.Type, first.TTL, o.Lifetime),
		Fix:  "Keep them longer than that, or for ever, or use inbox records."}}
}

// outlives reports whether a message can come back after what was kept for ttl is gone. Zero is for ever.
func (l Lifetime) outlives(ttl time.Duration) bool {
	return ttl > 0 && l != Lifetime{} && ttl <= l.Total()
}

// String says how long a message can come back.
func (l Lifetime) String() string {
	return fmt.Sprintf("a message can come back for %v (locks %v x %d, time to live %v, review %v)",
		l.Total(), l.Lock, l.Deliveries, l.TimeToLive, l.Review)
}

// warnRetention logs what forgets keys too early.
func (s *Store) warnRetention(ctx context.Context, found []Finding) {
	for _, f := range found {
		s.log.LogAttrs(ctx, slog.LevelWarn, "keys are forgotten too early", slog.String(keyCause, f.Text+". "+f.Fix))
	}
}
