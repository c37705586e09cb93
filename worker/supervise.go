package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// errStuck is returned instead of the result of a call that did not return in time, even though its context had ended.
var errStuck = errors.New("worker: a call did not return although its context had ended")

// A panicError is what a call that panicked is taken to have returned.
type panicError struct {
	value any
	stack []byte
}

// stackOf is the stack of the panic behind err, or "".
func stackOf(err error) string {
	if e, ok := errors.AsType[*panicError](err); ok {
		return string(e.stack)
	}
	return ""
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guarded calls f and turns a panic into a panicError.
func guarded[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}

type answer[T any] struct {
	value T
	err   error
}

// supervised calls f in a goroutine of the crew and waits until it returns, or until grace has passed since ctx ended. In
// the second case it returns errStuck, and late is called with the result when f returns after all. The goroutine is the
// one thing here without an owner who waits for it: there is no other way to leave a call that ignores its context.
func supervised[T any](ctx context.Context, c *crew, grace time.Duration, f func(context.Context) (T, error), late func(T, error)) (T, error) {
	done := make(chan answer[T]) // unbuffered: either the caller takes the result, or late does
	left := make(chan struct{})
	c.do(func() {
		a := answer[T]{err: &panicError{value: "runtime.Goexit was called"}}
		defer func() { // runtime.Goexit, of which testing.T.FailNow makes use, runs nothing else
			select {
			case done <- a:
			case <-left:
				if late != nil {
					late(a.value, a.err)
				}
			}
		}()
		a.value, a.err = guarded(func() (T, error) { return f(ctx) })
	})
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.value, a.err
	case <-timer.C:
		close(left)
		var zero T
		return zero, errStuck
	}
}

// call is supervised for a call without a result.
func call(ctx context.Context, c *crew, grace time.Duration, f func(context.Context) error) error {
	_, err := supervised(ctx, c, grace, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, nil)
	return err
}
