package deadletter

import (
	"context"

	"github.com/orderworker/orderworker/worker"
)

// Resolve ends the claim of a message by what a person found out. It is never part of a plan.
const Resolve Action = "resolve"

// The verdicts about claims.
const (
	// InProgress: another attempt has claimed the key and is at work.
	InProgress Kind = "in-progress"
	// ClaimExpired: an attempt has claimed the key and may have got half way.
	ClaimExpired Kind = "claim-expired"
)

// The results of [Resolve]. Only the first one means that the dead letter is removed.
const (
	// Resolved: the record says that the message was applied.
	Resolved Result = "resolved"
	// Freed: the claim is released, and the message can be reprocessed.
	Freed Result = "released"
)

// A Resolution is what a person found out about the earlier attempt at a message.
type Resolution struct {
	// Done tells that its effect happened, and Outcome is the small JSON value to record then.
	Done    bool
	Outcome []byte
}

func offerResolve(v Verdict) Offer {
	o := Offer{Action: Resolve, Label: "Resolve the claim", Sentence: "Records what you found out: --as done stores the record with an --outcome, but no documents, and removes the dead letter; --as not-done releases the claim, so that the message can be reprocessed."}
	switch v.Kind {
	case ClaimExpired:
	case InProgress:
		o.Refused = staysSentence(v, "Resolving")
	default:
		o.Refused = "There is no claim to resolve: the message is " + string(v.Kind) + "."
	}
	return o
}

// halfWayWarning is what may happen to a message that may have got half way when it is processed again.
const halfWayWarning = "An earlier attempt may have got half way. The handler is told so, or refuses it where the program leaves that to a person: then resolve the claim first."

// resolve ends the claim of a message. The pipeline looks again, so that only a claim that has expired is ended.
func (r *Reviewer) resolve(ctx context.Context, c Command, l *DeadLetter, out Outcome) (Outcome, bool) {
	found := c.Choice.Resolution
	result := r.pipeline.Resolve(ctx, l.Received(), found.Done, found.Outcome)
	out.RetryAfter = result.RetryAfter
	switch {
	case found.Done && result.Committed():
		return out.with(Resolved, "The record says that it was done. Documents were not stored."), true
	case !found.Done && result.Cause == 0 && result.Judgement == 0:
		return out.with(Freed, "The record says that it was not done. The dead letter stays: reprocess it."), true
	case result.Cause == worker.CauseUnavailable:
		return out.with(StoreDown, detailOf(result)), false
	}
	return out.with(Rejected, "The claim is no longer as it was. "+detailOf(result)), false
}
