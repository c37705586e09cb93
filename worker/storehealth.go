package worker

import (
	"context"
	"fmt"

	"github.com/orderworker/orderworker/worker/internal/breaker"
	"github.com/orderworker/orderworker/worker/internal/supervise"
	"github.com/orderworker/orderworker/worker/reason"
)

// reportOf says what a result means for the store.
func reportOf(r Result) breaker.Report {
	report := breaker.Report{RetryAfter: r.RetryAfter, Err: r.Err}
	switch r.Cause {
	case 0:
		if r.held {
			report.Answer = breaker.Wrote
		}
	case CauseCommitted:
		report.Answer = breaker.Answered
		if r.Judgement == Created || r.Judgement == Own {
			report.Answer = breaker.Wrote
		}
	case CauseConflict, CauseUnstorable, CauseStateMoved, CauseInProgress:
		report.Answer = breaker.Answered
	case CauseUncertain:
		if r.refused {
			report.Answer, report.Err = breaker.Refused, refusedSoFar(r.Err)
		}
	case CauseUnavailable:
		report.Answer = breaker.Unavailable
	case CauseMisconfigured:
		report.Answer = breaker.Misconfigured
	}
	return report
}

// blamed returns a result with the cause that fits the side which is to blame for a write that failed.
func (r Result) blamed(on breaker.Blame) Result {
	switch {
	case on == breaker.Store && r.Cause == CauseUncertain:
		r.Cause, r.Reason, r.Err = CauseUnavailable, "", refusedSoFar(r.Err)
	case on == breaker.Message && r.Cause != CauseUncertain:
		r.Cause, r.Reason, r.RetryAfter = CauseUnstorable, reason.NeverStorable, 0
		r.Detail = "The store commits other messages, and has failed on this one for a long time with answers that do not say why: " + r.Err.Error()
	}
	return r
}

// refusedSoFar says in logs and health why a refusal counts against the store.
func refusedSoFar(err error) error {
	return fmt.Errorf("the store refuses the write of a message while it answers probes, and has taken no other since: %w", err)
}

// probe asks the store once, within the time that a commit has.
func (w *Worker) probe(ctx context.Context) breaker.Report {
	pctx, cancel := context.WithTimeout(ctx, w.config.StoreTimeout)
	defer cancel()
	err := supervise.Do(pctx, nil, callGrace, w.pipeline.store.Ready)
	if err == nil {
		return breaker.Report{Answer: breaker.Answered}
	}
	r := Result{}.failed(ctx, err)
	if r.Cause != CauseMisconfigured {
		r.Cause = CauseUnavailable // whatever it was, it was no message's fault
	}
	return reportOf(r)
}

// breakerChanged reports a change of the circuit breaker in events and in health.
func (w *Worker) breakerChanged(c breaker.Change) {
	if c.Closed {
		w.conditions.clear(partStore)
		if c.Lasted > 0 {
			w.observe(Event{Kind: EventBreakerClosed, Duration: c.Lasted})
		}
		return
	}
	e := Event{Kind: EventBreakerOpened, Cause: CauseUnavailable, Err: c.Cause,
		Detail: "the store cannot be used now. Nothing is received until it can; no message is lost"}
	if c.Misconfigured {
		e.Cause, e.Detail = CauseMisconfigured, "nothing can be stored until somebody changes something"
	}
	w.observe(e)
	detail := e.Detail
	if c.Cause != nil {
		detail += ": " + clip(c.Cause.Error(), maxDescription)
	}
	w.conditions.set(partStore, detail)
}
