package deadletter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// sentMemory is how far back an unfinished resubmit is looked for.
const sentMemory = 14 * 24 * time.Hour

// sentBefore are the copies that earlier commands have sent, by the sequence number of their message. Messages of a file may
// share one, or have none.
type sentBefore map[int64][]Entry

// loadSent finds the copies that were sent, so that an earlier try that was cut off between the send and the removal is
// finished, and not sent again. An empty MessageId finds all.
func (r *Reviewer) loadSent(ctx context.Context, messageID string) (sentBefore, *seen, error) {
	if r.ledger == nil {
		return nil, nil, errNoLedger
	}
	now := time.Now()
	sent, known := sentBefore{}, newSeen(r.settings.Duplicates)
	q := Query{From: now.Add(-sentMemory), MessageID: Clip(messageID, maxLedgerText), State: Sent}
	for e, err := range r.ledger.Entries(ctx, q) {
		if err != nil {
			return nil, nil, fmt.Errorf("the record of what was done before cannot be read: %w", err)
		}
		if e.Queue == r.settings.Queue {
			sent[e.Sequence] = append(sent[e.Sequence], e)
			known.note(e.MessageID, e.At, someone, now)
		}
	}
	return sent, known, nil
}

// of returns the copy that was sent of the very message that an entry is about. A dead letter never changes, so that its
// number and its times tell it from others. A message of a file may have been changed since, and then it is another one.
func (s sentBefore) of(e Entry) (Entry, bool) {
	for _, sent := range s[e.Sequence] {
		if sent.Origin == e.Origin && sent.SentHash == e.SentHash && sent.MessageID == e.MessageID && sent.EnqueuedAt.Equal(e.EnqueuedAt) {
			return sent, true
		}
	}
	return Entry{}, false
}

// sentHash tells messages of a file apart that are to be sent. It leaves out what the broker and a resubmit write.
func sentHash(o Command, l *DeadLetter) string {
	if o.Action != Resubmit || o.Origin == "" {
		return ""
	}
	encoded, err := Copy(l, Choice{}, time.Time{}, true)
	if err != nil {
		// Without a copy there is nothing to send, and the send says so.
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

func sentDetail(sent Entry) string {
	if sent.Origin != "" {
		return fmt.Sprintf("It was sent at %s by %s already, and is not sent again.", stamp(sent.At), sent.Actor)
	}
	return fmt.Sprintf("It was sent at %s by %s already; only the dead letter was left to remove.", stamp(sent.At), sent.Actor)
}
