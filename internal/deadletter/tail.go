package deadletter

import "context"

// tail watches the end of the dead letters for resubmitted messages that come back. The zero value watches nothing. A
// message that comes back later than the next group is met at the group after.
type tail struct {
	from     int64
	expected map[string]bool
	// returned counts those that came back, and fresh tells that the last look found one.
	returned int
	fresh    bool
}

// newTail watches the messages after a sequence number.
func newTail(last int64) tail { return tail{from: last + 1, expected: map[string]bool{}} }

func (t *tail) expect(messageID string) {
	if t.expected != nil && messageID != "" {
		t.expected[messageID] = true
	}
}

// look counts the messages that have come back since the last look.
func (t *tail) look(ctx context.Context, r *Reviewer) error {
	t.fresh = false
	if len(t.expected) == 0 {
		return nil
	}
	for messages, err := range r.Pages(ctx, t.from, 0) {
		if err != nil {
			return err
		}
		for _, l := range messages {
			t.from = max(t.from, l.Sequence+1)
			id, _ := l.MessageID()
			if n, _ := l.resubmitCount(); n > 0 && t.expected[id] {
				t.returned++
				t.fresh = true
			}
		}
	}
	return nil
}
