package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/internal/supervise"
	"github.com/orderworker/orderworker/worker/reason"
)

// A storeCall is one step of a pipeline that asks the store.
type storeCall func(context.Context, Result) Result

// claim sees to it that the record of the message is in progress for this attempt before the handler runs. Ask makes the calls of the
// store. It leaves Cause zero when the handler can run, or when a [Reconciler] gave the effects.
func (p *Pipeline) claim(ctx context.Context, r Result, ask func(Result, storeCall) Result) Result {
	if p.claims.Lease == 0 || r.Cause != 0 || r.handled || r.held && !r.doubt {
		return r
	}
	earlier := r.Commit.Claim
	if !r.held {
		r.Judgement, r.Outcome = 0, Outcome{}
		if r = ask(r, p.acquire); r.Judgement != ClaimExpired {
			return r
		}
		earlier = r.Outcome.Existing.Claim
	}
	if r = p.reconcile(ctx, r, earlier); r.Cause != 0 || r.handled {
		return r
	}
	return ask(r, func(ctx context.Context, r Result) Result {
		return p.writeClaim(ctx, r, ClaimRecord{Number: earlier.Number + 1, Lease: p.claims.Lease, ETag: earlier.ETag})
	})
}

// acquire claims a message that nobody has claimed.
func (p *Pipeline) acquire(ctx context.Context, r Result) Result {
	return p.writeClaim(ctx, r, ClaimRecord{Number: 1, Lease: p.claims.Lease})
}

// writeClaim claims the message, or judges what is stored instead.
func (p *Pipeline) writeClaim(ctx context.Context, r Result, claim ClaimRecord) Result {
	if r.held {
		r = r.unclaimed()
	}
	c := r.Commit
	c.Claim = &claim
	r, o, err := p.write(ctx, r, c, p.store.Claim)
	switch {
	case err != nil:
		return r.failed(ctx, err)
	case o.Claim == nil:
		r.Outcome = o
		return p.judge(r)
	}
	r.Judgement, r.Outcome, r.Cause, r.Reason, r.Detail, r.Err = 0, Outcome{}, 0, "", "", nil
	r.held, r.doubt, r.Commit.Claim = true, false, o.Claim
	return r
}

// reconcile decides about a message whose earlier attempt may have got half way. A Cause ends the pass; otherwise there are
// effects to commit over the claim, or it can be taken over.
func (p *Pipeline) reconcile(ctx context.Context, r Result, earlier *ClaimRecord) Result {
	detail := cmp.Or(describe(r), r.halfWay())
	r.Cause, r.previous = 0, true
	reconciler := reconcilerOf(p.handler, r.Message)
	if reconciler == nil {
		if p.claims.OnExpired == Intervene {
			return r.claimExpired(detail)
		}
		return r
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.handlerTimeout, ErrHandlerTimeout)
	defer cancel()
	found, err := supervise.Call(ctx, p.pool, callGrace, func(ctx context.Context) (Reconciliation, error) {
		return reconciler.Reconcile(ctx, p.messageOf(r))
	}, nil)
	r.stuck = cmp.Or(supervise.Stuck(err), r.stuck)
	switch {
	case err != nil:
		return r.handlerFailed(ctx, err)
	case found.found == foundNotDone:
		r.previous = false
		return r
	case found.found == foundDone:
		if r = p.take(ctx, r, found.effects); r.Cause == 0 {
			r.Commit.Claim, r.Commit.WithoutRecord = earlier, false
		}
		return r
	}
	return r.claimExpired(detail)
}

// reconcilerOf returns the reconciler of a message, or nil.
func reconcilerOf(h Handler, m Message) Reconciler {
	if router, ok := h.(*Router); ok {
		h = router.handlers[router.by(m)]
	}
	reconciler, _ := h.(Reconciler)
	return reconciler
}

// claimExpired leaves the message to a person.
func (r Result) claimExpired(detail string) Result {
	r.Cause, r.Reason, r.Detail = CauseClaimExpired, reason.ClaimExpired, detail
	return r
}

// halfWay says of an attempt of this very delivery that it may have got half way.
func (r Result) halfWay() string {
	return r.Detail + " The handler may have got half way: find out, and resolve the claim."
}

// messageOf is the message as the handler gets it.
func (p *Pipeline) messageOf(r Result) Message {
	m := r.Message
	if r.held {
		m.Claim = admission.Claim{Attempt: r.Commit.Claim.Number, Previous: r.previous}
	}
	return m
}

