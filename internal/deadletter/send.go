package deadletter

import (
	"context"
	"errors"
	"time"
)

// resubmission is what must be known to resubmit safely: what was sent before, what duplicate detection may remember, and from
// which sequence number on a copy that is sent now lies in the queue.
type resubmission struct {
	sent     sentBefore
	seen     *seen
	queueEnd int64
}

// resubmission reads it for one MessageId, or for all when that is empty. Dead letters from first on say what duplicate detection
// remembers.
func (r *Reviewer) resubmission(ctx context.Context, messageID string, first int64) (resubmission, error) {
	sent, seen, err := r.loadSent(ctx, messageID)
	if err != nil {
		return resubmission{}, err
	}
	now := time.Now()
	for page, err := range r.Pages(ctx, first, 0) {
		if err != nil {
			return resubmission{}, err
		}
		for _, l := range page {
			id, _ := l.MessageID()
			seen.note(id, l.EnqueuedAt, l.Sequence, now)
		}
	}
	end, err := r.queueEnd(ctx)
	return resubmission{sent, seen, end}, err
}

// send sends the copy and waits until it was seen. That it was sent is written down before anything is removed. The own additions
// are left out when the copy is too large with them.
func (r *Reviewer) send(ctx context.Context, c Command, e Entry, l *DeadLetter, out Outcome) (Outcome, bool) {
	detail := ""
	err := r.sendCopy(ctx, c, l, false)
	if errors.Is(err, ErrTooLarge) {
		detail = "The copy carries no resubmit count, since it would have been too large with it."
		err = r.sendCopy(ctx, c, l, true)
	}
	switch {
	case errors.Is(err, ErrTooLarge):
		return out.with(Refused, "The message is larger than the queue takes, even without what was added to it when it was dead-lettered. Reprocess it in place."), false
	case err != nil:
		return out.with(Broken, "The send failed, and the copy may have been taken all the same; that does no harm, since the worker applies it once: "+err.Error()), false
	}
	// The copy is on its way: what follows is finished, also when the caller gives up.
	ctx = context.WithoutCancel(ctx)
	recording, cancel := context.WithTimeout(ctx, unsettled)
	defer cancel()
	if err := r.record(recording, e, Sent, string(Resubmitted), detail); err != nil {
		detail = "The copy was sent, and recording it failed: " + err.Error()
	}
	if why := r.unseen(ctx, l, c.queueEnd); why != "" {
		return out.notSeen(why), false
	}
	return out.with(Resubmitted, detail), true
}

func (r *Reviewer) sendCopy(ctx context.Context, c Command, l *DeadLetter, plain bool) error {
	encoded, err := Copy(l, c.Choice, time.Now(), plain)
	if err != nil {
		return err
	}
	return r.broker.Send(ctx, encoded)
}
