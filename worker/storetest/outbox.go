package storetest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// outbox is what one commit left to be sent.
type outbox struct {
	worker.Unsent
	committed, touched time.Time
	expires            time.Time // zero: not until it was sent
}

var _ worker.Outbox = (*Mem)(nil)

// keepLocked keeps the messages of a commit.
func (m *Mem) keepLocked(c worker.Commit, now time.Time) {
	if len(c.Messages) == 0 {
		return
	}
	u := worker.Unsent{Partition: c.PartitionKey(), DocumentID: c.DocumentID, Messages: slices.Clone(c.Messages), Replay: c.Replay, ETag: m.etagLocked()}
	m.outboxes[place(c.PartitionKey(), c.DocumentID, c.DocumentID)] = outbox{Unsent: u, committed: now, touched: now}
}

func (m *Mem) etagLocked() string {
	m.etags++
	return strconv.Quote(strconv.Itoa(m.etags))
}

// Pending implements [worker.Outbox].
func (m *Mem) Pending(ctx context.Context, partition, documentID string) (worker.Unsent, error) {
	if err := ctx.Err(); err != nil {
		return worker.Unsent{}, &worker.UnavailableError{Cause: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.outboxLocked(place(partition, documentID, documentID), time.Now())
	if !ok {
		return worker.Unsent{}, worker.ErrNotFound
	}
	return o.Unsent, nil
}

func (m *Mem) outboxLocked(at string, now time.Time) (outbox, bool) {
	o, ok := m.outboxes[at]
	if ok && !o.expires.IsZero() && !now.Before(o.expires) {
		delete(m.outboxes, at)
		return outbox{}, false
	}
	o.Age = now.Sub(o.committed)
	return o, ok
}

// Overdue implements [worker.Outbox].
func (m *Mem) Overdue(ctx context.Context, untouched time.Duration, most int) ([]worker.Unsent, error) {
	if err := ctx.Err(); err != nil {
		return nil, &worker.UnavailableError{Cause: err}
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []worker.Unsent
	for at := range m.outboxes {
		o, ok := m.outboxLocked(at, now)
		if ok && !o.Replayed && now.Sub(o.touched) >= untouched && len(found) < most {
			found = append(found, o.Unsent)
		}
	}
	return found, nil
}

// TakeUp implements [worker.Outbox].
func (m *Mem) TakeUp(ctx context.Context, u worker.Unsent) (worker.Unsent, error) {
	if err := ctx.Err(); err != nil {
		return u, &worker.UnavailableError{Cause: err}
	}
	at := place(u.Partition, u.DocumentID, u.DocumentID)
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.outboxLocked(at, time.Now())
	if !ok || o.ETag != u.ETag {
		return u, &worker.StateMovedError{Document: u.DocumentID}
	}
	o.Attempts, o.ETag, o.touched = o.Attempts+1, m.etagLocked(), time.Now()
	m.outboxes[at] = o
	return o.Unsent, nil
}

// Sent implements [worker.Outbox].
func (m *Mem) Sent(ctx context.Context, u worker.Unsent) error {
	if err := ctx.Err(); err != nil {
		return &worker.UnavailableError{Cause: err}
	}
	at := place(u.Partition, u.DocumentID, u.DocumentID)
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.outboxLocked(at, time.Now())
	switch {
	case !ok || o.Replayed:
	case o.Replay == 0:
		delete(m.outboxes, at)
	default:
		o.Replayed, o.ETag, o.expires = true, m.etagLocked(), time.Now().Add(o.Replay)
		m.outboxes[at] = o
	}
	return nil
}

// outboxOf is the outbox of the store behind f.
func (f *Faulty) outboxOf() worker.Outbox { return f.Store.(worker.Outbox) }

// Pending implements [worker.Outbox], as the store behind does, which must be one.
func (f *Faulty) Pending(ctx context.Context, partition, documentID string) (worker.Unsent, error) {
	return f.outboxOf().Pending(ctx, partition, documentID)
}

// Overdue implements [worker.Outbox].
func (f *Faulty) Overdue(ctx context.Context, untouched time.Duration, most int) ([]worker.Unsent, error) {
	return f.outboxOf().Overdue(ctx, untouched, most)
}

// TakeUp implements [worker.Outbox].
func (f *Faulty) TakeUp(ctx context.Context, u worker.Unsent) (worker.Unsent, error) {
	return f.outboxOf().TakeUp(ctx, u)
}

// Sent implements [worker.Outbox].
func (f *Faulty) Sent(ctx context.Context, u worker.Unsent) error { return f.outboxOf().Sent(ctx, u) }
