package storetest

import (
	"context"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// Claim implements [worker.Store].
func (m *Mem) Claim(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return worker.Outcome{}, &worker.UnavailableError{Cause: err}
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	first := place(c.PartitionKey(), c.DocumentID, c.DocumentID)
	c.Messages = nil
	claim := *c.Claim
	claim.ETag, claim.Since = "", now
	if stored, ok := m.liveLocked(first, now); ok {
		known := stored.claim != nil && (stored.record.Attempt == c.Attempt || stored.claim.ETag == c.Claim.ETag)
		free := stored.claim != nil && stored.claim.Released && c.Claim.ETag == ""
		switch {
		case free && !known:
			claim.Number = stored.claim.Number + 1
		case !known:
			record := m.recordLocked(stored, now)
			return worker.Outcome{Existing: &record, Calls: 2, Charge: 3}, nil
		case stored.record.Attempt == c.Attempt:
			claim.Number = stored.claim.Number
		}
	}
	claim.ETag = m.entityLocked(nil).etag
	d := newDocument(c, 0, worker.Document{}, now, false)
	d.record.CommittedAt, d.claim = time.Time{}, &claim
	m.documents[first] = d
	taken := claim
	return worker.Outcome{Claim: &taken, Calls: 1, Charge: 6}, nil
}

// blockedLocked returns what stands against a commit: a record, or a claim that is not that of the commit.
func (m *Mem) blockedLocked(first string, c worker.Commit, now time.Time) (worker.Outcome, bool) {
	stored, ok := m.liveLocked(first, now)
	switch {
	case !ok, stored.claim != nil && stored.record.Attempt == c.Attempt && !stored.claim.Released, stored.claim != nil && c.Claim != nil && stored.claim.ETag == c.Claim.ETag,
		stored.claim != nil && c.Claim == nil && stored.claim.Released:
		return worker.Outcome{}, false
	}
	record := m.recordLocked(stored, now)
	return worker.Outcome{Existing: &record, Calls: 2, Charge: 3}, true
}