// handleClaimed is handle under a claim, which is renewed meanwhile.
func (p *Pipeline) handleClaimed(ctx context.Context, r Result) Result {
	hctx, stop := p.keepClaim(ctx, r)
	ran := p.callHandler(hctx, r)
	kept := stop()
	ran.Calls, ran.Charge, ran.stuck = ran.Calls+kept.Calls, ran.Charge+kept.Charge, cmp.Or(ran.stuck, kept.stuck)
	if !kept.held {
		ran = ran.unclaimed() // whatever the handler says: the other attempt decides
		ran.Cause, ran.Reason, ran.Detail = CauseInProgress, "", ""
		return ran
	}
	ran.Commit.Claim = kept.Commit.Claim
	ran.doubt = ran.handled || ran.inDoubt()
	ended := ran.Cause == CauseHandlerError || ran.Cause == CauseHandlerPanic || ran.Cause == CauseHandlerTimeout || ran.Cause == CauseRetryLater
	if ran.doubt && ended && !ran.running() && p.claims.OnExpired == Intervene && reconcilerOf(p.handler, r.Message) == nil {
		return ran.claimExpired(ran.halfWay())
	}
	return ran
}

// keepClaim renews the claim of r until stop is called, which returns the claim as it is then and what that took. The context that
// it returns ends when the claim is lost.
func (p *Pipeline) keepClaim(ctx context.Context, r Result) (hctx context.Context, stop func() Result) {
	hctx, lost := context.WithCancelCause(ctx)
	renewing, end := context.WithCancel(ctx)
	done := make(chan Result, 1)
	kept := Result{Commit: r.Commit, held: true}
	p.pool.Go(func() {
		for kept.held && backoff.Sleep(renewing, p.claims.Lease/3) {
			if kept = p.renewClaim(ctx, kept); !kept.held {
				lost(ErrClaimLost)
			}
		}
		done <- kept
	})
	return hctx, func() Result {
		end()
		defer lost(nil)
		return <-done
	}
}

// renewClaim renews the claim of r once. An error changes nothing: nobody can have taken over while the store cannot be used, and when
// somebody has, the commit will tell.
func (p *Pipeline) renewClaim(ctx context.Context, r Result) Result {
	c := r.Commit
	c.Claim = &ClaimRecord{Number: c.Claim.Number, Lease: p.claims.Lease, ETag: c.Claim.ETag}
	r, o, err := p.write(ctx, r, c, p.store.Claim)
	switch {
	case err != nil:
	case o.Claim != nil:
		r.Commit.Claim = o.Claim
	case o.Existing != nil:
		r = r.unclaimed()
	}
	return r
}

// release ends a claim that led to no commit, so that the next attempt need not wait for the end of its lease. What a handler may have
// done that did not say that it had no effect stays in doubt. A store that cannot be used becomes the cause of the result,
// and the claim is kept.
func (p *Pipeline) release(ctx context.Context, r Result) Result {
	if !r.held || r.running() || r.Judgement == Created || r.Judgement == Own || r.Judgement == Stale {
		return r
	}
	c := r.Commit
	// What was committed without this claim, as before claims were switched on, leaves it behind.
	c.Claim = &ClaimRecord{Number: c.Claim.Number, ETag: c.Claim.ETag, Released: r.Committed() || !r.doubt && !r.previous}
	r, _, err := p.write(ctx, r, c, p.store.Claim)
	if err == nil {
		return r.unclaimed()
	}
	if f := r.failed(ctx, err); f.Cause == CauseUnavailable || f.Cause == CauseMisconfigured {
		return f
	}
	return r
}

// unclaimed is a result without its claim. The next claim is another one.
func (r Result) unclaimed() Result {
	r.held, r.doubt, r.handled, r.Commit.Claim, r.Commit.Attempt = false, false, false, nil, rand.Text()
	return r
}

// releaseTime bounds the release of a claim with which the work on a message ends.
const releaseTime = 2 * time.Second

// finalRelease releases the claim of a message that is given back or dead-lettered, also when the worker must stop.
func (p *Pipeline) finalRelease(ctx context.Context, r Result) Result {
	if !r.held {
		return r
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	released := p.release(ctx, r)
	r.Calls, r.Charge = released.Calls, released.Charge
	return r
}

// releases reports whether the claim ends although the message may be tried again here: a copy of it may be faster.
func (r Result) releases() bool {
	return r.held && (r.Cause == CauseHandlerError || r.Cause == CauseHandlerPanic || r.Cause == CauseRetryLater)
}

// inDoubt reports whether a handler that ended with this result may have had an effect. An error that it returned by itself
// says that it had none, unless it is an [InDoubtError].
func (r Result) inDoubt() bool {
	switch r.Cause {
	case CauseHandlerPanic, CauseHandlerTimeout, CauseLockLost, CauseStopped, CauseInProgress, CauseInvalidEffects:
		return true
	}
	_, doubt := errors.AsType[*InDoubtError](r.Err)
	return doubt
}

// claim is [Pipeline.claim] with the permit of the circuit breaker for each call of the store.
func (w *Worker) claim(ctx context.Context, d *delivery, r Result) Result {
	if w.config.Claim.Lease == 0 {
		return r
	}
	return w.pipeline.claim(ctx, r, func(r Result, call storeCall) Result { return w.underPermit(ctx, d, r, call) })
}
