package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
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

// A stuckError is [errStuck] of one call.
type stuckError struct {
	// returned is closed when the call has returned after all.
	returned <-chan struct{}
}

func (e *stuckError) Error() string        { return errStuck.Error() }
func (e *stuckError) Is(target error) bool { return target == errStuck }

// stuckIn returns what is closed when the call returns that err says did not, or nil.
func stuckIn(err error) <-chan struct{} {
	if e, ok := errors.AsType[*stuckError](err); ok {
		return e.returned
	}
	return nil
}

type answer[T any] struct {
	value T
	err   error
}

// supervision is one call that is waited for. Who changes the state first says what becomes of the result: the goroutine that
// makes the call, when it returns, or the one that waits, when it leaves.
type supervision[T any] struct {
	state    atomic.Int32
	done     chan answer[T] // takes one answer, so that nobody has to wait for it
	returned chan struct{}  // set before the call is left
}

// The states of a call.
const (
	callRuns int32 = iota
	callReturned
	callLeft
)

// supervised calls f in a goroutine of the crew and waits until it returns, or until grace has passed since ctx ended. In
// the second case it returns a stuckError, and late is called with the result when f returns after all. The goroutine is the
// one thing here without an owner who waits for it: there is no other way to leave a call that ignores its context.
func supervised[T any](ctx context.Context, c *crew, grace time.Duration, f func(context.Context) (T, error), late func(T, error)) (T, error) {
	s := &supervision[T]{done: make(chan answer[T], 1)}
	c.do(func() {
		a := answer[T]{err: &panicError{value: "runtime.Goexit was called"}}
		defer func() { // runtime.Goexit, of which testing.T.FailNow makes use, runs nothing else
			if s.state.CompareAndSwap(callRuns, callReturned) {
				s.done <- a
				return
			}
			defer close(s.returned)
			if late != nil {
				late(a.value, a.err)
			}
		}()
		a.value, a.err = guarded(func() (T, error) { return f(ctx) })
	})
	select {
	case a := <-s.done:
		return a.value, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-s.done:
		return a.value, a.err
	case <-timer.C:
	}
	s.returned = make(chan struct{})
	if !s.state.CompareAndSwap(callRuns, callLeft) {
		a := <-s.done
		return a.value, a.err
	}
	var zero T
	return zero, &stuckError{s.returned}
}

// call is supervised for a call without a result.
func call(ctx context.Context, c *crew, grace time.Duration, f func(context.Context) error) error {
	_, err := supervised(ctx, c, grace, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, nil)
	return err
}
