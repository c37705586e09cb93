package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
)

// A send that duplicate detection drops looks like any other to its sender. So the dead letter of a resubmit is removed only when
// its copy was seen: in the queue, among the dead letters again, or by what the worker has stored since.

// arrivalWaits are the pauses before each look for a copy.
var arrivalWaits = [...]time.Duration{0, 200 * time.Millisecond, time.Second, 3 * time.Second}

// arrivalPages bounds the look for a copy that an earlier run has sent, of which nobody knows where it lies.
const arrivalPages = 50

// queueEnd returns a sequence number from which on nothing lies in the queue now. It finds it by doubling and halving.
func (r *Reviewer) queueEnd(ctx context.Context) (int64, error) {
	low, high := int64(1), int64(1)
	beyond := func(n int64) (bool, error) {
		found, err := r.broker.PeekQueue(ctx, n, 1)
		if err == nil && len(found) > 0 {
			low = max(n, found[0].Sequence) + 1
		}
		return len(found) == 0, err
	}
	for step := int64(1); ; step *= 2 {
		end, err := beyond(high)
		if err != nil {
			return 0, err
		}
		if end || step > 1<<61 {
			break
		}
		high = low + step
	}
	for low < high {
		middle := low + (high-low)/2
		end, err := beyond(middle)
		switch {
		case err != nil:
			return 0, err
		case end:
			high = middle
		}
	}
	return low, nil
}

// unseen says why it is not known that a copy has arrived, or nothing when it was seen. It looks in the queue from a sequence
// number on.
func (r *Reviewer) unseen(ctx context.Context, l *DeadLetter, from int64) string {
	if id, _ := l.MessageID(); id == "" {
		return "" // duplicate detection has nothing to go by
	}
	from = max(from, 1)
	var failed error
	for _, wait := range arrivalWaits {
		if !backoff.Sleep(ctx, wait) {
			return "Nobody looked whether the copy has arrived, since it was interrupted."
		}
		for _, peek := range []func(context.Context, int64, int) ([]*DeadLetter, error){r.broker.PeekQueue, r.broker.Peek} {
			seen, err := findCopy(ctx, peek, l, from)
			if seen {
				return ""
			}
			failed = err
		}
		if k := r.Examine(ctx, l).Verdict.Kind; k != NeverApplied && k != KeyForgotten && k != Undecided && k != OtherProgram {
			return ""
		}
	}
	if failed != nil {
		return "Whether the copy has arrived cannot be seen: " + failed.Error() + "."
	}
	return "The copy is neither in the queue nor stored, so duplicate detection has dropped it, or somebody else received it and did not store it."
}

// findCopy looks for a copy of a message: one with its MessageId that was resubmitted after it.
func findCopy(ctx context.Context, peek func(context.Context, int64, int) ([]*DeadLetter, error), l *DeadLetter, from int64) (bool, error) {
	id, _ := l.MessageID()
	count, _ := l.resubmitCount()
	for range arrivalPages {
		page, err := peek(ctx, from, pageSize)
		if err != nil || len(page) == 0 {
			return false, err
		}
		for _, m := range page {
			other, _ := m.MessageID()
			if n, _ := m.resubmitCount(); other == id && (n > count || n == 0) && m.Sequence != l.Sequence {
				return true, nil
			}
			from = max(from, m.Sequence+1)
		}
	}
	return false, fmt.Errorf("more than %d messages wait", arrivalPages*pageSize)
}

// notSeen is the outcome of a resubmit whose copy was not seen.
func (o Outcome) notSeen(why string) Outcome {
	return o.with(NotSeen, "It was sent. "+why+" The dead letter stays, so that nothing is lost. Reprocess it in place.")
}
