package worker

import (
	"context"
	"errors"
	"time"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/reason"
)

// A Message is an admitted message: its key, its exact body and what the broker says of it. Its fields are described at
// [admission.Message]; a test may fill in those that its handler reads.
type Message = admission.Message

// A State is a document that a handler reads with [Message.Read].
type State = admission.State

// A Handler turns a message into its [Effects]. It never settles, and it may run more than once for
// one message, also at the same time in two processes: only one of them gets its effects committed. It has no other effect, unless it
// may repeat it, as with [Message.IdempotencyKey], or its messages are claimed, see [ClaimConfig]. The context ends when the lock is lost, when the handler's time is up and when the worker must stop.
//
// It is a function like any other to a test; to see what becomes of its effects too, see package storetest.
//
// After an error the message is tried again, in place by [RetryConfig] and then with the next
// delivery; at the last one it is dead-lettered with the error's text, unless the error says otherwise: see [Reject] and
// [RetryAfter]. A panic counts as an error of this message alone.
type Handler interface {
	Handle(ctx context.Context, m Message) (Effects, error)
}

// HandlerFunc lets a function be a [Handler].
type HandlerFunc func(ctx context.Context, m Message) (Effects, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m Message) (Effects, error) { return f(ctx, m) }

// A RejectError makes the worker dead-letter the message at once. See [Reject].
type RejectError struct {
	Reason string
	Err    error
}

func (e *RejectError) Error() string { return e.Reason + ": " + errorText(e.Err) }
func (e *RejectError) Unwrap() error { return e.Err }

// Reject wraps an error so that the message is dead-lettered now, with word as its reason and the error's text as the
// description. A word is made of the letters and digits of ASCII, at most 64 of them, such as UnknownCustomer: alerts and
// filters match it. Anything else is taken out of it, and when nothing remains it is [reason.Rejected]. The text ends up at
// the dead letter, so it should help the person who reads it there and must not contain the body. Reject of nil is nil.
func Reject(word string, err error) error {
	if err == nil {
		return nil
	}
	return &RejectError{Reason: wordOf(word, reason.Rejected), Err: err}
}

// maxRejectWord bounds the word of a handler, in bytes.
const maxRejectWord = 64

// wordOf makes a reason code of whatever a handler gives, or returns fallback when nothing of it can be used.
func wordOf(s, fallback string) string {
	var word []byte
	for i := 0; i < len(s) && len(word) < maxRejectWord; i++ {
		if c := s[i]; 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			word = append(word, c)
		}
	}
	if len(word) == 0 {
		return fallback
	}
	return string(word)
}

// errorText is the text of an error, also when a handler forgot to give one.
func errorText(err error) string {
	if err == nil {
		return "no cause was given"
	}
	return err.Error()
}

// A RetryError makes the worker try the message again after a while. See [RetryAfter].
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return errorText(e.Err) }
func (e *RetryError) Unwrap() error { return e.Err }

// RetryAfter wraps an error so that the message is tried again after d, in place. When d is longer than a message is held,
// which is RetryConfig.HoldFor and with each delivery twice as long, it is abandoned then. It does not count
// as a fault of the message, but deliveries that it costs do count at the broker. RetryAfter of nil is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &RetryError{After: d, Err: err}
}

// asReject and asRetry find the steering errors in a handler's error.
func asReject(err error) (*RejectError, bool) { return errors.AsType[*RejectError](err) }
func asRetry(err error) (*RetryError, bool)   { return errors.AsType[*RetryError](err) }
