package storetest

import (
	"sync"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// testLease is the lease of the claims of the contract, and longOver a time after which it has ended by any clock.
const (
	testLease = 6 * time.Second
	longOver  = 15 * time.Second
)

// claims claims a message, or takes over the claim with this ETag, and returns the commit that completes it.
func (b *bench) claims(c worker.Commit, number int, etag string) worker.Commit {
	b.Helper()
	o := b.claim(c, worker.ClaimRecord{Number: number, Lease: testLease, ETag: etag})
	b.must(o.Claim != nil, "claim %d of %s: another record is stored: %+v", number, c.MessageID, o.Existing)
	b.must(o.Calls > 0, "a store counts its requests: Outcome.Calls is %d", o.Calls)
	b.must(o.Claim.ETag != "", "a claim has an ETag")
	c.Claim = o.Claim
	return c
}

func (b *bench) claim(c worker.Commit, claim worker.ClaimRecord) worker.Outcome {
	b.Helper()
	c.Claim = &claim
	o, err := b.store.Claim(b.ctx, c)
	b.succeeds(err, "claim %s", c.MessageID)
	return o
}

// claimed ends the test unless a claim, a commit and a look are all judged like this, and commit nothing.
func (b *bench) claimed(want worker.Judgement, c worker.Commit, rehash worker.Rehash) worker.Record {
	b.Helper()
	c.Claim = nil
	b.judged(want, c, rehash)
	o := b.claim(c, worker.ClaimRecord{Number: 1, Lease: testLease})
	b.must(o.Claim == nil, "a message that is claimed is claimed again")
	b.equal(want, worker.Judge(c, o, rehash), "the judgement of a second claim")
	r := b.find(c)
	b.equal(want, worker.JudgeRecord(c, r, rehash), "the judgement of the record")
	return r
}

func claimsOnceOfFifty(b *bench) {
	b.needsChanges()
	var mu sync.Mutex
	var won []worker.Commit
	var wg sync.WaitGroup
	for range 50 {
		c, rehash := b.commit("claim-50", `{"amount":40}`, 1)
		wg.Go(func() {
			o := b.claim(c, worker.ClaimRecord{Number: 1, Lease: testLease})
			mu.Lock()
			defer mu.Unlock()
			if c.Claim = o.Claim; c.Claim != nil {
				won = append(won, c)
				return
			}
			b.equal(worker.InProgress, worker.Judge(c, o, rehash), "the judgement of a claim that came second")
		})
	}
	wg.Wait()
	b.equal(1, len(won), "the claims of fifty that were made")
	other, otherHash := b.commit("claim-50", `{"amount":41}`, 0)
	b.claimed(worker.InProgress, other, otherHash)
	_, rehash := b.commit("claim-50", `{"amount":40}`, 1)
	b.judged(worker.Created, won[0], rehash)
	b.judged(worker.Own, won[0], rehash)
	r := b.find(won[0])
	b.must(r.Claim == nil && !r.Stale && !r.CommittedAt.IsZero(), "a claim that was completed is a record like any other: %+v", r)
	b.equal([]string{"line-1"}, r.Parts, "the stored Parts")
	again, rehash := b.commit("claim-50", `{"amount":40}`, 1)
	b.judged(worker.Duplicate, again, rehash)
	b.judged(worker.Conflict, other, otherHash)
}

func recognisesOwnClaim(b *bench) {
	b.needsChanges()
	c, rehash := b.commit("claim-own", `{"amount":40}`, 0)
	b.claims(c, 1, "")
	c = b.claims(c, 1, "")
	renewed := b.claims(c, 1, c.Claim.ETag)
	b.claims(c, 1, c.Claim.ETag) // as after the lost answer to the renewal
	c.Claim = renewed.Claim
	b.judged(worker.Created, c, rehash)
}

func renewsClaims(b *bench) {
	b.needsChanges()
	b.needsBubble()
	c, rehash := b.commit("claim-renew", `{"amount":40}`, 0)
	again, _ := b.commit("claim-renew", `{"amount":40}`, 0)
	c = b.claims(c, 1, "")
	for range 5 {
		b.wait(testLease * 2 / 3)
		c = b.claims(c, 1, c.Claim.ETag)
		b.claimed(worker.InProgress, again, rehash)
	}
	b.wait(longOver)
	b.claimed(worker.ClaimExpired, again, rehash)
	b.judged(worker.Created, c, rehash) // nobody has taken over
}

func takesClaimsOver(b *bench) {
	b.needsChanges()
	b.needsBubble()
	first, rehash := b.commit("claim-over", `{"amount":40}`, 1)
	first = b.claims(first, 1, "")
	second, _ := b.commit("claim-over", `{"amount":40}`, 1)
	third, _ := b.commit("claim-over", `{"amount":40}`, 1)
	other, otherHash := b.commit("claim-over", `{"amount":41}`, 1)
	b.wait(longOver)
	r := b.claimed(worker.ClaimExpired, second, rehash)
	b.equal(1, r.Claim.Number, "the number of the claim")
	b.equal(worker.Conflict, worker.JudgeRecord(other, b.find(other), otherHash), "the judgement of other content")
	second = b.claims(second, 2, r.Claim.ETag)
	o := b.claim(third, worker.ClaimRecord{Number: 2, Lease: testLease, ETag: r.Claim.ETag})
	b.must(o.Claim == nil, "a claim is taken over twice")
	o = b.claim(first, worker.ClaimRecord{Number: 1, Lease: testLease, ETag: first.Claim.ETag})
	b.must(o.Claim == nil && o.Existing != nil, "a claim that was taken over is renewed")
	b.judged(worker.InProgress, first, rehash)
	b.judged(worker.Created, second, rehash)
	b.judged(worker.Duplicate, first, rehash)
	r = b.find(second)
	b.equal(second.Attempt, r.Attempt, "the stored Attempt")
	b.empty(r.MissingParts, "the missing parts")
}

func releasesClaims(b *bench) {
	b.needsChanges()
	c, rehash := b.commit("claim-release", `{"amount":40}`, 0)
	c = b.claims(c, 1, "")
	b.claims(c, 1, c.Claim.ETag) // a renewal whose answer was lost
	o := b.claim(c, worker.ClaimRecord{Number: 1, ETag: c.Claim.ETag})
	b.must(o.Claim != nil, "a claim cannot be ended")
	again, _ := b.commit("claim-release", `{"amount":40}`, 0)
	r := b.claimed(worker.ClaimExpired, again, rehash)
	again = b.claims(again, 2, r.Claim.ETag)
	b.claim(again, worker.ClaimRecord{Number: 2, ETag: again.Claim.ETag, Released: true})
	b.claim(again, worker.ClaimRecord{Number: 2, ETag: again.Claim.ETag, Released: true}) // as after a lost answer
	_, err := b.store.Find(b.ctx, "", again.DocumentID)
	b.notFound(err)
	b.judged(worker.ClaimExpired, again, rehash) // its attempt ended with the release

	other, _ := b.commit("claim-release", `{"amount":41}`, 0)
	other = b.claims(other, 1, "")
	b.equal(3, other.Claim.Number, "the number of the claim after a release")
	b.claim(other, worker.ClaimRecord{Number: 3, ETag: other.Claim.ETag, Released: true})
	plain, rehash := b.commit("claim-release", `{"amount":42}`, 1)
	b.judged(worker.Created, plain, rehash)
	b.sameJSON([]byte(`{"amount":42}`), b.find(plain).Content)
}

// needsBubble skips a test that waits where waiting takes time.
func (b *bench) needsBubble() {
	if !b.options.Bubble {
		b.Skip("the test waits for leases to end")
	}
}
