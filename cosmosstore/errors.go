package cosmosstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// answerError is an answer as an error. Its text is the store's own: that of azcosmos quotes the URL and the body.
type answerError struct {
	op     operation
	answer answer
	note   string // what else is to be said, or ""
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("cosmosstore: %s: %v", e.op, e.answer)
	if e.note != "" {
		text += "; " + e.note
	}
	return text
}

// storeError turns a class that ends a call into the error that the engine knows. Classes that a call can go on from are
// unavailable here.
func storeError(op operation, c class, a answer, ambiguous bool) error {
	cause := &answerError{op: op, answer: a}
	switch c {
	case tooLarge:
		return &worker.UnstorableError{Reason: reason.TooLarge, Cause: cause,
			Detail: fmt.Sprintf("The store takes no documents of this size (%v). Send less in one message, such as large attachments by reference.", a)}
	case partitionFull:
		return &worker.UnstorableError{Reason: reason.PartitionFull, Cause: cause,
			Detail: fmt.Sprintf("The logical partition of this key is full and takes no more documents (%v). Remove documents from it, or use "+
				"keys that share no partition, and reprocess this message.", a)}
	case misconfigured:
		return &worker.MisconfiguredError{Fix: fixFor(op, a), Cause: cause}
	}
	return &worker.UnavailableError{RetryAfter: a.retryAfter, Ambiguous: ambiguous, Cause: cause}
}

// probeError turns the answer to a read that concerns no message into an error, or nil when the store is fine.
func probeError(op operation, a answer) error {
	c := classify(op, a)
	switch {
	case c == done, c == absent, c == lagging:
		return nil
	case a.status == http.StatusUnauthorized:
		return storeError(op, misconfigured, a, false)
	}
	return storeError(op, c, a, false)
}

// timedOutAfter is the answer of an operation that was not done in time although requests were answered, such as the
// endless 403/3 of a fail-over.
func timedOutAfter(last answer) answer {
	text := "no answer in time"
	if last.failure == answered && last.status != 0 {
		text = fmt.Sprintf("not done in time; the last of its requests got %v", last)
	}
	return answer{failure: timedOut, text: text, retryAfter: last.retryAfter}
}

// noTime is the error of a call that ended before the operation was done.
func noTime(ctx context.Context, op operation, text string, ambiguous bool) error {
	return outOfTime(ctx, storeError(op, unavailable, answer{failure: timedOut, text: text}, ambiguous))
}

// outOfTime lets an error tell that its context had ended, for those who ask with errors.Is. Nil stays nil.
func outOfTime(ctx context.Context, err error) error {
	u, ok := errors.AsType[*worker.UnavailableError](err)
	if !ok || ctx.Err() == nil {
		return err
	}
	return &worker.UnavailableError{RetryAfter: u.RetryAfter, Ambiguous: u.Ambiguous, Cause: &endedError{u.Cause, ctx.Err()}}
}

// endedError is a cause together with the end of the context, which its text leaves out.
type endedError struct{ cause, ended error }

func (e *endedError) Error() string   { return e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.cause, e.ended} }

// refusal is uncertain for a write that was refused while probes are answered.
func refusal(word string, cause error, format string, args ...any) error {
	return &worker.UncertainError{Reason: word, Refused: true, Cause: cause, Detail: fmt.Sprintf(format, args...)}
}

// uncertain is the error for a message that could not be committed or judged for a cause of its own that may pass.
func uncertain(word string, cause error, format string, args ...any) error {
	return &worker.UncertainError{Reason: word, Cause: cause, Detail: fmt.Sprintf(format, args...)}
}
