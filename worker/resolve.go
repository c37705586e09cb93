package worker

import (
	"context"
	"crypto/rand"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Resolve ends the claim of a message by what a person found out about its earlier attempt: done stores the record as committed, with
// an outcome and no documents, and the result is committed then; otherwise the claim is released, and the result has neither a Cause
// nor a Judgement. A message without a claim that has expired is left as it is, and the result is that of [Pipeline.Preview].
func (p *Pipeline) Resolve(ctx context.Context, m *azservicebus.ReceivedMessage, done bool, outcome []byte) Result {
	r := p.Preview(ctx, m)
	if r.Judgement != ClaimExpired {
		return r
	}
	earlier := r.Outcome.Existing.Claim
	r.Commit.Attempt, r.Commit.Claim = rand.Text(), earlier
	if done {
		if r = p.take(ctx, r, Done(Effects{Outcome: outcome}).effects); r.Cause != 0 {
			return r
		}
		return p.commit(ctx, r)
	}
	r = p.writeClaim(ctx, r, ClaimRecord{Number: earlier.Number, ETag: earlier.ETag, Released: true})
	r.held = false
	return r
}
